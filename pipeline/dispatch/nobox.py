"""No isolation: plain processes with a fixed environment, found and killed at the end.

The user has to ask for it (`sandbox = "none"`), and journal and summary say so. A process that leaves its session and
empties its environment cannot be told from the user's own; this is the limit of what can be done without a kernel box.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.dispatch.canary import Proof
from pipeline.dispatch.children import LIMITS, run_child, wait_gone
from pipeline.dispatch.trees import remove_tree
from pipeline.process import Command, Completed, SandboxError

if TYPE_CHECKING:
    from pipeline.dispatch.children import Child

_MARK: Final = "REDFIRST_BOX"
_ROUNDS: Final = 50
_GONE_WITHIN_S: Final = 5.0
_SESSION_FIELD: Final = 3  # of /proc/PID/stat, counted after the name in brackets


@dataclass
class NoBox:
    """Runs commands as they are. Mounts mean nothing here: paths must be the host's (see `inside`)."""

    name: str = "none"
    maps_paths: bool = False

    def inside(self, host: Path, target: Path) -> Path:  # noqa: ARG002  (nothing is mapped)
        """Return `host`."""
        return host

    async def run(self, command: Command) -> Completed:
        """Run to the end or to its limits, then kill whatever it left behind.

        Raises:
            SandboxError: the program could not be started, or something of it could not be killed.
        """
        home = Path(tempfile.mkdtemp(prefix="redfirst-home-"))
        mark = secrets.token_hex(16)
        env = {
            "HOME": str(home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "TMPDIR": str(home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "USER": "agent",
            "SHELL": "/bin/sh",
            **command.env,
            _MARK: mark,
        }
        try:
            ended = await run_child(
                (*_die_with_us(), *LIMITS, *command.argv),
                cwd=command.cwd,
                env=env,
                stdin=command.stdin,
                timeout_s=command.timeout_s,
                output_limit=command.output_limit,
                guard=_Sweeper(f"{_MARK}={mark}".encode()),
            )
        finally:
            remove_tree(home)
        code = ended.returncode
        return Completed(
            exit_code=code if code >= 0 and not ended.timed_out else None,
            signal=-code if code < 0 and not ended.timed_out else None,
            timed_out=ended.timed_out,
            stdout=ended.stdout,
            stderr=ended.stderr,
            truncated=ended.truncated,
            seconds=ended.seconds,
        )

    async def canary(self) -> Proof:
        """Return that nothing is isolated, which is what was asked for."""
        return Proof(ok=True, why="nothing is isolated, as configured", advice="")


def _die_with_us() -> tuple[str, ...]:
    # A killed driver cannot kill its agents; the kernel can.
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()


@dataclass(frozen=True)
class _Sweeper:
    """Finds what a command started, by its session or by a mark in its environment, and kills it."""

    mark: bytes

    def started(self) -> None:
        """Nothing was handed over."""

    async def sweep(self, child: Child) -> None:
        for _ in range(_ROUNDS):
            found = [pid for pid in _pids() if self._is_ours(pid, child.pid)]
            if not found:
                return
            for pid in found:
                await _kill(pid)
        raise SandboxError("the command kept starting processes while it was being killed")

    def _is_ours(self, pid: int, session: int) -> bool:
        folder = Path("/proc", str(pid))
        with contextlib.suppress(OSError):
            state, *fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if state in {b"Z", b"X"}:
                return False
            if int(fields[_SESSION_FIELD - 1]) == session:
                return True
            return self.mark in (folder / "environ").read_bytes().split(b"\0")
        return False


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


async def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            await wait_gone(pidfd, _GONE_WITHIN_S)
        finally:
            os.close(pidfd)
