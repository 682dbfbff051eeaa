"""Serves the console on loopback: which address is which page, behind the guard, until it is stopped.

Or it takes deliveries by HTTP: a server with `POST /hooks/NAME` alone, no page, and no word on anything else.
"""

from __future__ import annotations

import contextlib
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio
import uvicorn
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pipeline.app.triggers import deliver
from pipeline.app.webhooks import LARGEST, RefusedError
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.console.acts import Acts
from pipeline.faces.console.frame import HERE
from pipeline.faces.console.guard import COOKIE, Access, Guard
from pipeline.faces.console.live import Hub, Reader, Stream
from pipeline.outcomes import Reason
from pipeline.repo import GitError, Repository

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp


def application(repository: Repository, access: Access, *, read_only: bool = False) -> ASGIApp:
    """Return the console of a repository."""
    hub = Hub(repository)
    pages = Acts(repository, access, hub, read_only=read_only)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(hub.poll)
            group.start_soon(pages.others.look)
            if not read_only:
                group.start_soon(pages.attend)
            yield
            group.cancel_scope.cancel()

    async def front(request: Request) -> Response:
        code = request.query_params.get("code")
        return await pages.runs(request) if code is None else _entered(pages, access, request, code)

    async def events(request: Request) -> Response:
        since = request.headers.get("last-event-id") or request.query_params.get("since")
        reader = Reader(request.state.session, request.query_params.get("run"))
        return Stream(hub, reader, since)

    async def told(request: Request, error: Exception) -> Response:
        if not isinstance(error, UserError):
            raise error
        return pages.error(request, error)

    forms = [
        *(Route(f"/runs/{{key}}/{what}", pages.act, methods=["POST"]) for what in pages.acts),
        Route("/runs/{key}/edit", pages.edit),
        Route("/runs/{key}/edit", pages.save, methods=["POST"]),
        Route("/queue", pages.change_queue, methods=["POST"]),
    ]
    routes = [
        Route("/", front),
        Route("/runs/{key}", pages.run),
        Route("/runs/{key}/diff", pages.diff),
        Route("/runs/{key}/log", pages.log),
        Route("/runs/{key}/packet", pages.packet),
        Route("/runs/{key}/files/{name:path}", pages.file),
        Route("/runs/{key}/dispatches/{name}", pages.dispatch),
        Route("/issues", pages.issues),
        Route("/issues/{id}", pages.issue),
        Route("/queue", pages.queue),
        *([] if read_only else forms),
        Route("/events", events),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={UserError: told})
    return Guard(app, access, locked=pages.locked)


def _entered(pages: Acts, access: Access, request: Request, code: str) -> Response:
    session = access.opened(code)
    if session is None:  # used already: whoever is in goes on, others stay outside
        return RedirectResponse("/", 303) if request.state.session is not None else pages.locked(request)
    words = "This browser is let in until the console is stopped."
    response = pages.page(request, "locked.html", title="Welcome", words=words, go_on=True)
    response.set_cookie(COOKIE, session, path="/", httponly=True, samesite="strict")
    return response


LOOPBACK = "127.0.0.1"


def serve(repository: Repository, port: int, tell: Callable[[str], None], *, read_only: bool) -> None:
    """Serve until Ctrl-C.

    Args:
        repository: Seen from where it is started.
        port: 0 for any that is free.
        tell: Is told each link that opens a session.
        read_only: Nothing can be changed by it.

    Raises:
        UserError: the port is taken.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
            listener.listen()  # who opens the link at once waits
        except OSError as error:
            raise UserError(
                f"Port {port} cannot be listened on: {error.strerror}. Without --port a free one is taken.",
                Reason.USAGE,
            ) from error
        access = Access(listener.getsockname()[1], tell)
        tell(access.link)
        app = application(repository, access, read_only=read_only)
        uvicorn.Server(configuration(app)).run(sockets=[listener])


def configuration(app: ASGIApp) -> uvicorn.Config:
    """Return how the server is run: it says nothing of itself, and believes no proxy."""
    return uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=1,
    )


# --- deliveries ------------------------------------------------------------------------------------------------------

_SECONDS: Final = 10.0
"""So long a body may take."""
_AT_ONCE: Final = 4
_SAID_S: Final = 60.0
"""So long a refusal is not said again."""
_MOST_SAID: Final = 100


def hooks_application(repository: Repository, environ: Mapping[str, str], say: Callable[[str], None]) -> ASGIApp:
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
        uvicorn.Server(configuration(hooks_application(repository, environ, say))).run(sockets=[listener])
