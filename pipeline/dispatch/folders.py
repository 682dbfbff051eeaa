"""The folder of one dispatch: never reused, and what an earlier attempt left there is kept beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_SHARED: Final = "artifacts"
"""What all tries of a dispatch read: it is frozen with the dispatch."""
_TRY: Final = "try-"


def new_folder(folder: Path) -> Path:
    """Make *folder* and return it; one that a crash left is kept as `.lost-k` (its cost stays counted)."""
    if folder.exists():
        lost = 1
        while folder.with_name(f"{folder.name}.lost-{lost}").exists():
            lost += 1
        folder.rename(folder.with_name(f"{folder.name}.lost-{lost}"))
    folder.mkdir(parents=True)
    return folder


def set_aside(folder: Path, number: int) -> None:
    """Move what a failed try left into `try-N`."""
    entries = [entry for entry in folder.iterdir() if entry.name != _SHARED and not entry.name.startswith(_TRY)]
    aside = folder / f"{_TRY}{number}"
    aside.mkdir()
    for entry in entries:
        entry.rename(aside / entry.name)
