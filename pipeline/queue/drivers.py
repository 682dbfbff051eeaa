"""Starts drivers for a worker: processes of their own, which die with it and have their slots till then."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.outcomes import Outcome, Reason
from pipeline.run.files import disk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeline.queue.slots import FleetTaken, LocalTaken

_PROGRAM: Final = "import os, redfirst; os.read(0, 1) and redfirst.main()"
"""It waits until its order says that it was begun: one that no order knows of would be taken for a person's."""
_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None)
_BUG: Final = 1
"""The exit code of an error of ours."""


@dataclass(frozen=True)
class End:
    """How a driver ended: what its run came to, or None where it died before it could say so.

    Args:
        outcome: Of the run; `rejected` where none began.
        reason: Why.
        note: What was said of it.
        run: The run, by worktree and name.
    """

    outcome: Outcome | None
    reason: Reason | None = None
    note: str = ""
    run: str | None = None


class Driver:
    """One driver, from its start to its end: `redfirst` with some words. Before `begin` it does nothing.

    Args:
        order: What it is for.
        argv: The words.
        cwd: Where.
        environ: Its environment.
        log: Where everything goes that it says; its document lies beside it.
        slots: What it has as long as it lives, and the worker until it has taken in its end (`close`).

    Raises:
        UserError: the disk does not take the log.
    """

    def __init__(
        self,
        order: str,
        argv: Sequence[str],
        *,
        cwd: Path,
        environ: Mapping[str, str],
        log: Path,
        slots: LocalTaken | FleetTaken,
    ) -> None:
        self.order = order
        self.slots = slots
        self.log = log
        self._result = log.with_suffix(".json")
        with disk(log):
            log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with log.open("wb") as said, self._result.open("wb") as document:
                self._process = subprocess.Popen(  # -P: nothing is imported from the repository
                    [sys.executable, "-P", "-c", _PROGRAM, *argv, "--json"],
                    cwd=cwd,
                    env=dict(environ),
                    stdin=subprocess.PIPE,
                    stdout=document,
                    stderr=said,
                    pass_fds=tuple(slots.handles),
                    start_new_session=True,
                    preexec_fn=partial(_dies_with, os.getpid()),  # noqa: PLW1509  (a worker has one thread)
                )
        self.pid = self._process.pid
        self.handle = os.pidfd_open(self.pid)
        """A descriptor that can be read once it has ended."""

    def begin(self) -> None:
        """Let it go, since its order says so."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self._process.stdin as waits:  # it may have been stopped
                waits.write(b"1")

    def stop(self) -> None:
        """Ask it to stop, with everything kept so that the run can go on."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGTERM)

    def ended(self) -> End | None:
        """Return how it ended, None while it lives."""
        code = self._process.poll()
        if code is None:
            return None
        if code < 0:
            return End(None, note=f"signal {-code}")
        return _end(self._document(), code)

    def close(self) -> None:
        """Give back what it had; its end has been taken in."""
        os.close(self.handle)
        self.slots.give_back()

    def _document(self) -> dict[str, Any]:
        try:
            said: object = json.loads(self._result.read_bytes())
        except (OSError, ValueError):
            return {}
        return cast("dict[str, Any]", said) if isinstance(said, dict) else {}


def _end(document: Mapping[str, Any], code: int) -> End:
    error: Mapping[str, Any] = document.get("error") or {}
    if "outcome" in (error.get("details") or {}):  # between the look at its run and its start another driver ended that
        document, error = error["details"], {}
    try:
        if error and code != _BUG:
            return End(Outcome.REJECTED, Reason(error["kind"]), str(error["message"]))
        outcome, reason = Outcome(document["outcome"]), Reason(document["reason"])
    except (LookupError, ValueError):
        return End(None, note=f"exit {code}: {error.get('message', 'it said nothing')}")
    return End(outcome, reason, str(document.get("note") or ""), str(document.get("run_dir") or "") or None)


def await_any(handles: Sequence[int], seconds: float) -> None:
    """Return when one of these can be read, or after so many seconds."""
    waiting = select.poll()
    for handle in handles:
        waiting.register(handle, select.POLLIN)
    waiting.poll(seconds * 1000)


def _dies_with(worker: int) -> None:
    """Let the kernel kill this process when the worker ends; in the process that is to be the driver."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != worker:  # it ended before the kernel was told
        os._exit(_BUG)
