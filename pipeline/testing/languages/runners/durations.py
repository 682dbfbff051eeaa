"""Stores how long the tests of each file took in the baseline, to balance parts of a run; no evidence.

It lies in the cache of compiled code, which the baseline fills as well: an observation holds nothing that differs from
one run to the next.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NAME: Final = ".seconds.json"


def write(cache: Path, seconds: Mapping[str, float]) -> None:
    """Add the seconds by test file to the stored ones; a file that tests put in its place is replaced."""
    place = cache / _NAME
    known = read(cache)
    place.unlink(missing_ok=True)
    place.write_text(json.dumps({**known, **seconds}), encoding="utf-8")


def read(cache: Path) -> dict[str, float]:
    """Return the seconds by test file, empty if unknown. Tests could write this file, so it is only a hint."""
    place = cache / _NAME
    if place.is_symlink() or not place.is_file():
        return {}
    try:
        said: object = json.loads(place.read_bytes())
    except (OSError, ValueError):
        return {}
    entries: dict[object, object] = said if isinstance(said, dict) else {}  # pyright: ignore[reportUnknownVariableType]  of JSON
    return {
        path: float(value)
        for path, value in entries.items()
        if isinstance(path, str) and isinstance(value, int | float) and math.isfinite(value) and value >= 0
    }
