"""The scripted model as an HTTP service on loopback. It needs no event loop; it is a context manager.

script = [conversation(Use(write("greet.py", TEXT)), Report({"result": "COMPLETE"}), kind="implement", task="1")]
with ModelService(script) as service:
    ...  # an agent whose base URL is service.url
assert service.problems == []
"""

from __future__ import annotations

import itertools
import socket
import threading
import traceback
from functools import partial
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from model_service.handler import Handler
from model_service.player import Player, reply_of
from model_service.script import Answering

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from model_service.asked import Asked, Reply
    from model_service.player import Move
    from model_service.record import Request
    from model_service.script import Conversation


class ModelService:
    """Plays a script to whoever asks.

    Args:
        script: The conversations.
        secret: The credential that every request must carry, as a bearer or as the key of its dialect.
        models: What the list of models says.
        log: A file for one line of JSON per request.
    """

    def __init__(
        self,
        script: Sequence[Conversation],
        *,
        secret: str | None = None,
        models: Sequence[str] = ("scripted",),
        log: Path | None = None,
    ) -> None:
        self.secret = secret
        self.models = tuple(models)
        self.requests: list[Request] = []
        self.problems: list[str] = []
        """What a test asserts to be empty: requests that no script and no dialect is for."""
        self._log = log
        self._player = Player(script)
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Return `http://127.0.0.1:<port>`; append what the product wants after it, `/v1` for the most part."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def unused(self) -> tuple[int, ...]:
        """Return the conversations of the script that nobody began, counted from 0."""
        with self._changed:
            return self._player.unused

    @property
    def work(self) -> list[Request]:
        """Return the requests that are part of a conversation of the script."""
        return [request for request in self.requests if request.conversation is not None]

    def wait_for(self, condition: Callable[[list[Request]], bool], seconds: float = 60) -> None:
        """Return when the requests so far satisfy *condition*; a request counts as soon as its answer begins.

        Raises:
            TimeoutError: they did not in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self.requests), seconds):
                raise TimeoutError(f"after {seconds} s: {[request.line() for request in self.requests]}")

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="model-service")
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    # --- for the handler --------------------------------------------------------------------------------------------

    def move(self, asked: Asked) -> tuple[Move, int, Reply | None]:
        """Return what to do with a request, its number, and the answer if the turn is one.

        Raises:
            ScriptError: it fits nowhere.
        """
        with self._changed:
            number = next(self._numbers)
            move = self._player.move(asked)
            turn = move.turn
            answer = reply_of(turn, asked, number) if isinstance(turn, Answering) else None
            return move, number, answer

    def record(self, request: Request) -> None:
        """Keep a request."""
        with self._changed:
            self.requests.append(request)
            if self._log is not None:
                with self._log.open("a", encoding="utf-8") as file:
                    file.write(request.line() + "\n")
            self._changed.notify_all()

    def complain(self, problem: str) -> None:
        """Keep a problem, once."""
        with self._changed:
            if problem not in self.problems:
                self.problems.append(problem)


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, service: ModelService) -> None:
        self.service = service
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), partial(Handler, service))

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  (the base class says it)
        problem = traceback.format_exc()
        if "ConnectionResetError" not in problem and "BrokenPipeError" not in problem:
            self.service.complain(problem)

    def hang_up(self) -> None:
        """End every connection, so that no handler waits for its client any more."""
        for connection in tuple(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
