"""The box that isolates with bubblewrap, all namespaces unshared.

What is shown inside follows one recipe: the system read-only, a small made-up `/etc`, sized tmpfs for what must be
writable, the command's own mounts, and `/`, `/proc` and `/dev` made read-only last. The last step is not cosmetic: a
box started by root could otherwise write the host's `/proc/sys`.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import anyio

from pipeline.process import BOX_HOME, MODEL_PORT, MODEL_URL, BoxError, Command, Completed, Gateway, Mount, Namespaces
from pipeline.programs import SYSTEM_FOLDERS, SYSTEM_SETTINGS
from pipeline.sandbox.boxes import canary, helper_process, seccomp
from pipeline.sandbox.boxes.children import Channel, Child, opened_channel, run_child, wait_gone
from pipeline.sandbox.boxes.limits import OWN_LIMITS
from pipeline.sandbox.boxes.orphans import clear_orphans
from pipeline.trees import opened

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from pipeline.sandbox.boxes.canary import Proof

HOME: Final = str(BOX_HOME)
ENV: Final = {
    "HOME": HOME,
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "TMPDIR": "/tmp",  # noqa: S108  (a tmpfs of the box, not the host's)
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "USER": "agent",
    "SHELL": "/bin/sh",
}
_UID: Final = "1000"
_HOST: Final = "box"
_RESOLVER: Final = "/etc/resolv.conf"
MADE_UP: Final = {
    "/etc/passwd": f"root:x:0:0::/nonexistent:/bin/false\nagent:x:{_UID}:{_UID}::{HOME}:/bin/sh\n",
    "/etc/group": f"root:x:0:\nagent:x:{_UID}:\n",
    "/etc/hosts": "127.0.0.1 localhost box\n::1 localhost\n",
    "/etc/hostname": f"{_HOST}\n",
    "/etc/machine-id": f"{'b0' * 16}\n",
    _RESOLVER: "nameserver 127.0.0.1\n",
}
"""Files that say who and where a command is, the same in every box; with an open network the resolver is the host's."""


def options(command: Command, sources: Sequence[str], files: Mapping[str, int]) -> Iterator[str]:
    """Yield bwrap's options; they are passed by file descriptor, since argv is readable inside (`/proc/1/cmdline`).

    Args:
        command: What will run.
        sources: Where bwrap finds the command's mounts, in their order.
        files: Descriptors of the files that are made up.
    """
    yield from ("--unshare-all", "--unshare-user", "--uid", _UID, "--gid", _UID, "--disable-userns")
    yield from ("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL", "--hostname", _HOST)
    yield from _network(command.network)
    yield from _system()
    for path, descriptor in files.items():
        if path == _RESOLVER and command.network == "open":
            continue
        yield from ("--ro-bind-data", str(descriptor), path)
    yield from ("--proc", "/proc", "--dev", "/dev", "--size", _mib(64), "--tmpfs", "/dev/shm")  # noqa: S108  (inside)
    yield from ("--size", _mib(512), "--tmpfs", "/tmp", "--dir", "/var", "--symlink", "../tmp", "/var/tmp")  # noqa: S108  (inside)
    yield from ("--size", _mib(512), "--tmpfs", "/home", "--dir", HOME, "--size", _mib(16), "--tmpfs", "/run")
    for mount, source in zip(command.mounts, sources, strict=True):
        yield from ("--bind" if mount.writable else "--ro-bind", source, str(mount.target))
    model = {"REDFIRST_MODEL_URL": MODEL_URL} if command.network == "model" else {}
    for name, value in {**ENV, **command.env, **model}.items():
        yield from ("--setenv", name, value)
    yield from ("--remount-ro", "/dev", "--remount-ro", "/proc", "--remount-ro", "/", "--chdir", str(command.cwd))


def _network(network: str) -> Iterator[str]:
    match network:
        case "none":
            return
        case "model":
            yield "--share-net"  # with the namespace that the helper has made, not with the host's
        case "open":
            yield "--share-net"
            if Path(_RESOLVER).exists():
                yield from ("--ro-bind", str(Path(_RESOLVER).resolve()), _RESOLVER)
        case _:
            raise BoxError(f"this box has no network {network!r}")


def _system() -> Iterator[str]:
    for folder in SYSTEM_FOLDERS:
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    for path in SYSTEM_SETTINGS:
        if path.exists():
            yield from ("--ro-bind", str(path), str(path))


def _mib(count: int) -> str:
    return str(count * 1024 * 1024)


@contextlib.contextmanager
def mount_points(mounts: tuple[Mount, ...]) -> Generator[None]:
    """Create the missing mount points of nested mounts, and remove those that are still empty afterwards.

    A `.venv` shown over the view needs an empty folder there while it is mounted. Both go by descriptor: what runs in
    between may move the folders and put links in their places.

    Raises:
        BoxError: a folder on the way is something else; a link there would be followed out of the view.
    """
    with contextlib.ExitStack() as held:
        for index, mount in enumerate(mounts):
            if outer := _outer(mount, mounts[:index]):
                _create(outer, mount, held)
        yield


