"""Tells a process from another one that has got its number since it was written down.

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
    """One process of one boot; `start_time` in clock ticks since then."""

    pid: int
    start_time: int
    boot_id: str

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """Return which process has the number *pid* now; None where there is none (a zombie is none)."""
        fields = stat_of(pid)
        return cls(pid, int(fields[_START_TIME]), boot_id()) if fields else None

    def is_alive(self) -> bool:
        """Return whether this very process still runs."""
        return ProcessId.of(self.pid) == self

    def open(self) -> int | None:
        """Return a descriptor of this very process, None if it has ended."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return None
        if self.is_alive():
            return handle
        os.close(handle)
        return None


def boot_id() -> str:
    """Return what tells this boot of the machine from every other one."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def stat_of(pid: int) -> list[str]:
    """Return the fields of a process after its name, nothing if it has ended."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
    return [] if fields[0] in _GONE else fields


def pids() -> Iterator[int]:
    """Yield the numbers of all processes that can be seen."""
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def descendants(pid: int) -> tuple[int, ...]:
    """Return the processes below *pid*, by what they say of their parents now."""
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
    """Return whether a living process was started with `NAME=value` in its environment."""
    try:
        return variable.encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
