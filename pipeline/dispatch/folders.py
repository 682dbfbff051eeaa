"""Creates the folder of one dispatch; an earlier attempt's folder is kept beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_SHARED: Final = "artifacts"
"""The folder that all tries of a dispatch share; it does not change."""
_TRY: Final = "try-"


def new_folder(folder: Path) -> Path:
    """Create *folder* and return it; one left by a crash is renamed to `.lost-k` (its cost stays counted)."""
    if folder.exists():
        lost = 1
        while folder.with_name(f"{folder.name}.lost-{lost}").exists():
            lost += 1
        folder.rename(folder.with_name(f"{folder.name}.lost-{lost}"))
    folder.mkdir(parents=True)
    return folder


def set_aside(folder: Path, number: int) -> None:
    """Move the files of a failed try into `try-N`."""
    entries = [entry for entry in folder.iterdir() if entry.name != _SHARED and not entry.name.startswith(_TRY)]
    aside = folder / f"{_TRY}{number}"
    aside.mkdir()
    for entry in entries:
        entry.rename(aside / entry.name)
