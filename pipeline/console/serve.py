"""Listens on loopback, and serves the console until it is stopped."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn

from pipeline.console.app import application
from pipeline.console.guard import Access
from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from pipeline.git import Repository

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
