"""The console of a repository within the test's own process, as a browser that was let in sees it."""

from __future__ import annotations

import http.client
import re
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.testclient import TestClient

from pipeline.faces.console.app import application, configuration
from pipeline.faces.console.guard import Access
from pipeline.repo import Repository

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from httpx2 import Response

PORT = 8765


class Browser:
    """One that is let in: it has the cookie, and sends what forms send."""

    def __init__(self, client: TestClient, access: Access) -> None:
        self.client, self.access = client, access

    def get(self, path: str, **headers: str) -> Response:
        return self.client.get(path, headers={"accept": "text/html", **headers}, follow_redirects=False)

    def json(self, path: str) -> dict[str, Any]:
        found = self.client.get(path, headers={"accept": "application/json"})
        assert found.headers["content-type"] == "application/json", found.text
        document: dict[str, Any] = found.json()
        return document

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Response:
        said = {"origin": self.access.origin, "accept": "text/html", **headers}
        return self.client.post(path, data=fields, headers=said, follow_redirects=False)

    def hidden(self, path: str) -> dict[str, str]:
        """Return the hidden fields of the forms on a page."""
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', self.get(path).text))


@contextmanager
def client_of(root: Path, *, read_only: bool = False) -> Generator[tuple[TestClient, Access]]:
    """Lend what speaks to the console of a repository, and is not let in yet."""
    access = Access(PORT)
    app = application(Repository.find(root), access, read_only=read_only)
    with TestClient(app, base_url=access.origin) as client:
        yield client, access


@contextmanager
def opened(root: Path, *, read_only: bool = False) -> Generator[Browser]:
    """Lend a browser that is let in."""
    with client_of(root, read_only=read_only) as (client, access):
        assert client.get(access.link).status_code == 200
        yield Browser(client, access)


@contextmanager
def listening(root: Path, *, read_only: bool = False) -> Generator[Access]:
    """Serve the console of a repository on a free port of loopback, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        access = Access(listener.getsockname()[1])
        app = application(Repository.find(root), access, read_only=read_only)
        server = uvicorn.Server(configuration(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield access
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive(), "the console does not end"


class Stream:
    """A reader of events over a connection of its own."""

    def __init__(self, access: Access, session: str, path: str = "/events", *, last: str | None = None) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", access.port, timeout=120)
        back = {} if last is None else {"Last-Event-ID": last}
        headers = {"Host": access.host, "Cookie": f"redfirst={session}", **back}
        self.connection.request("GET", path, headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()

    def next(self) -> tuple[str, str, str]:
        """Return kind, id and data of the next message; all empty at the end."""
        said = {"event": "", "id": "", "data": ""}
        while line := self.answer.readline():
            key, _, value = line.decode().rstrip("\n").partition(": ")
            if not key and said["event"]:
                break
            if key in said:
                said[key] = value
        return said["event"], said["id"], said["data"]

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


def session_of(access: Access) -> str:
    """Return a session that was opened with the code."""
    found = access.opened(access.link.partition("code=")[2])
    assert found is not None
    return found
