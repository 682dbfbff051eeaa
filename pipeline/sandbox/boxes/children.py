"""Runs a child process: feeds it, collects what it says, limits its time and ends it with the box's `Guard`."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import struct
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from subprocess import PIPE
from typing import TYPE_CHECKING, Final, Protocol

import anyio
import anyio.lowlevel

from pipeline.process import NO_ANSWER, SOCKET, Answer, BoxError, Completed
from pipeline.sandbox.boxes.orphans import Recording

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping
    from pathlib import Path

    from anyio.abc import ByteReceiveStream, ByteSendStream, Process

    from pipeline.process import Command, Talk

_CHUNK: Final = 65_536
_BREAK: Final = re.compile(rb"[\r\n]+")
_LONGEST: Final = 256_000
"""The longest line, in bytes, that is passed on; of a longer one nothing is: half of it might be half of a secret."""


@dataclass
class Lines:
    """Passes each whole line of a stream on to `on_line`; a carriage return ends one, too."""

    on_line: Callable[[bytes], None]
    _begun: bytearray = field(default_factory=bytearray)
    _too_long: bool = False

    def take(self, chunk: bytes) -> None:
        """Add the stream's next bytes."""
        *whole, rest = _BREAK.split(chunk)
        for line in whole:
            self._add(line)
            if self._begun and not self._too_long:
                self.on_line(bytes(self._begun))
            self._begun.clear()
            self._too_long = False
        self._add(rest)

    def _add(self, more: bytes) -> None:
        if self._too_long or len(self._begun) + len(more) > _LONGEST:
            self._too_long = True
            self._begun.clear()
            return
        self._begun += more


@dataclass
class Capture:
    """Collects the beginning and the end of a stream, at most `limit` bytes together; `lines` hear of all of it.

    The beginning has the first error, the end the report.
    """

    limit: int
    lines: Lines | None = None
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def take(self, chunk: bytes) -> None:
        """Add the stream's next bytes."""
        if self.lines is not None:
            self.lines.take(chunk)
        self.total += len(chunk)
        room = self.limit // 2 - len(self.head)
        self.head += chunk[:room]
        self.tail += chunk[room:]
        if len(self.tail) > 2 * self.limit:
            del self.tail[: -self.limit]

    @property
    def truncated(self) -> bool:
        """Return whether bytes in the middle were dropped."""
        return self.total > self.limit

    def content(self) -> bytes:
        """Return the kept bytes, with a line in the place of dropped ones."""
        if not self.truncated:
            return bytes(self.head + self.tail)
        end = self.tail[len(self.head) - self.limit :]
        dropped = self.total - len(self.head) - len(end)
        return bytes(self.head) + f"\n[... {dropped} bytes left out ...]\n".encode() + bytes(end)


# --- the socket of a command ------------------------------------------------------------------------------------


_CREDENTIALS: Final = struct.Struct("iII")  # struct ucred: process, user, group


@dataclass
class Channel:
    """A socket between the driver and one command: the command reads its request from it and writes its records to it.

    A socket cannot be opened by name, not even through `/proc`, so nobody reads what was written, and nothing can be
    put in its place: no link, no FIFO, no device. The kernel says which process wrote each piece. What comes is bounded
    in size (ADR-R95). The command's end is closed here once the command has started.
    """

    near: socket.socket
    far: socket.socket
    request: bytes
    limit: int
    _data: bytearray = field(default_factory=bytearray, init=False)
    _writer: int = field(default=0, init=False)
    _fault: str = field(default="", init=False)

    @property
    def number(self) -> int:
        """Return the file descriptor that the command inherits."""
        return self.far.fileno()

    def started(self) -> None:
        """Close the command's end in the driver, after the command has inherited it."""
        self.far.close()

    async def serve(self) -> None:
        """Send the request, then receive records until the command closes its end or breaks a rule."""
        await self._send()
        while not self._fault:
            await anyio.lowlevel.checkpoint()  # who writes without end may not hold up a time limit
            try:
                if not self._receive():
                    return
            except BlockingIOError:
                await anyio.wait_readable(self.near)
        self.near.close()  # what writes on is told so, instead of waiting for a reader

    def answer(self) -> Answer:
        """Return the received records, and the rule that was broken, if any."""
        return Answer(bytes(self._data), self._fault)

    async def _send(self) -> None:
        left = memoryview(self.request)
        while left:
            try:
                left = left[self.near.send(left) :]
            except BlockingIOError:
                await anyio.wait_writable(self.near)
            except OSError:  # it ended, and will not be told
                return
        with contextlib.suppress(OSError):
            self.near.shutdown(socket.SHUT_WR)

    def _receive(self) -> bool:
        """Receive what has arrived; return whether more may come."""
        try:
            data, notes, _, _ = self.near.recvmsg(_CHUNK, socket.CMSG_SPACE(_CREDENTIALS.size))
        except ConnectionError:
            return False
        if not data:
            return False
        writer = next((_CREDENTIALS.unpack(value)[0] for _, kind, value in notes if kind == socket.SCM_CREDENTIALS), 0)
        self._writer = self._writer or writer
        if writer != self._writer:
            self._fault = "another process wrote into the records"
        elif len(self._data) + len(data) > self.limit:
            self._fault = f"the records are larger than {self.limit} bytes"
        else:
            self._data += data
        return True


