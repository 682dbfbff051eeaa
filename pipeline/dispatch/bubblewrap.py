"""The kernel box: bubblewrap with everything unshared.

What is shown inside follows one recipe: the system read-only, a small made-up `/etc`, sized tmpfs for what must be
writable, the command's own mounts, and `/`, `/proc` and `/dev` made read-only last. The last step is not cosmetic: a
box started by root could otherwise write the host's `/proc/sys` (architecture 6, Box).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.dispatch import canary
from pipeline.dispatch.children import LIMITS, run_child, wait_gone
from pipeline.dispatch.mount_points import mount_points
from pipeline.dispatch.orphans import clear_orphans
from pipeline.process import Completed, SandboxError
from pipeline.programs import SYSTEM_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pipeline.dispatch.canary import Proof
    from pipeline.dispatch.children import Child
    from pipeline.process import Command

_HOME: Final = "/home/agent"
_ENV: Final = {
    "HOME": _HOME,
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "TMPDIR": "/tmp",  # noqa: S108  (a tmpfs of the box, not the host's)
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "USER": "agent",
    "SHELL": "/bin/sh",
}
_UID: Final = "1000"
# /etc/profile stays out: a login shell would reset PATH. /etc/ssl as a whole stays out: it has private keys.
_ETC: Final = (
    "alternatives", "ca-certificates", "crypto-policies", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "mime.types", "nsswitch.conf", "pki/ca-trust", "pki/tls/certs", "protocols", "services", "ssl/cert.pem",
    "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
_MADE_UP: Final = {
    "/etc/passwd": f"root:x:0:0::/nonexistent:/bin/false\nagent:x:{_UID}:{_UID}::{_HOME}:/bin/sh\n",
    "/etc/group": f"root:x:0:\nagent:x:{_UID}:\n",
    "/etc/hosts": "127.0.0.1 localhost box\n::1 localhost\n",
}
_GONE_WITHIN_S: Final = 10.0
_BY_SIGNAL: Final = 128
_CHILD_PID: Final = re.compile(rb'"child-pid": (\d+)')
_EXIT_CODE: Final = re.compile(rb'"exit-code": (\d+)')


@dataclass
class Bubblewrap:
    """Runs commands under `bwrap`, which is a program of the host."""

    program: str
    name: str = "bubblewrap"
    maps_paths: bool = True
    _proof: Proof | None = field(default=None, init=False)

    def inside(self, host: Path, target: Path) -> Path:  # noqa: ARG002  (the box maps paths)
        """Return `target`."""
        return target

    async def run(self, command: Command) -> Completed:
        """Run to the end or to its limits; every process of the command is dead on return.

        Raises:
            SandboxError: the box could not be set up, or was killed from outside.
        """
        # Outer mounts first: one that comes later would hide what is mounted below its target.
        command = replace(command, mounts=tuple(sorted(command.mounts, key=lambda mount: len(mount.target.parts))))
        with contextlib.ExitStack() as stack:
            stack.enter_context(mount_points(command.mounts))
            status = stack.enter_context(_status_pipe())
            files = {path: stack.enter_context(_memory_file(text.encode())) for path, text in _MADE_UP.items()}
            arguments = "\0".join([*_arguments(command, files), "--json-status-fd", str(status.write_end)])
            args_fd = stack.enter_context(_memory_file(arguments.encode() + b"\0"))
            ended = await run_child(
                (self.program, "--args", str(args_fd), "--", *LIMITS, *command.argv),
                cwd=Path("/"),
                env={"PATH": _ENV["PATH"]},
                stdin=command.stdin,
                timeout_s=command.timeout_s,
                output_limit=command.output_limit,
                guard=status,
                pass_fds=(args_fd, status.write_end, *files.values()),
            )
            code = status.exit_code()
        if code is None and not ended.timed_out:
            words = ended.stderr.decode(errors="replace").strip()[-2000:]
            raise SandboxError(words or f"bubblewrap ended with {ended.returncode} before the command did")
        # A process that a signal ended is reported by the init of the box the way that a shell does.
        by_signal = code is not None and code - _BY_SIGNAL in set(signal.Signals)
        return Completed(
            exit_code=None if ended.timed_out or by_signal else code,
            signal=code - _BY_SIGNAL if code is not None and by_signal and not ended.timed_out else None,
            timed_out=ended.timed_out,
            stdout=ended.stdout,
            stderr=ended.stderr,
            truncated=ended.truncated,
            seconds=ended.seconds,
        )

    async def canary(self) -> Proof:
        """Return whether a command in this box can neither write, connect nor look outside (tried once)."""
        if self._proof is None:
            clear_orphans()
            self._proof = await canary.prove(self)
        return self._proof


def _arguments(command: Command, files: dict[str, int]) -> Iterator[str]:
    """Yield bwrap's arguments; they travel by file descriptor, since argv is readable inside (`/proc/1/cmdline`)."""
    yield from ("--unshare-all", "--unshare-user", "--uid", _UID, "--gid", _UID, "--disable-userns")
    yield from ("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL", "--hostname", "box")
    yield from _network(command.network)
    yield from _system()
    for path, descriptor in files.items():
        yield from ("--ro-bind-data", str(descriptor), path)
    yield from ("--proc", "/proc", "--dev", "/dev", "--size", _mib(64), "--tmpfs", "/dev/shm")  # noqa: S108  (inside)
    yield from ("--size", _mib(512), "--tmpfs", "/tmp", "--dir", "/var", "--symlink", "../tmp", "/var/tmp")  # noqa: S108  (inside)
    yield from ("--size", _mib(512), "--tmpfs", "/home", "--dir", _HOME, "--size", _mib(16), "--tmpfs", "/run")
    for mount in command.mounts:
        yield from ("--bind" if mount.writable else "--ro-bind", str(mount.source), str(mount.target))
    for name, value in {**_ENV, **command.env}.items():
        yield from ("--setenv", name, value)
    yield from ("--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro", "/", "--chdir", str(command.cwd))


