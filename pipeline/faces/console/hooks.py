"""Takes deliveries by HTTP: a server with `POST /hooks/NAME` alone, no page, and no word on anything else."""

from __future__ import annotations

import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio
import uvicorn
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from pipeline.app.deliver import deliver
from pipeline.app.webhooks import LARGEST, RefusedError
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.console.app import configuration
from pipeline.outcomes import Reason
from pipeline.repo import GitError, Repository

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp


_SECONDS: Final = 10.0
"""So long a body may take."""
_AT_ONCE: Final = 4
_SAID_S: Final = 60.0
"""So long a refusal is not said again."""
_MOST_SAID: Final = 100


def application(repository: Repository, environ: Mapping[str, str], say: Callable[[str], None]) -> ASGIApp:
    """Return the server; *say* is told what was ordered and refused, and what is broken, which no sender is told."""
    few, told = CapacityLimiter(_AT_ONCE), dict[str, float]()

    def tell_once(line: str) -> None:
        """Say what a sender can repeat as often as they like, once for a while."""
        now = anyio.current_time()
        if now - told.get(line, -_SAID_S) >= _SAID_S:
            if len(told) >= _MOST_SAID:
                told.clear()
            told[line] = now
            say(visible(line))

    async def take(request: Request) -> Response:
        try:
            with anyio.fail_after(_SECONDS):
                body = await _body(request)
        except TimeoutError:
            return PlainTextResponse("The body did not come.\n", 408)
        name, headers = str(request.path_params["name"]), dict(request.headers)
        try:
            found = await to_thread.run_sync(
                lambda: deliver(repository, environ, name, headers, body, remote=True), limiter=few
            )
        except RefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:  # a stranger's name
                tell_once(f"a delivery to {name} was refused ({error.status}): {error.message}")
            return PlainTextResponse(f"{error.message}\n", error.status)
        except (UserError, GitError) as error:
            told = error.told() if isinstance(error, GitError) else error
            say(f"a delivery to {name} was not taken: {told.message}")
            return PlainTextResponse("It cannot be taken now.\n", 503)
        if found.order is not None and found.status == HTTPStatus.ACCEPTED:
            say(visible(f"{name}: {found.issue} is {found.result} ({found.order})"))
        return JSONResponse(found.model_dump(mode="json", by_alias=True), found.status)

    return Starlette(routes=[Route("/hooks/{name}", take, methods=["POST"])])


async def _body(request: Request) -> bytes:
    """Return the body; of one that is too large no more than is needed to see that."""
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > LARGEST:
            break
    return bytes(parts)


def serve_hooks(repository: Repository, environ: Mapping[str, str], address: str, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C.

    Args:
        repository: Seen from where it is started.
        environ: Its environment, with the secrets.
        address: Where to listen, HOST:PORT; port 0 means any.
        say: Is told where it listens, and what comes of deliveries.

    Raises:
        UserError: the address is none, or cannot be listened on.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(f"{address!r} is no address. Write HOST:PORT, such as 127.0.0.1:8787.", Reason.USAGE)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host.strip("[]"), int(port)), family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        raise UserError(f"{address} cannot be listened on: {error}.", Reason.USAGE) from error
    with listener:
        shown, port = listener.getsockname()[:2]
        say(f"Listening for POST /hooks/NAME on {shown}:{port}")
        uvicorn.Server(configuration(application(repository, environ, say))).run(sockets=[listener])