def refuse_links(mounts: tuple[Mount, ...]) -> None:
    """Check that each mount of a view's subfolder (`Mount.below`) is really in the view and not behind a link.

    Raises:
        BoxError: on the way there is a link, which would be followed out of the view, or nothing.
    """
    for mount in mounts:
        parts = PurePosixPath(mount.inner).parts
        if not parts:
            continue
        try:
            with contextlib.ExitStack() as held:
                folder = _top(mount.reach.parents[len(parts) - 1], held)
                for part in parts:
                    folder = held.enter_context(opened(part, folder))
        except OSError as error:
            raise BoxError(
                f"{mount.target} cannot be mounted: {mount.inner} is no folder of the view: {error.strerror}"
            ) from error


def _outer(mount: Mount, earlier: tuple[Mount, ...]) -> Mount | None:
    around = [other for other in earlier if other.target in mount.target.parents]
    return max(around, key=lambda other: len(other.target.parts), default=None)


def _create(outer: Mount, mount: Mount, held: contextlib.ExitStack) -> None:
    *folders, last = mount.target.relative_to(outer.target).parts
    folder = _top(outer.reach, held)
    for name in folders:
        _make(folder, name, mount, held, is_file=False)
        folder = held.enter_context(opened(name, folder))
    _make(folder, last, mount, held, is_file=not mount.reach.is_dir())


def _top(path: os.PathLike[str], held: contextlib.ExitStack) -> int:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # may be a link of /proc to a descriptor
    held.callback(os.close, folder)
    return folder


def _make(folder: int, name: str, mount: Mount, held: contextlib.ExitStack, *, is_file: bool) -> None:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        if is_file:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, dir_fd=folder))
        else:
            os.mkdir(name, dir_fd=folder)
        held.callback(_take_away, folder, name)
        return
    if not (stat.S_ISREG(mode) if is_file else stat.S_ISDIR(mode)):
        raise BoxError(f"{mount.target} cannot be mounted: something else is in the way at {name}")


