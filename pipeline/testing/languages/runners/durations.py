"""Stores how long the tests of each file took in the baseline, to balance parts of a run; no evidence.

It lies in the cache of compiled code, which the baseline fills as well: an observation holds nothing that differs from
one run to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NAME: Final = ".seconds.json"
_SECONDS: Final = TypeAdapter(dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]])


def write(cache: Path, seconds: Mapping[str, float]) -> None:
    """Add the seconds by test file to the stored ones; a file that tests put in its place is replaced."""
    place = cache / _NAME
    known = read(cache)
    place.unlink(missing_ok=True)
    place.write_bytes(_SECONDS.dump_json({**known, **seconds}))


def read(cache: Path) -> dict[str, float]:
    """Return the seconds by test file, empty if unknown. Tests could write this file, so it is only a hint."""
    place = cache / _NAME
    try:
        return _SECONDS.validate_json(place.read_bytes()) if place.is_file() and not place.is_symlink() else {}
    except (OSError, ValidationError):
        return {}
