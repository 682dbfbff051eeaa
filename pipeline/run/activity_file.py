"""Writes what a driver is doing at the moment to a small file of its run folder, and reads it for `show`.

It is worth nothing once its driver is gone: it is never waited for, never kept, and read of a live run alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pydantic import AwareDatetime, ValidationError

from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.run.files import to_json, write_atomic
from pipeline.run.records import MIB, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.progress import Activity

NOW: Final = "now.json"


class Doing(Frozen):
    """One thing that is being done, in words, since when, and the last lines of what an agent says in it."""

    what: str
    since: AwareDatetime
    said: tuple[str, ...] = ()


class Now(Frozen):
    """The file: what the driver of this epoch is doing."""

    epoch: int
    doing: tuple[Doing, ...]


def write_now(folder: Path, epoch: int, activities: Iterable[Activity]) -> None:
    """Write down what is being done. A disk that does not take it stops nothing: a record that counts will say so."""
    doing = tuple(Doing(what=each.what, since=each.began_at, said=each.said()) for each in activities)
    now = Now(epoch=epoch, doing=doing)
    with suppress(UserError):
        write_atomic(folder / NOW, to_json(now.model_dump(mode="json")), below=folder.parents[1], durable=False)


def forget_now(folder: Path) -> None:
    """Remove the file: nothing is being done any more."""
    with suppress(OSError):
        (folder / NOW).unlink(missing_ok=True)


def read_now(folder: Path, epoch: int) -> tuple[Doing, ...]:
    """Return what the driver of *epoch* is doing; nothing where it has not said."""
    try:
        now = Now.model_validate_json(read_record(folder, NOW, MIB))
    except (OSError, ValidationError):
        return ()
    return now.doing if now.epoch == epoch else ()
