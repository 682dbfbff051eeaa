"""Opens the files of a run folder, which may be a stranger's: through no link, of bounded size.

A run folder comes along with a repository or an archive as easily as from a run. Who loads a run first has all of it
looked at (`refuse_strange`); the records that every command reads or writes are opened by their parents one by one.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.trees import opened, opened_parent, read_regular

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

EXCHANGE: Final = "exchange"
"""The folder of a dispatch where an agent writes: a crash leaves it as it was, so nothing is said of what is in it."""
MIB: Final = 1024 * 1024
RECORD_LIMIT: Final = 64 * MIB
"""Of one record: run.json, the journal, the result of a dispatch, a review."""
ARTIFACT_LIMIT: Final = 256 * MIB
"""Of any file: what agents say and what is refused is kept in part."""
OF_RECIPE: Final = "recipe"
"""What run.json calls the workflow of a run whose steps are those of a recipe."""
_DEEPEST: Final = 16
_RECORDS: Final = frozenset({"run.json", "journal.jsonl"})
_KINDS: Final = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class TooLargeError(OSError):
    """A file is larger than anything that a run writes there."""


@contextmanager
def opened_run(folder: Path) -> Generator[int]:
    """Open a run folder; neither it nor the folder of all runs is a link."""
    with opened(folder.parent) as runs, opened(folder.name, runs) as run:
        yield run


def read_record(folder: Path, name: str, limit: int = RECORD_LIMIT) -> bytes:
    """Return the content of a file below a run folder.

    Raises:
        OSError: it is not there, no regular file, too large, or behind a link.
    """
    with opened_run(folder) as run, opened_parent(run, name) as (parent, last):
        content = read_regular(last, limit, parent)
    if len(content) > limit:
        raise TooLargeError(errno.EOVERFLOW, f"larger than {limit // MIB} MiB", name)
    return content


def open_record(folder: Path, name: str, flags: int) -> int:
    """Return a descriptor of a file directly in a run folder, which the caller closes.

    Raises:
        UserError: something else is in its place.
        OSError: the disk does not take it.
    """
    with opened_run(folder) as run:
        try:
            handle = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644, dir_fd=run)
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.ENXIO}:
                raise
            raise _strange(folder, name, "no file") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _strange(folder, name, "no file")
    return handle


def remove_record(folder: Path, name: str) -> None:
    """Remove a file below a run folder; one that is gone already, or is none that a run writes, is left as it is."""
    with suppress(OSError), opened_run(folder) as run, opened_parent(run, name) as (parent, last):
        os.unlink(last, dir_fd=parent)


def walk(folder: Path) -> Iterator[tuple[int, str, os.stat_result]]:
    """Yield everything below a run folder but what agents exchanged: its parent's descriptor, its path, what it is.

    Raises:
        UserError: the folders are deeper than those of a run.
        OSError: one of them cannot be read, or became a link.
    """
    with opened_run(folder) as run:
        yield from _walk(folder, run, "")


def _walk(folder: Path, here: int, above: str) -> Iterator[tuple[int, str, os.stat_result]]:
    for name in sorted(os.listdir(here)):
        path = f"{above}{name}"
        try:
            status = os.stat(name, dir_fd=here, follow_symlinks=False)
        except FileNotFoundError:  # a driver is at work
            continue
        yield here, path, status
        if stat.S_ISDIR(status.st_mode) and name != EXCHANGE:
            if path.count("/") >= _DEEPEST:
                raise _strange(folder, path, "a folder, deeper than any")
            with opened(name, here) as inner:
                yield from _walk(folder, inner, f"{path}/")


def remove_temporaries(folder: Path) -> None:
    """Remove what writers that were killed left anywhere below *folder*; nobody else may be writing there."""
    for parent, path, status in walk(folder):
        name = path.rpartition("/")[2]
        if stat.S_ISREG(status.st_mode) and name.startswith(".") and name.endswith(".tmp"):
            os.unlink(name, dir_fd=parent)


def refuse_strange(folder: Path) -> None:
    """Return if a run folder holds what a run writes: files and folders, none of them without end.

    Raises:
        UserError: it holds something else.
    """
    try:
        for _, path, status in walk(folder):
            kind = _KINDS.get(stat.S_IFMT(status.st_mode))
            if kind is not None:
                raise _strange(folder, path, kind)
            limit = RECORD_LIMIT if path in _RECORDS else ARTIFACT_LIMIT
            if status.st_size > limit and stat.S_ISREG(status.st_mode):
                raise _strange(folder, path, f"larger than {limit // MIB} MiB")
    except OSError as error:
        raise _strange(folder, "", f"cannot be read ({error.strerror})") from error


def _strange(folder: Path, path: str, what: str) -> UserError:
    return UserError(
        f"{folder.name} is no folder that a run of redfirst left: {path or folder.name} is {what}. Nothing was read or "
        f"written through it. Look at where it comes from. If nobody needs it, remove {folder}",
        Reason.USAGE,
        path=str(folder / path),
        actions=(f"ls -lR {folder}",),
    )


def is_of_recipe(folder: Path) -> bool:
    """Return whether a run is of a recipe whose own steps drive it."""
    try:
        return json.loads(read_record(folder, "run.json")).get("workflow") == OF_RECIPE
    except (OSError, ValueError, AttributeError):
        return False