@contextlib.contextmanager
def opened_channel(command: Command) -> Generator[tuple[Channel | None, dict[str, str]]]:
    """Yield a command's channel and the environment variable that names it; None and {} for one without a request."""
    if command.request is None:
        yield None, {}
        return
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with near, far:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        near.setblocking(False)
        channel = Channel(near, far, command.request, command.answer_limit)
        yield channel, {SOCKET: str(channel.number)}


_IGNORED_IN_BACKGROUND: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


@contextlib.contextmanager
def default_for_children() -> Generator[None]:
    """Handle the signals that this process ignores while children are started, for which they are then default.

    A shell starts what it puts in the background with SIGINT and SIGQUIT ignored, `nohup` with SIGHUP, and a child
    inherits that for good. Tests that interrupt a program of theirs would then measure how redfirst was started.
    """
    ignored = [number for number in _IGNORED_IN_BACKGROUND if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda _number, _frame: None)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


_GRACE_S: Final = 5.0
_FAREWELL_S: Final = 2.0
"""The seconds that a command gets to end by itself after its talk is over: its result is known."""
_recording: ContextVar[Recording | None] = ContextVar("recording", default=None)


@contextlib.contextmanager
def recorded(path: Path, box: str) -> Generator[None]:
    """Record at `path` which process runs, while a command of this async task runs in `box` (see `recording`)."""
    token = _recording.set(Recording(path, box))
    try:
        yield
    finally:
        _recording.reset(token)


@dataclass(frozen=True)
class Child:
    """A started process. Signals go by pidfd: Popen's own kill() would race with asyncio's reaper."""

    pid: int
    pidfd: int | None

    def kill(self) -> None:
        """Kill the process if it still exists."""
        if self.pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)


class Guard(Protocol):
    """The hooks by which a box ends the processes that it started."""

    def started(self) -> None:
        """Release the file descriptors that the child has inherited."""
        ...

    async def sweep(self, child: Child) -> None:
        """Kill every process that was started and return when all are gone; the child itself may have ended.

        Raises:
            BoxError: something survived.
        """
        ...

    def code(self, returncode: int) -> int | None:
        """Return the command's exit code, given the child's: negative for a signal, None if it has none."""
        ...