def _take_away(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            os.rmdir(name, dir_fd=folder)
        elif stat.S_ISREG(status.st_mode) and status.st_size == 0:
            os.unlink(name, dir_fd=folder)


_STAGED: Final = next((path for path in ("/mnt", "/tmp") if Path(path).is_dir()), "/")  # noqa: S108  (hidden by a tmpfs of our own)
_GONE_WITHIN_S: Final = 10.0
_BY_SIGNAL: Final = 128
_CHILD_PID: Final = re.compile(rb'"child-pid": (\d+)')
_EXIT_CODE: Final = re.compile(rb'"exit-code": (\d+)')


@dataclass
class Bubblewrap:
    """A box that runs each command under `bwrap`, a program of the host.

    Args:
        program: Where bwrap is.
        owner: The unprivileged user that the box's processes are on the host, for a driver that runs as root; None for
            the driver's own.
    """

    program: str
    owner: int | None = None
    name: str = "bubblewrap"
    networks: frozenset[str] = frozenset({"none", "model", "open"})
    maps_paths: bool = True
    _proof: Proof | None = field(default=None, init=False)

    def inside(self, host: Path, target: Path) -> Path:  # noqa: ARG002  (the box maps paths)
        """Return `target`: mounts are shown at the path asked for."""
        return target

    async def run(self, command: Command) -> Completed:
        """Run a command until it ends or meets a limit; all its processes are dead on return.

        Raises:
            BoxError: the box could not be set up, or was killed from outside.
            Exception: whatever the command's talk has raised.
        """
        if command.network == "model" and command.gateway is None:
            raise BoxError("network model needs a gateway, and the command has none")
        # Outer mounts first: one that comes later would hide what is mounted below its target.
        command = replace(command, mounts=tuple(sorted(command.mounts, key=lambda mount: len(mount.target.parts))))
        refuse_links(command.mounts)
        with contextlib.ExitStack() as stack:
            stack.enter_context(mount_points(command.mounts))
            channel, told = stack.enter_context(opened_channel(command))
            start = stack.enter_context(_start(self, replace(command, env={**command.env, **told})))
            ended = await _run_with_gateway(start, command, channel)
        if ended.exit_code is None and ended.signal is None and not ended.timed_out:
            words = ended.stderr.decode(errors="replace").strip()[-2000:]
            raise BoxError(words or f"bubblewrap ended with {start.status.returncode} before the command did")
        return ended

    async def canary(self) -> Proof:
        """Return the proof that a command in this box can neither write, connect nor look outside (tried once)."""
        if self._proof is None:
            clear_orphans()
            self._proof = await canary.prove(self)
        return self._proof


@dataclass(frozen=True)
class _Start:
    """The argv and descriptors that start one box."""

    argv: tuple[str, ...]
    descriptors: tuple[int, ...]
    status: _Status


@contextlib.contextmanager
def _start(box: Bubblewrap, command: Command) -> Generator[_Start]:
    """Yield the argv of `command` in a box: [enter the view's namespaces] [helper] bwrap, then the command."""
    with contextlib.ExitStack() as stack:
        namespaces = _namespaces(command)
        status = stack.enter_context(_status_pipe(model=command.network == "model"))
        files = {path: stack.enter_context(helper_process.memory_file(text.encode())) for path, text in MADE_UP.items()}
        sources = _sources(box, command)
        said = [*options(command, sources, files), "--json-status-fd", str(status.write_end)]
        descriptors = [status.write_end, *files.values()]
        if rules := seccomp.program():
            descriptors.append(stack.enter_context(helper_process.memory_file(rules)))
            said += ["--seccomp", str(descriptors[-1])]
        descriptors.append(stack.enter_context(helper_process.memory_file("\0".join([*said, ""]).encode())))
        argv = (box.program, "--args", str(descriptors[-1]), "--", *OWN_LIMITS, *command.argv)
        if box.owner is not None or status.channel is not None:
            descriptors += [] if status.far is None else [status.far.fileno()]
            argv, told = stack.enter_context(helper_process.helper_command(_order(box, command, argv, status)))
            descriptors.append(told)
        if namespaces is None and status.channel is not None and box.owner is None:
            argv = (helper_process.tool("unshare"), "--user", "--map-root-user", "--", *argv)
        yield _Start((*helper_process.namespace_prefix(namespaces), *argv), tuple(descriptors), status)


def _namespaces(command: Command) -> Namespaces | None:
    return next((mount.within for mount in command.mounts if mount.within is not None), None)


def _sources(box: Bubblewrap, command: Command) -> tuple[str, ...]:
    if box.owner is None:
        return tuple(str(mount.source) for mount in command.mounts)
    return tuple(f"{_STAGED}/{number}" for number in range(len(command.mounts)))


def _order(box: Bubblewrap, command: Command, argv: tuple[str, ...], status: _Status) -> dict[str, object]:
    return {
        "do": "box",
        "owner": box.owner,
        "stage": _STAGED,
        "mounts": [
            {"source": str(mount.source), "map": mount.within is None, "writable": mount.writable}
            for mount in command.mounts
        ],
        "port": None if status.far is None else MODEL_PORT,
        "control": None if status.far is None else status.far.fileno(),
        "argv": argv,
    }


async def _run_with_gateway(start: _Start, command: Command, channel: Channel | None) -> Completed:
    """Run the box, and let the gateway answer on the socket that the helper sends.

    Raises:
        BoxError: the box could not be set up.
        Exception: whatever the command's talk has raised.
    """
    ended: Completed | None = None
    failed: Exception | None = None
    async with anyio.create_task_group() as tasks:
        if start.status.channel is not None and command.gateway is not None:
            tasks.start_soon(_serve, start.status.channel, command.gateway)
        try:
            ended = await run_child(
                command,
                start.argv,
                cwd=Path("/"),
                env={"PATH": ENV["PATH"]},
                guard=start.status,
                pass_fds=start.descriptors,
                channel=channel,
            )
        except Exception as error:  # noqa: BLE001  (out of a task group it would come as a group)
            failed = error
        tasks.cancel_scope.cancel()
    if ended is None:
        raise failed or BoxError("the box was cancelled")
    return ended


async def _serve(channel: socket.socket, gateway: Gateway) -> None:
    await anyio.wait_readable(channel)
    try:
        (listener,) = helper_process.received_descriptors(channel, 1)
    except BoxError:
        return  # the box failed before it had a network, and says so itself
    async with gateway.serve(socket.socket(fileno=listener)):
        await anyio.sleep_forever()


@dataclass
class _Status:
    """The status pipe of bwrap: the host pid of the box's init, and the exit code once the command ended."""

    read_end: int
    write_end: int
    channel: socket.socket | None = None
    far: socket.socket | None = None
    returncode: int = 0
    _said: bytes = b""
    _open: bool = True

    def started(self) -> None:
        os.close(self.write_end)
        if self.far is not None:
            self.far.close()

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
                raise BoxError("processes of the box did not end when it was killed")
        finally:
            os.close(pidfd)

    def code(self, returncode: int) -> int | None:
        self.returncode = returncode
        self._read()
        found = _EXIT_CODE.search(self._said)
        if found is None:
            return None
        code = int(found[1])
        # A process that a signal ended is reported by the init of the box the way that a shell does.
        return _BY_SIGNAL - code if code - _BY_SIGNAL in set(signal.Signals) else code

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.read_end, 4096):
                self._said += chunk
            self._open = False

    def _init(self) -> int | None:
        """Return a pidfd of the box's init, None if it has ended (its number may be reused)."""
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
def _status_pipe(*, model: bool) -> Generator[_Status]:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    channel, far = socket.socketpair() if model else (None, None)
    try:
        yield _Status(read_end, write_end, channel, far)
    finally:
        os.close(read_end)
        for end in (channel, far):
            if end is not None:
                end.close()
