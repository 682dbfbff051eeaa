"""Who may speak to the console, and what every answer says to the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from console.served import PORT, client_of, opened
from kit import make_project

from pipeline.faces.console.guard import COOKIE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("guard")).root


def hosts(name: str) -> Iterator[str]:
    yield from (f"localhost:{PORT}", f"127.0.0.1:{PORT}", "evil.example", f"{name}:1", name, f"x.{name}:{PORT}", "")


def test_check_29_only_its_own_name_is_answered(root: Path) -> None:
    with opened(root) as browser:
        for host in hosts(browser.access.name):
            for path in ("/", "/static/style.css", "/events", "/nothing"):
                assert browser.get(path, host=host).status_code == 421, (host, path)
        assert browser.get("/").status_code == 200


def test_check_29_a_code_lets_in_once_and_its_cookie_is_for_this_name_alone(root: Path) -> None:
    with client_of(root) as (client, access):
        told: list[str] = []
        access.tell = told.append
        assert [client.get(path).status_code for path in ("/", "/issues", "/events", "/runs/x")] == [401] * 4
        assert client.get("/?code=guess").status_code == 401
        link = access.link
        entered = client.get(link)
        (cookie,) = entered.headers.get_list("set-cookie")
        name, *rules = [part.strip().lower() for part in cookie.split(";")]
        assert name.startswith(f"{COOKIE}=")
        assert set(rules) == {"httponly", "path=/", "samesite=strict"}
        assert client.get("/").status_code == 200
        again = client.get(link, follow_redirects=False)
        assert (again.status_code, again.headers["location"]) == (303, "/"), "whoever is in goes on"
        client.cookies.clear()
        assert client.get(link).status_code == 401, "a code is spent"
        assert (told == [access.link], access.link != link) == (True, True)
        client.cookies.set(COOKIE, "guess")
        assert client.get("/").status_code == 401


def test_every_answer_keeps_scripts_frames_and_other_hosts_out(root: Path) -> None:
    with opened(root) as browser:
        for path in ("/", "/static/style.css", "/runs/none", "/nothing"):
            headers = browser.get(path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert headers["referrer-policy"] == "same-origin"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"


def test_pages_have_nothing_inline_and_nothing_from_elsewhere(root: Path) -> None:
    with opened(root) as browser:
        for path in ("/", "/issues", "/runs/none"):
            text = browser.get(path).text
            assert not [word for word in ("<style", "style=", " onclick", "javascript:", "//cdn") if word in text], path
