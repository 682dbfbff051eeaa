"""Reads which toolchain a Go project asks for: the lines `go` and `toolchain` of its go.work or go.mod."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.environments.pins import text_of, upwards

if TYPE_CHECKING:
    from pathlib import Path

_VERSION: Final = r"1\.\d{1,4}(?:\.\d{1,4}|(?:rc|beta)\d{1,3})?"
_LINE: Final = re.compile(rf"^(?:go[ \t]+|toolchain[ \t]+go)({_VERSION})[ \t]*(?://.*)?\r?$", re.MULTILINE)
_NUMBERS: Final = re.compile(r"(?:go)?1\.(\d+)(?:\.(\d+)|(rc|beta)(\d+))?")
_RANKS: Final = {"beta": 0, "rc": 1, None: 2}


def wanted_toolchain(folder: Path) -> str | None:
    """Return the newest toolchain in a project's files, as GOTOOLCHAIN accepts it; None if they name none.

    A go.work of the repository counts before the module's own file, as it does for `go`.
    """
    for name in ("go.work", "go.mod"):
        for place in upwards(folder):
            try:
                text = text_of(place / name)
            except UnicodeDecodeError:
                return None
            if text is not None:
                return max((f"go{found}" for found in _LINE.findall(text)), key=_rank, default=None)
    return None


def is_newer(wanted: str, own: str) -> bool:
    """Return whether a toolchain is newer than another; False if one of them is no release."""
    return bool(_NUMBERS.match(own)) and _rank(wanted) > _rank(own)


def _rank(version: str) -> tuple[int, int, int, int]:
    found = _NUMBERS.match(version)
    if found is None:
        return (0, 0, 0, 0)
    return (int(found[1]), _RANKS[found[3]], int(found[2] or 0), int(found[4] or 0))