@dataclass
class _Conversation:
    """A talk with the child over its streams. When it is `over` the child is not waited for any longer."""

    talk: Talk
    over: anyio.CancelScope
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    failed: Exception | None = None

    async def hold(self, stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        try:
            with self.scope:
                await self.talk(stdin, stdout)
        except Exception as error:  # noqa: BLE001  (out of a task group it would come as a group)
            self.failed = error
            self.over.cancel()
            return
        self.over.deadline = anyio.current_time() + _FAREWELL_S
        await _close(stdin)
        await _drain(stdout, Capture(_CHUNK))  # a child that could not write could not end


async def run_child(
    command: Command,
    argv: tuple[str, ...],
    *,
    cwd: Path,
    env: Mapping[str, str],
    guard: Guard,
    pass_fds: tuple[int, ...] = (),
    mark: str = "",
    channel: Channel | None,
) -> Completed:
    """Run the child until it ends, is over its time limit or is cancelled; all its processes are dead on return.

    Args:
        command: What runs in the box.
        argv: The program that runs it, by its path, and its arguments.
        cwd: Where that starts.
        env: Its whole environment.
        guard: What the box knows about its processes.
        pass_fds: Descriptors that it inherits.
        mark: `NAME=value` in the environment of all that it starts, if the box needs one to find them.
        channel: The socket on which it gets a request and answers; it inherits the other end.

    Raises:
        BoxError: the child could not be started, or something of it survived.
        Exception: whatever the command's talk has raised.
    """
    began = time.monotonic()
    heard = command.on_line
    captures = tuple(Capture(command.output_limit, Lines(heard) if heard is not None else None) for _ in range(2))
    process = await _start(argv, cwd, env, pass_fds if channel is None else (*pass_fds, channel.number))
    for holder in filter(None, (guard, channel)):
        holder.started()
    recording = _recording.get()
    if recording is not None:
        recording.write(process.pid, mark)
    limit = anyio.CancelScope(deadline=anyio.current_time() + command.timeout_s)
    over = anyio.CancelScope()
    conversation = None if command.talk is None else _Conversation(command.talk, over)
    survived: BoxError | None = None
    async with process, _child(process.pid) as child, anyio.create_task_group() as streams:
        stdin_pipe, stdout_pipe, stderr_pipe = _pipes(process)
        try:
            if conversation is None:
                streams.start_soon(_feed, stdin_pipe, command.stdin)
                streams.start_soon(_drain, stdout_pipe, captures[0])
            else:
                streams.start_soon(conversation.hold, stdin_pipe, stdout_pipe)
            streams.start_soon(_drain, stderr_pipe, captures[1])
            if channel is not None:
                streams.start_soon(channel.serve)
            with limit, over:
                # asyncio's own wait() may return only when all pipes are closed, which a daemon can delay.
                if child.pidfd is not None:
                    await anyio.wait_readable(child.pidfd)
            if conversation is not None and limit.cancelled_caught:
                conversation.scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await guard.sweep(child)
                except BoxError as error:  # out of a task group it would come as a group
                    survived = error
                with anyio.move_on_after(_GRACE_S):
                    await process.wait()
        streams.cancel_scope.deadline = anyio.current_time() + _GRACE_S
    returncode = _ended(process, argv, survived)
    if recording is not None:
        recording.remove()
    if conversation is not None and conversation.failed is not None:
        raise conversation.failed
    code = None if limit.cancelled_caught else -signal.SIGKILL if over.cancelled_caught else guard.code(returncode)
    return Completed(
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        timed_out=limit.cancelled_caught,
        stdout=captures[0].content(),
        stderr=captures[1].content(),
        truncated=any(capture.truncated for capture in captures),
        seconds=time.monotonic() - began,
        answer=channel.answer() if channel is not None else NO_ANSWER,
    )


async def wait_gone(pidfd: int, timeout_s: float) -> bool:
    """Return whether the process behind `pidfd` ends within `timeout_s`."""
    with anyio.move_on_after(timeout_s):
        await anyio.wait_readable(pidfd)
        return True
    return False


async def _start(argv: tuple[str, ...], cwd: Path | None, env: Mapping[str, str], pass_fds: tuple[int, ...]) -> Process:
    await anyio.lowlevel.checkpoint()
    # Cancelled half-way, open_process would lose a process that runs already; the wait for its end can be cancelled.
    with anyio.CancelScope(shield=True), default_for_children():
        try:
            return await anyio.open_process(
                argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=cwd, env=env, start_new_session=True, pass_fds=pass_fds
            )
        except OSError as error:
            raise BoxError(f"{argv[0]} could not be started: {error}") from error
    raise BoxError(f"{argv[0]} was cancelled while it was being started")


def _ended(process: Process, argv: tuple[str, ...], survived: BoxError | None) -> int:
    """Return the child's exit code; fail if a process survived its killing.

    Raises:
        BoxError: it did not, or something of it is left.
    """
    if survived is not None:
        raise survived
    if process.returncode is None:
        raise BoxError(f"{argv[0]} did not end when it was killed")
    return process.returncode


def _pipes(process: Process) -> tuple[ByteSendStream, ByteReceiveStream, ByteReceiveStream]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise BoxError("a process was started without pipes")
    return process.stdin, process.stdout, process.stderr


@contextlib.asynccontextmanager
async def _child(pid: int) -> AsyncGenerator[Child]:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        yield Child(pid, None)
        return
    try:
        yield Child(pid, pidfd)
    finally:
        os.close(pidfd)


async def _feed(stream: ByteSendStream, data: bytes) -> None:
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await stream.send(data)
    await _close(stream)


async def _close(stream: ByteSendStream) -> None:
    with contextlib.suppress(anyio.BrokenResourceError, OSError):
        await stream.aclose()


async def _drain(stream: ByteReceiveStream, capture: Capture) -> None:
    with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            capture.take(await stream.receive(_CHUNK))
