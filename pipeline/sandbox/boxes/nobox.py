"""The box that isolates nothing: plain processes with a fixed environment, below a supervisor that ends them.

The user has to ask for it (`sandbox = "none"`), and journal and summary say so. An agent can kill its supervisor here;
then what it started is found by its session or by a mark in its environment, and what has neither is not found. This is
the limit of what can be done without a kernel box.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipeline.pids import carries, pids, stat_of
from pipeline.process import BoxError, Command, Completed
from pipeline.sandbox.boxes.bubblewrap import ENV
from pipeline.sandbox.boxes.canary import Proof
from pipeline.sandbox.boxes.children import Child, opened_channel, run_child, wait_gone
from pipeline.sandbox.boxes.limits import LIMITS
from pipeline.scratch import scratch_folder

_MARK: Final = "REDFIRST_BOX"
_ROUNDS: Final = 50
_GONE_WITHIN_S: Final = 5.0
_ENDED_WITHIN_S: Final = 10.0
_SESSION: Final = 3  # of /proc/PID/stat, counted after the name in brackets
_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")


@dataclass
class NoBox:
    """A box that runs commands directly. Mounts have no effect: paths must be the host's (see `inside`)."""

    name: str = "none"
    # not "model": whatever runs on the host could use the credential through the gateway
    networks: frozenset[str] = frozenset({"none", "open"})
    maps_paths: bool = False
    owner: int | None = None

    def inside(self, host: Path, target: Path) -> Path:  # noqa: ARG002  (nothing is mapped)
        """Return `host`: paths are those of the host."""
        return host

    async def run(self, command: Command) -> Completed:
        """Run a command until it ends or meets a limit, then kill the processes it left behind.

        Raises:
            BoxError: the program could not be started, or something of it could not be killed.
            Exception: whatever the command's talk has raised.
        """
        with scratch_folder("home") as home:
            mark = f"{_MARK}={secrets.token_hex(16)}"
            always = {**ENV, "HOME": str(home), "TMPDIR": str(home)}
            with opened_channel(command) as (channel, told):
                return await run_child(
                    command,
                    (*supervisor_prefix(), *LIMITS, *command.argv),
                    cwd=command.cwd,
                    env={**always, **command.env, _MARK: mark.partition("=")[2], **told},
                    guard=_Sweeper(mark),
                    mark=mark,
                    channel=channel,
                )

    async def canary(self) -> Proof:
        """Return a proof that says that nothing is isolated, as configured."""
        return Proof(ok=True, why="nothing is isolated, as configured", advice="")


def supervisor_prefix() -> tuple[str, ...]:
    """Return the argv prefix under which all processes end with the command, with this driver, or on SIGTERM."""
    return (sys.executable, "-I", "-S", str(_SUPERVISOR), str(os.getpid()))


@dataclass(frozen=True)
class _Sweeper:
    """The guard of this box: the supervisor ends the command's processes, and a search finds those it lost."""

    mark: str

    def started(self) -> None:
        """Do nothing: no descriptors were handed over."""

    async def sweep(self, child: Child) -> None:
        if child.pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(child.pidfd, signal.SIGTERM)
            await wait_gone(child.pidfd, _ENDED_WITHIN_S)
        for _ in range(_ROUNDS):
            found = [pid for pid in pids() if self._is_ours(pid, child.pid)]
            if not found:
                return
            for pid in found:
                await _kill(pid)
        raise BoxError("the command kept starting processes while it was being killed")

    def code(self, returncode: int) -> int:
        return returncode

    def _is_ours(self, pid: int, session: int) -> bool:
        fields = stat_of(pid)
        return bool(fields) and (int(fields[_SESSION]) == session or carries(pid, self.mark))


async def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            await wait_gone(pidfd, _GONE_WITHIN_S)
        finally:
            os.close(pidfd)
