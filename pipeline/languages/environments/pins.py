"""Reads which version of a language a project's files name, for version managers whose scripts are on PATH.

Their scripts look for these files from the working folder upwards, and some take a path for a version. So they are
started in the root, where there is no such file, and are told the version by variable: a plain name, or nothing.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Language = Literal["python", "node"]

PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A version, or a user's name for one; never a path."""

_FILES: Final[dict[Language, tuple[str, ...]]] = {
    "python": (".python-version",),
    "node": (".node-version", ".nvmrc"),
}
_TOOLS: Final = ".tool-versions"
_NAMES: Final[dict[Language, tuple[str, ...]]] = {"python": ("python",), "node": ("nodejs", "node")}
_VARIABLES: Final[dict[Language, tuple[str, ...]]] = {
    "python": ("PYENV_VERSION", "ASDF_PYTHON_VERSION", "MISE_PYTHON_VERSION"),
    "node": ("NODENV_VERSION", "ASDF_NODEJS_VERSION", "MISE_NODE_VERSION"),
}
_SEARCHED: Final = {"PYENV_DIR": "/", "NODENV_DIR": "/"}
"""Variables that reset where version managers search for files, in case one of them started redfirst."""
_LIMIT: Final = 65_536


def chosen_versions(language: Language, folder: Path) -> dict[str, str]:
    """Return variables that make a version manager's script choose the project's version.

    They say which version the files of a project name; what the user set stays as it is.
    """
    version = next((found for place in upwards(folder) if (found := _named(language, place)) is not None), None)
    wanted = [name for name in _VARIABLES[language] if name not in os.environ] if version is not None else []
    return {**dict.fromkeys(wanted, version or ""), **_SEARCHED}


def upwards(folder: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the top of its repository."""
    for place in (folder, *folder.parents):
        yield place
        if os.path.lexists(place / ".git"):
            return


def text_of(file: Path) -> str | None:
    """Return the text of a small regular file; None if it is missing or something else.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as opened:
        try:
            return opened.read(_LIMIT).decode()
        except OSError:
            return None


def _named(language: Language, place: Path) -> str | None:
    for name in (*_FILES[language], _TOOLS):
        try:
            lines = [line.partition("#")[0].split() for line in (text_of(place / name) or "").splitlines()]
        except UnicodeDecodeError:
            continue
        if name == _TOOLS:
            lines = [words[1:] for words in lines if words and words[0] in _NAMES[language]]
        first = next((words[0] for words in lines if words), None)
        if first is not None:
            return first if PLAIN.fullmatch(first) else None
    return None
