"""What the service says over HTTP: the answer of a turn in its dialect, whole or streamed, or the trouble of it."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from model_service.asked import Reply
from model_service.dialects.anthropic import ANTHROPIC
from model_service.dialects.chat import CHAT
from model_service.dialects.google import GOOGLE
from model_service.dialects.responses import RESPONSES
from model_service.record import Request
from model_service.script import INPUT, Cut, Fail, Garbage, Hang
from model_service.tools import ScriptError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model_service.asked import Asked, Dialect
    from model_service.documents import Json
    from model_service.player import Move
    from model_service.service import ModelService

_GOOGLE: Final = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent|countTokens)$")
_DIALECTS: Final = {"/messages": ANTHROPIC, "/responses": RESPONSES, "/chat/completions": CHAT}
_SECRETS: Final = ("authorization", "x-api-key", "x-goog-api-key")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, service: ModelService, *connection: Any) -> None:
        self.service = service
        super().__init__(*connection)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class says it)
        """Say nothing: the record is `requests`."""

    def do_HEAD(self) -> None:
        self._send(200, b"")

    def do_GET(self) -> None:
        if urlsplit(self.path).path.endswith("/models"):
            names = [{"id": name, "object": "model", "type": "model", "name": name} for name in self.service.models]
            self._json(200, {"object": "list", "data": names, "models": names, "has_more": False})
        else:
            self._turn_away(f"GET {self.path} is not part of the service")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = urlsplit(self.path).path
        google = _GOOGLE.search(path)
        if path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": INPUT})
        elif google and google["verb"] == "countTokens":
            self._json(200, {"totalTokens": INPUT})
        elif google:
            more = {"_model": google["model"], "_stream": google["verb"] == "streamGenerateContent"}
            self._answer(GOOGLE, json.loads(body) | more)
        elif dialect := next((known for end, known in _DIALECTS.items() if path.endswith(end)), None):
            self._answer(dialect, json.loads(body))
        else:
            self._turn_away(f"POST {self.path} is not part of the service")

    def _turn_away(self, problem: str) -> None:
        self.service.complain(problem)
        self._json(404, {"error": {"message": problem}})

    def _answer(self, dialect: Dialect, body: Json) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}

        def record(status: int, asked: Asked | None = None, move: Move | None = None) -> None:
            number, turn = (move.conversation, move.number) if move else (None, 0)
            self.service.record(Request(dialect.name, self.path, headers, body, asked, number, turn, status))

        if not self._welcome(headers):
            record(401)
            self._json(401, dialect.error(401, "The credential of this request is not the one that is expected."))
            return
        asked = dialect.read(body, headers)
        try:
            move, number, reply = self.service.move(asked)
        except ScriptError as problem:
            # 400, since a 500 is tried again for minutes by some products.
            self.service.complain(f"{dialect.name}: {problem}")
            record(400, asked)
            self._json(400, dialect.error(400, f"The script does not fit: {problem}."))
            return
        turn = move.turn
        match turn:
            case Fail():
                record(turn.status, asked, move)
                text = json.dumps(dialect.error(turn.status, f"Scripted failure {turn.status}."))
                self._send(
                    turn.status, (turn.body if turn.body is not None else text).encode(), tuple(turn.headers.items())
                )
            case Hang():
                record(0, asked, move)
                self._hang(dialect, asked, number, begun=turn.begun)
            case Cut():
                record(200, asked, move)
                self._cut(dialect, asked, number, turn.after_bytes)
            case Garbage():
                record(200, asked, move)
                self._garbage(stream=asked.stream)
            case _:
                assert reply is not None
                record(200, asked, move)
                self._reply(dialect, asked, reply)

    def _welcome(self, headers: dict[str, str]) -> bool:
        query = parse_qs(urlsplit(self.path).query).get("key", [])
        given = [headers.get(name, "").removeprefix("Bearer ") for name in _SECRETS]
        return self.service.secret is None or self.service.secret in [*given, *query]

    def _reply(self, dialect: Dialect, asked: Asked, reply: Reply) -> None:
        if not asked.stream:
            self._json(200, dialect.whole(reply))
            return
        self._begin_stream()
        for piece in dialect.stream(reply):
            self._chunk(piece)
        self._chunk(b"")

    def _hang(self, dialect: Dialect, asked: Asked, number: int, *, begun: bool) -> None:
        if begun and asked.stream:
            self._begin_stream()
            self._chunk(next(dialect.stream(Reply(asked.model, number, "unfinished"))))
        # A client sends nothing more; this returns when it leaves, or when the service ends.
        self.connection.recv(1)
        self.close_connection = True

    def _cut(self, dialect: Dialect, asked: Asked, number: int, after_bytes: int) -> None:
        reply = Reply(asked.model, number, "This answer will not be finished. " * (1 + after_bytes // 20))
        if asked.stream:
            self._begin_stream()
            self._chunk(b"".join(dialect.stream(reply))[:after_bytes])
        else:
            whole = json.dumps(dialect.whole(reply)).encode()
            self._head(200, "application/json", ("content-length", str(len(whole))))
            self.wfile.write(whole[:after_bytes])
        self.close_connection = True

    def _garbage(self, *, stream: bool) -> None:
        body = (
            b'data: {"choices": [{"delta": <<<not JSON>>>\n\n' if stream else b'{"choices": [{"message": <<<not JSON>>>'
        )
        self._head(200, "text/event-stream" if stream else "application/json", ("content-length", str(len(body))))
        self.wfile.write(body)

    # --- framing ----------------------------------------------------------------------------------------------------

    def _begin_stream(self) -> None:
        self._head(200, "text/event-stream", ("transfer-encoding", "chunked"), ("cache-control", "no-cache"))

    def _chunk(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def _json(self, status: int, document: Json) -> None:
        self._send(status, json.dumps(document).encode())

    def _send(self, status: int, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> None:
        self._head(status, "application/json", ("content-length", str(len(body))), *headers)
        self.wfile.write(body)

    def _head(self, status: int, kind: str, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("content-type", kind), *headers):
            self.send_header(name, value)
        self.end_headers()
