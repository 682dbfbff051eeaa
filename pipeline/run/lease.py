"""Locks a file as the lease of a run, so that a run has one driver at a time.

People remove files that are called `lock`, and the next driver then locks another one. So the file names who took it
last, and a driver reads that before it adds a line or moves a ref.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING, Final, Self

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.pids import ProcessId
from pipeline.run.files import disk
from pipeline.run.records import open_record

if TYPE_CHECKING:
    from pathlib import Path


_TRIES: Final = 5
_PAUSE_S: Final = 0.02
_READERS_S: Final = 10.0
_LONGEST: Final = 100
"""Characters of a process's number, when it started, and the boot."""


class FileLease:
    """A flock on the run folder's `lock` file: the kernel gives it back when the driver dies."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    @classmethod
    def take(cls, folder: Path) -> FileLease:
        """Return the lease on the run in *folder*.

        Raises:
            UserError: another process drives the run.
        """
        path = folder / "lock"
        with disk(path):
            handle = open_record(folder, path.name, os.O_RDWR | os.O_CREAT)
        if not _locked_in_time(handle):
            os.close(handle)
            raise _driven(folder)
        os.ftruncate(handle, 0)
        os.pwrite(handle, _said_of(os.getpid()).encode(), 0)
        return cls(handle)

    def release(self) -> None:
        """Give the lease back; the file stays, so that no two drivers ever lock different files."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @staticmethod
    def is_held(folder: Path) -> bool:
        """Return whether a live process drives the run in *folder*."""
        try:
            handle = open_record(folder, "lock", os.O_RDONLY)
        except (OSError, UserError):  # not there, or nothing that a driver holds
            return False
        try:
            return not _locked(handle, fcntl.LOCK_SH)
        finally:
            os.close(handle)


def _locked_in_time(handle: int) -> bool:
    """Take the lock of a driver; return whether it was taken.

    Who asks `is_held` has a lock for an instant, which is long where a machine is busy: such are waited for longer than
    a driver, which may be ending.
    """
    until = time.monotonic() + _READERS_S
    drivers = 0
    while not _locked(handle, fcntl.LOCK_EX):
        if _locked(handle, fcntl.LOCK_SH):
            fcntl.flock(handle, fcntl.LOCK_UN)
        else:
            drivers += 1
        if drivers == _TRIES or time.monotonic() > until:
            return False
        time.sleep(_PAUSE_S)
    return True


def _locked(handle: int, how: int) -> bool:
    """Take a lock if nobody has one that excludes it; return whether it was taken."""
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def driver_of(folder: Path) -> ProcessId | None:
    """Return the process that drives the run in *folder*; None where none does, or none of this machine."""
    if not FileLease.is_held(folder):
        return None
    said = _last_driver(folder)
    pid, _, rest = said.partition(" ")
    driver = ProcessId.of(int(pid)) if pid.isdecimal() else None
    return driver if driver is not None and (not rest or _said_of(driver.pid) == said) else None


def refuse_other_driver(folder: Path) -> None:
    """Return unless another process took the lock of the run in *folder* after this one.

    Raises:
        UserError: one did: somebody removed the lock that this process held, and the run went on elsewhere.
    """
    try:
        said = _last_driver(folder)
    except FileNotFoundError:
        return
    if said and said != _said_of(os.getpid()):
        watch = f"redfirst show {folder.name}"
        raise UserError(
            f"Another process took {folder.name} over while this one drove it, since its lock was removed. This one "
            f"stops and writes nothing more. Look at the run: {watch}",
            Reason.LOCKED,
            path=str(folder / "lock"),
            actions=(watch,),
        )


def _last_driver(folder: Path) -> str:
    """Return what the lock says of the process that took it last, empty where none did."""
    handle = open_record(folder, "lock", os.O_RDONLY)
    try:
        return os.pread(handle, _LONGEST, 0).decode("ascii", "replace")
    finally:
        os.close(handle)


def _said_of(pid: int) -> str:
    """Return what the file says of a process: another one of its number, after a boot or in a container, differs."""
    found = ProcessId.of(pid)
    return str(pid) if found is None else f"{pid} {found.start_time} {found.boot_id}"


def _driven(folder: Path) -> UserError:
    """Return the error that says who drives the run, how to watch it, and how to stop it so that it can go on."""
    watch, stop = f"redfirst show {folder.name} --log --follow", f"redfirst stop {folder.name}"
    driver = driver_of(folder)
    return UserError(
        f"{f'Process {driver.pid}' if driver is not None else 'Another process'} is driving {folder.name}. Watch it: "
        f"{watch}. Stop it, with everything kept for resume: {stop}",
        Reason.LOCKED,
        path=str(folder / "lock"),
        actions=(watch, stop),
    )
