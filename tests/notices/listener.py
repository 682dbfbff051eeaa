"""An address on loopback that takes requests, or refuses them, and remembers both."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Generator


class Listener(ThreadingHTTPServer):
    """The server.

    Attributes:
        status: What it answers now.
        taken: Path, headers and body of each request that it took.
        refused: How many it refused.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 204
        self.taken: list[tuple[str, dict[str, str], bytes]] = []
        self.refused = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def bodies(self) -> list[str]:
        return [body.decode() for _, _, body in self.taken]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = cast("Listener", self.server)
        body = self.rfile.read(int(self.headers["content-length"]))
        if server.status < 300:
            server.taken.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        else:
            server.refused += 1
        self.send_response(server.status)
        if server.status in {301, 302, 307}:
            server.status = 204
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any, **__: Any) -> None:
        pass


@contextmanager
def listening() -> Generator[Listener]:
    """Serve while the body runs."""
    with Listener() as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield listener
        finally:
            listener.shutdown()
            thread.join()
