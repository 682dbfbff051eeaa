"""Ends the processes that a killed driver left, before the next driver continues.

Every box dies with its driver: bubblewrap and the supervisor are told by the kernel. What is left to this module: a box
that was being set up at that very instant, and a dispatch whose supervisor was killed together with the driver. A
running dispatch is therefore written down (`Recording`), so that no other process is ever taken for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.pids import ProcessId, boot_id, carries, descendants, pids
from pipeline.sandbox.boxes.limits import BOX_USER, MARK
from pipeline.trees import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST: Final = 64 * 1024


class Recorded(Frozen):
    """The content of `process.json`: a process by number, start time and boot, and the mark of its descendants."""

    pid: int
    start_time: int
    boot_id: str
    box: str
    mark: str

    @property
    def process(self) -> ProcessId:
        """Return the id of the recorded process."""
        return ProcessId(self.pid, self.start_time, self.boot_id)

    @classmethod
    def read(cls, path: Path) -> Recorded | None:
        """Return the record in a file; None if it is missing or incomplete."""
        try:
            return cls.model_validate_json(read_regular(path, _LONGEST))
        except (OSError, ValidationError):
            return None


@dataclass(frozen=True)
class Recording:
    """The file in which a process is recorded, and the box that it runs in."""

    path: Path
    box: str

    def write(self, pid: int, mark: str) -> None:
        """Record the process *pid*; nothing if it has ended already."""
        process = ProcessId.of(pid)
        if process is not None:
            facts = Recorded(pid=pid, start_time=process.start_time, boot_id=process.boot_id, box=self.box, mark=mark)
            self.path.write_text(facts.model_dump_json() + "\n", encoding="utf-8")

    def remove(self) -> None:
        """Remove the record once all the processes are dead."""
        self.path.unlink(missing_ok=True)


_REAPERS: Final = frozenset({"systemd", "init"})
_TERMINATES_MS: Final = 2_000
_DIES_MS: Final = 10_000


def end_lost(records: Iterable[Path]) -> int:
    """Kill the processes of dispatches in *records*; return how many were killed.

    To be called by who holds the run's lease: then nobody else drives these dispatches.

    Args:
        records: `process.json` of each dispatch; one that is missing or says nothing is a dispatch that is over.

    Raises:
        UserError: one of the processes does not die.
    """
    found = 0
    for path in records:
        found += _end(path)
        path.unlink(missing_ok=True)
    return found


def _end(path: Path) -> int:
    said = Recorded.read(path)
    if said is None or said.boot_id != boot_id():
        return 0
    lost: dict[int, int] = {}
    try:
        if (root := said.process.open()) is not None:
            lost[said.pid] = root
            for pid in descendants(said.pid):
                _hold(lost, pid)
            signal.pidfd_send_signal(root, signal.SIGTERM)  # a supervisor ends its own before it ends
            _await([root], _TERMINATES_MS)
        if said.mark:
            for pid in pids():
                if carries(pid, said.mark):
                    _hold(lost, pid)
        for handle in lost.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        if left := _await(lost.values(), _DIES_MS):
            names = ", ".join(str(pid) for pid, handle in lost.items() if handle in left)
            raise UserError(
                f"Processes of a dispatch that was lost do not end: {names}. End them, then resume.",
                Reason.LOCKED,
                path=str(path),
            )
        return len(lost)
    finally:
        for handle in lost.values():
            os.close(handle)


def _hold(handles: dict[int, int], pid: int) -> None:
    if pid not in handles and pid != os.getpid():
        with contextlib.suppress(OSError):
            handles[pid] = os.pidfd_open(pid)


def _await(handles: Iterable[int], limit_ms: int) -> list[int]:
    """Return the pidfds of processes that have not ended within the limit (for each)."""
    left: list[int] = []
    for handle in handles:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(limit_ms):
            left.append(handle)
    return left


def clear_orphans(processes: Path = Path("/proc")) -> int:
    """Kill our own boxes whose driver is gone; return how many there were.

    Ours is what runs as our user, is called bwrap, and carries our mark in its arguments; lost is what init or a
    user's systemd has adopted (a living box is the child of its driver, or of another bwrap).
    """
    if os.getpid() == 1:  # then a living box is the child of process 1, too
        return 0
    found = 0
    for entry in processes.iterdir():
        if entry.name.isdigit() and _is_lost_box(entry, processes):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(entry.name), signal.SIGKILL)
                found += 1
    return found


def _is_lost_box(entry: Path, processes: Path) -> bool:
    with contextlib.suppress(OSError, ValueError, IndexError):
        argv = (entry / "cmdline").read_bytes().split(b"\0")
        if os.path.basename(argv[0]) != b"bwrap" or MARK.encode() not in argv:  # noqa: PTH119  (bytes)
            return False
        if entry.stat().st_uid not in {os.getuid(), *([BOX_USER] if os.getuid() == 0 else [])}:
            return False
        parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        return parent == 1 or (processes / str(parent) / "comm").read_text().strip() in _REAPERS
    return False
