"""Identifies processes by number, start time and boot, so that a reused number is not mistaken.

A process is told by its number, the moment it started, and the boot that it runs in.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROC: Final = Path("/proc")
_GONE: Final = frozenset({"Z", "X"})
_PARENT, _START_TIME = 1, 19  # of /proc/PID/stat, counted after the name in brackets


@dataclass(frozen=True)
class ProcessId:
    """The identity of a process: its number, the boot, and `start_time` in clock ticks since that boot."""

    pid: int
    start_time: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """Return the identity of the process with the number *pid*; None if there is none, or only a zombie."""
        fields = stat_of(pid)
        return cls(pid, int(fields[_START_TIME]), boot_id()) if fields else None

    def is_alive(self) -> bool:
        """Return whether this very process is still running."""
        return ProcessId.of(self.pid) == self

    def open(self) -> int | None:
        """Return a pidfd of this very process, None if it has ended."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return None
        if self.is_alive():
            return handle
        os.close(handle)
        return None


def boot_id() -> str:
    """Return the id of the machine's present boot."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def stat_of(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` after the process's name, empty if it has ended."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
    return [] if fields[0] in _GONE else fields


def pids() -> Iterator[int]:
    """Yield the numbers of all visible processes."""
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def descendants(pid: int) -> tuple[int, ...]:
    """Return the descendants of the process *pid*, by their present parents."""
    children: dict[int, list[int]] = {}
    for other in pids():
        if fields := stat_of(other):
            children.setdefault(int(fields[_PARENT]), []).append(other)
    found, pending = list[int](), [pid]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return tuple(found)


def carries(pid: int, variable: str) -> bool:
    """Return whether a running process was started with `NAME=value` in its environment."""
    try:
        return variable.encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
