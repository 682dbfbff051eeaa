"""The values and protocols for running one process in a box (`boxes/box.py`): what to start, and how it ended.

A command that fails is data (`Completed`); a box that fails is an exception (`BoxError`). RED must never be
inferred from the second.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  (dataclasses and pyright read it at run time)
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import ByteReceiveStream, ByteSendStream

WORKSPACE: Final = Path("/redfirst-view")
"""The path of a view in the box: always the same, and one where no host keeps code."""

BOX_HOME: Final = Path("/home/agent")
"""The home folder of a command in a box that maps paths: empty and writable at first, gone with the box."""

MODEL_PORT: Final = 8080
MODEL_URL: Final = f"http://127.0.0.1:{MODEL_PORT}"
"""The URL of the model service for a command with network `model`; the box sets it as `REDFIRST_MODEL_URL`."""


SOCKET: Final = "REDFIRST_SOCKET"
"""The variable with the descriptor number of a command's socket, if the command has a request."""


class BoxError(Exception):
    """The box itself failed, which says nothing about the command in it."""


@dataclass(frozen=True)
class Namespaces:
    """Open descriptors of the namespaces in which a mount exists that the host itself does not have.

    Args:
        mount: The mount namespace.
        top: The folder that the mount shows, so that this process can reach what is in it.
        user: The user namespace that owns it; None if it is the host's.
    """

    mount: int
    top: int
    user: int | None = None


@dataclass(frozen=True)
class Mount:
    """A host path that the box shows at `target`; read-only unless `writable`.

    `source` is a path of the host, or of the namespaces `within`, where it is the folder `inner` of their top.
    """

    source: Path
    target: Path
    writable: bool = False
    within: Namespaces | None = None
    inner: str = ""

    @property
    def reach(self) -> Path:
        """Return the path at which this process finds the content of `source`."""
        return self.source if self.within is None else Path(f"/proc/self/fd/{self.within.top}", self.inner)

    def below(self, relative: str, target: Path) -> Mount:
        """Return the mount of the subfolder `relative`."""
        return replace(self, source=self.source / relative, target=target, inner=f"{self.inner}/{relative}".lstrip("/"))


class Gateway(Protocol):
    """The protocol of a server at the one address that a command with network `model` can reach."""

    def serve(self, listener: socket.socket) -> AbstractAsyncContextManager[None]:
        """Answer connections to `listener`, a TCP socket that only the command can reach."""
        ...


class Talk(Protocol):
    """The protocol of a conversation with a running command over its standard streams."""

    async def __call__(self, stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        """Talk to the command until the conversation is over; then its stdin is closed, and it may end by itself.

        `stdout` ends when the command does. What is raised here comes out of `Box.run`, after everything is dead.
        """
        ...


@dataclass(frozen=True)
class Command:
    """A process to run in the box.

    `argv[0]` is an absolute path inside the box (host path resolved and mounted by the caller). `env` is complete but
    for what the box always sets (HOME, PATH, TMPDIR, LANG, TERM, USER, SHELL). `network` is none, model or
    open; with `model` the box lets `gateway` answer at the URL that the command finds in `REDFIRST_MODEL_URL`.
    With `talk`, stdin and stdout belong to it: `stdin` is not fed, and what came on stdout is not kept. A `request` is
    what the command reads, to its end, from the socket whose number is in `REDFIRST_SOCKET`; on the same socket it
    answers, with at most `answer_limit` bytes. `on_line` gets each whole line of its output as it comes, while it runs.
    """

    argv: tuple[str, ...]
    cwd: Path
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    stdin: bytes = b""
    timeout_s: float = 900.0
    output_limit: int = 4_000_000
    network: str = "none"
    gateway: Gateway | None = None
    talk: Talk | None = None
    on_line: Callable[[bytes], None] | None = None
    request: bytes | None = None
    answer_limit: int = 256_000_000


@dataclass(frozen=True)
class Answer:
    """The bytes that a command wrote to its socket. `fault` says why they cannot be used, or is empty."""

    data: bytes
    fault: str = ""


NO_ANSWER: Final = Answer(b"")
"""The answer of a command that had no request or wrote nothing."""


@dataclass(frozen=True)
class Completed:
    """The result of a command. `exit_code` is None when a signal or the time limit ended it.

    A command that does not end after its `talk` is over is killed: its `signal` is SIGKILL.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    stdout: bytes
    stderr: bytes
    truncated: bool
    seconds: float
    answer: Answer = NO_ANSWER


class Box(Protocol):
    """The protocol of a box, which runs commands; all processes of a command are dead when `run` returns."""

    name: str
    maps_paths: bool
    """Whether mounts appear at their targets; if not, a command must use the host's own paths."""

    def inside(self, host: Path, target: Path) -> Path:
        """Return the path in the box of a file that is mounted from `host` at `target`."""
        ...

    async def run(self, command: Command) -> Completed:
        """Run a command until it ends or meets a limit.

        Raises:
            BoxError: the box could not be set up.
            Exception: whatever the command's `talk` has raised.
        """
        ...