def _network(network: str) -> Iterator[str]:
    match network:
        case "none":
            return
        case "open":
            yield "--share-net"
            if Path("/etc/resolv.conf").exists():
                yield from ("--ro-bind", str(Path("/etc/resolv.conf").resolve()), "/etc/resolv.conf")
        case _:
            raise SandboxError(f"this box has no network {network!r}")


def _system() -> Iterator[str]:
    for folder in SYSTEM_FOLDERS:
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    for name in _ETC:
        if (Path("/etc") / name).exists():
            yield from ("--ro-bind", f"/etc/{name}", f"/etc/{name}")


def _mib(count: int) -> str:
    return str(count * 1024 * 1024)


@dataclass
class _Status:
    """What bwrap tells about itself: the host pid of the box's init, and the exit code once the command ended."""

    read_end: int
    write_end: int
    _said: bytes = b""
    _open: bool = True

    def started(self) -> None:
        os.close(self.write_end)

    async def sweep(self, child: Child) -> None:
        # Killed before it told the pid of the init, bwrap would leave an init that waits for it for ever.
        with anyio.move_on_after(_GONE_WITHIN_S):
            while self._open and not _CHILD_PID.search(self._said):
                await anyio.wait_readable(self.read_end)
                self._read()
        pidfd = self._init()
        child.kill()
        if pidfd is None:
            return
        try:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            # The init is gone only after the kernel has ended and reaped everything in its pid namespace.
            if not await wait_gone(pidfd, _GONE_WITHIN_S):
                raise SandboxError("processes of the box did not end when it was killed")
        finally:
            os.close(pidfd)

    def exit_code(self) -> int | None:
        self._read()
        found = _EXIT_CODE.search(self._said)
        return int(found[1]) if found else None

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.read_end, 4096):
                self._said += chunk
            self._open = False

    def _init(self) -> int | None:
        """Return a descriptor of the box's init, None if it is gone (and its number perhaps taken by another)."""
        found = _CHILD_PID.search(self._said)
        if found is None:
            return None
        pid = int(found[1])
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(pid)
            text = Path(f"/proc/{pid}/status").read_text()
            if re.search(r"^NSpid:.*\t1$", text, re.MULTILINE):
                return pidfd
            os.close(pidfd)
        return None


@contextlib.contextmanager
def _status_pipe() -> Generator[_Status]:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    try:
        yield _Status(read_end, write_end)
    finally:
        os.close(read_end)


@contextlib.contextmanager
def _memory_file(content: bytes) -> Generator[int]:
    descriptor = os.memfd_create("box")
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
