"""Admits one browser, which was given the code, under one name that nobody else has.

Every page of this machine's browser can send requests to loopback, and every program of it can listen there. So the
name is random, and a request under another one is refused; the session is a cookie of that name alone; what changes
something comes from a form of ours, by its origin and by a token.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "redfirst"
TOKEN: Final = "token"  # noqa: S105  (the name of a field of forms)
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "referrer-policy": "same-origin",  # without any, Origin is null, and our own forms would be refused
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_READING: Final = frozenset({"GET", "HEAD"})
_MOST_SESSIONS: Final = 20


@dataclass
class Access:
    """The name that the console is reached by, the code that opens it, and the sessions that it opened.

    Args:
        port: Where it listens.
        tell: Is told each link that opens a session; one works once.
    """

    port: int
    tell: Callable[[str], None] = lambda _: None
    name: str = field(default_factory=lambda: f"redfirst-{secrets.token_hex(6)}.localhost")
    _code: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _sessions: dict[str, None] = field(default_factory=dict[str, None], repr=False)

    @property
    def host(self) -> str:
        """Return what the header Host has to be."""
        return f"{self.name}:{self.port}"

    @property
    def origin(self) -> str:
        """Return what the header Origin of our own forms is."""
        return f"http://{self.host}"

    @property
    def link(self) -> str:
        """Return the address that opens a session, once."""
        return f"{self.origin}/?code={self._code}"

    def opened(self, code: str) -> str | None:
        """Return a new session for the code, which is spent then; None where it is not the one."""
        if not hmac.compare_digest(code.encode(), self._code.encode()):
            return None
        self._code = secrets.token_urlsafe(24)
        session = secrets.token_urlsafe(24)
        self._sessions[session] = None
        while len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self.tell(self.link)
        return session

    def session_of(self, request: Request) -> str | None:
        """Return the session that a request belongs to."""
        session = request.cookies.get(COOKIE)
        return session if session in self._sessions else None

    def token_for(self, session: str) -> str:
        """Return what a form of this session has in its hidden field."""
        return hmac.new(self._key, session.encode(), sha256).hexdigest()

    def is_token(self, session: str, token: object) -> bool:
        """Return whether a form came from a page of this session."""
        return isinstance(token, str) and hmac.compare_digest(token.encode(), self.token_for(session).encode())


class Guard:
    """Lets requests through to the pages, and puts what keeps others out on every answer."""

    def __init__(self, app: ASGIApp, access: Access, locked: Callable[[Request], Response]) -> None:
        self._app, self._access, self._locked = app, access, locked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self._refused(scope)
        await (refused or self._app)(scope, receive, guarded)

    def _refused(self, scope: Scope) -> Response | None:
        request, access = Request(scope), self._access
        if request.headers.getlist("host") != [access.host]:
            return PlainTextResponse("This is not the name that the console has.\n", 421)
        if request.method not in _READING and request.headers.get("origin") != access.origin:
            return PlainTextResponse("Only pages of the console change anything.\n", 403)
        session = access.session_of(request)
        scope["state"] = {**scope.get("state", {}), "session": session}
        path = request.url.path
        entering = path == "/" and "code" in request.query_params
        return None if session is not None or entering or path.startswith("/static/") else self._locked(request)
