"""The console of a repository within the test's own process, as a browser that was let in sees it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from starlette.testclient import TestClient

from pipeline.console.app import application
from pipeline.console.guard import Access
from pipeline.git import Repository

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from httpx import Response

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
