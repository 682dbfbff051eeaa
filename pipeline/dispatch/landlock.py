"""The second kernel box: Landlock and a filter of system calls, for machines that give no user namespaces.

Paths, processes and clock of the host are visible, and nothing is mapped; what is kept is that a command can

* change nothing but its writable mounts, its HOME and TMPDIR, and read nothing but the system, its mounts and `/proc`,
* make no socket of any kind, so no role that needs a network can run in it,
* signal, trace or read the memory of no process outside,
* leave no process behind, whatever it does.

Not kept, unlike in bubblewrap: names and attributes of files everywhere (stat), command lines of other processes, what
else `/proc` tells of them; what is written is bounded by the size of one file only, and who has too many processes and
threads is ended, but up to a quarter of a second late.
What does not work: shared memory by name (`/dev/shm` is closed), watching folders (tools poll), attributes of files, a
tool that insists on a configuration in a folder above the view: it is there, and cannot be read.

A driver that runs as root has its commands run as user 0, which owns most files of the host: without any capability, so
that Landlock and the filter are all that holds it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.dispatch import canary
from pipeline.dispatch.canary import Proof
from pipeline.dispatch.children import run_child, wait_gone
from pipeline.dispatch.landlock_kernel import missing_landlock
from pipeline.dispatch.limits import LIMITS
from pipeline.dispatch.mount_points import refuse_links
from pipeline.dispatch.seccomp import UnknownProcessorError, program
from pipeline.dispatch.staging import memory_file
from pipeline.dispatch.trees import remove_tree
from pipeline.process import Command, Completed, SandboxError
from pipeline.programs import SYSTEM_FOLDERS, SYSTEM_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Generator

    from pipeline.dispatch.children import Child

_ROOT: Final = Path(__file__).parents[2]
_LAUNCHER: Final = "from pipeline.dispatch.landlock_launcher import main; main()"
_MARK: Final = "REDFIRST_BOX"
_NAMES: Final = tuple(Path("/etc", name) for name in ("passwd", "group", "hosts"))
"""What bubblewrap makes up."""
_DEVICES: Final = tuple(Path("/dev", name) for name in ("null", "zero", "random", "urandom"))
_PROC: Final = Path("/proc")
_ENDED_WITHIN_S: Final = 10.0
_KERNEL: Final = "Use Linux 6.12 or newer with Landlock enabled, or install bubblewrap"


@dataclass
class Landlock:
    """Runs commands under Landlock rules, below a supervisor of their own. Paths must be the host's (see `inside`)."""

    name: str = "landlock"
    networks: frozenset[str] = frozenset({"none"})
    maps_paths: bool = False
    owner: int | None = None
    _proof: Proof | None = field(default=None, init=False)

    def inside(self, host: Path, target: Path) -> Path:  # noqa: ARG002  (nothing is mapped)
        """Return `host`."""
        return host

    async def run(self, command: Command) -> Completed:
        """Run to the end or to its limits; every process of the command is dead on return.

        Raises:
            SandboxError: the command could not be confined as it asks, or its supervisor was killed.
            Exception: whatever the command's talk has raised.
        """
        _refuse_what_it_cannot_keep(command)
        home = Path(tempfile.mkdtemp(prefix="redfirst-home-"))
        mark = secrets.token_hex(16)
        try:
            said = json.dumps(_order(command, home, mark)).encode()
            with memory_file(said) as order, _reins() as reins:
                ended = await run_child(
                    (sys.executable, "-S", "-s", "-P", "-c", _LAUNCHER, *map(str, (order, *reins.far_ends))),
                    cwd=Path("/"),
                    env={"PYTHONPATH": str(_ROOT)},  # not in argv, which the command can read
                    stdin=command.stdin,
                    timeout_s=command.timeout_s,
                    output_limit=command.output_limit,
                    guard=reins,
                    pass_fds=(order, *reins.far_ends),
                    mark=f"{_MARK}={mark}",
                    talk=command.talk,
                )
                code = reins.exit_code()
        finally:
            remove_tree(home)
        return ended.completed(code)

    async def canary(self) -> Proof:
        """Return whether a command in this box can neither write, connect nor look outside (tried once)."""
        if self._proof is None:
            missing = missing_landlock()
            self._proof = (
                Proof(ok=False, why=missing, advice=_KERNEL) if missing else await canary.prove(self, root=True)
            )
        return self._proof


def _refuse_what_it_cannot_keep(command: Command) -> None:
    if missing := missing_landlock():
        raise SandboxError(missing)
    if command.network != "none":
        raise SandboxError(
            f"a command in the Landlock box can have no network, and this one asks for {command.network}"
        )
    if any(mount.within is not None for mount in command.mounts):
        raise SandboxError("an overlay view cannot be shown without namespaces")
    refuse_links(command.mounts)
    try:
        program(sockets=False, supervised=True)
    except UnknownProcessorError as error:
        raise SandboxError(str(error)) from None


def _order(command: Command, home: Path, mark: str) -> dict[str, object]:
    system = [path for path in (*SYSTEM_FOLDERS, *SYSTEM_SETTINGS, *_NAMES, _PROC) if path.exists()]
    own = {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "USER": "agent",
        "SHELL": "/bin/sh",
        "GIT_CONFIG_NOSYSTEM": "1",  # git ends where the system has a configuration that it may not read
    }
    return {
        "driver": os.getpid(),
        "argv": [*LIMITS, *command.argv],
        "cwd": str(command.cwd),
        "env": {**own, **command.env, _MARK: mark},
        "read": [str(path) for path in (*system, *(mount.source for mount in command.mounts if not mount.writable))],
        "write": [str(home), *(str(mount.source) for mount in command.mounts if mount.writable)],
        "use": [str(path) for path in _DEVICES],
    }


@dataclass
class _Reins:
    """Two pipes: the supervisor says on one what became of the command, and ends it when the other is closed."""

    answer: int
    hold: int
    far_ends: tuple[int, int]
    _said: str = ""

    def started(self) -> None:
        for descriptor in self.far_ends:
            os.close(descriptor)

    async def sweep(self, child: Child) -> None:
        # The supervisor itself is never killed: who would end the processes of the command then?
        self.let_go()
        if child.pidfd is not None and not await wait_gone(child.pidfd, _ENDED_WITHIN_S):
            raise SandboxError("the processes of the box did not end when they were killed")
        with contextlib.suppress(BlockingIOError):
            self._said = os.read(self.answer, 65_536).decode(errors="replace")
        if not self._said:
            raise SandboxError("the supervisor of the box was killed, and what the command started may still run")

    def let_go(self) -> None:
        if self.hold >= 0:
            os.close(self.hold)
            self.hold = -1

    def exit_code(self) -> int:
        """Return the command's exit code, or the number of the signal that ended it, negative.

        Raises:
            SandboxError: it did not come to run.
        """
        outcome, _, words = self._said.partition(" ")
        if outcome != "ended":
            raise SandboxError(f"the command could not be confined: {words}")
        return os.waitstatus_to_exitcode(int(words))


@contextlib.contextmanager
def _reins() -> Generator[_Reins]:
    answer, answering = os.pipe()
    held, hold = os.pipe()
    os.set_blocking(answer, False)
    reins = _Reins(answer, hold, (answering, held))
    try:
        yield reins
    finally:
        reins.let_go()
        os.close(answer)
