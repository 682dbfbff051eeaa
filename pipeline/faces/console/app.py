"""Serves the console on loopback: which address is which page, behind the guard, until it is stopped."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from pipeline.errors import UserError
from pipeline.faces.console.acts import Acts
from pipeline.faces.console.frame import HERE
from pipeline.faces.console.guard import COOKIE, Access, Guard
from pipeline.faces.console.live import Hub, Reader, Stream
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from pipeline.repo import Repository


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
