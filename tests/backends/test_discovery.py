"""What is installed here is found without starting it, asked with a limit, and no secret is read."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from waiting import longer_limits, wait_until

from pipeline.agents.backends.discovery import KNOWN, Place, find_agents, find_servers, services, with_versions

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Generator

NATIVE = {"claude", "codex", "opencode", "codex-acp"}


def program_of(name: str) -> str:
    return next(known.program.name for known in KNOWN if known.name == name)


def install(folder: Path, name: str, script: str = "#!/bin/sh\necho 1.2.3\n") -> None:
    """Put an agent there: a native program where that is what is looked for, else a script."""
    path = folder / "bin" / program_of(name)
    path.parent.mkdir(exist_ok=True)
    if name in NATIVE:
        shutil.copyfile(shutil.which("true") or "/bin/true", path)
    else:
        path.write_text(script)
    path.chmod(0o755)


def environ_of(folder: Path, **more: str) -> dict[str, str]:
    return {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(folder / "home"), **more}


def only(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment in which nothing but what the test installs can be found."""
    (folder / "bin").mkdir(exist_ok=True)
    return environ_of(folder, **more) | {"PATH": str(folder / "bin")}


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_each_agent_is_found_by_its_program(tmp_path: Path, known: object) -> None:
    name = getattr(known, "name", "")
    install(tmp_path, name)
    (found,) = find_agents(only(tmp_path))
    assert (found.known.name, found.path) == (name, tmp_path / "bin" / program_of(name))
    assert (found.logins, found.variables, found.version) == ((), (), None)


def test_nothing_is_started_to_find_it(tmp_path: Path) -> None:
    install(tmp_path, "gemini", f"#!/bin/sh\ntouch {tmp_path}/started\n")
    assert len(find_agents(only(tmp_path))) == 1
    assert not (tmp_path / "started").exists()


def test_a_login_is_a_file_that_is_there_and_is_never_opened(tmp_path: Path) -> None:
    install(tmp_path, "claude")
    login = tmp_path / "home/.claude/.credentials.json"
    login.parent.mkdir(parents=True)
    os.mkfifo(login)  # reading it would wait for ever
    assert find_agents(only(tmp_path))[0].logins == ()
    login.unlink()
    login.touch(mode=0o600)
    (found,) = find_agents(only(tmp_path))
    assert [(each.path, each.private) for each in found.logins] == [(login, True)]
    login.chmod(0o644)
    assert not find_agents(only(tmp_path))[0].logins[0].private


@pytest.mark.parametrize(
    ("name", "variable", "below"),
    [("codex", "CODEX_HOME", "auth.json"), ("opencode", "XDG_DATA_HOME", "opencode/auth.json")],
)
def test_a_variable_may_say_where_the_login_is(tmp_path: Path, name: str, variable: str, below: str) -> None:
    install(tmp_path, name)
    login = tmp_path / "elsewhere" / below
    login.parent.mkdir(parents=True)
    login.touch()
    (found,) = find_agents(only(tmp_path, **{variable: str(tmp_path / "elsewhere")}))
    assert [each.path for each in found.logins] == [login]


def test_of_a_credential_only_the_name_is_told(tmp_path: Path) -> None:
    install(tmp_path, "codex")
    environ = only(tmp_path, OPENAI_API_KEY="sk-secret", CODEX_API_KEY="")
    (found,) = find_agents(environ)
    assert found.variables == ("OPENAI_API_KEY",)
    assert "sk-secret" not in repr(found)
    assert services(environ) == ("openai",)


def test_a_program_says_its_version_in_a_home_of_its_own(tmp_path: Path) -> None:
    told = tmp_path / "told"
    install(
        tmp_path, "gemini", f'#!/bin/sh\necho "$HOME $PWD $HTTPS_PROXY" > {told}\necho "gemini v0.61.0-nightly.2"\n'
    )
    environ = environ_of(tmp_path, OPENAI_API_KEY="sk-secret")
    (found,) = with_versions([each for each in find_agents(environ) if each.known.name == "gemini"], environ["PATH"])
    assert found.version == "0.61.0-nightly.2"
    home, where, proxy = told.read_text().split()
    assert home == where != environ["HOME"]
    assert not Path(home).exists()
    assert proxy == "http://127.0.0.1:9"


def test_a_program_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    install(tmp_path, "gemini", f"#!/bin/sh\nsleep 600 &\necho $! > {pid}\nwait\n")
    environ = environ_of(tmp_path)
    agents = [each for each in find_agents(environ) if each.known.name == "gemini"]
    for limit in longer_limits(0.5):
        assert with_versions(agents, environ["PATH"], limit)[0].version is None
        if pid.exists() and pid.read_text().strip():
            break
    wait_until(lambda: _is_dead(pid), "what it started is still there")


def _is_dead(pid: Path) -> bool:
    try:
        return Path(f"/proc/{pid.read_text().strip()}/stat").read_text().split()[2] == "Z"
    except FileNotFoundError:
        return True


def test_a_program_that_cannot_say_it_has_the_version_of_its_package(tmp_path: Path) -> None:
    install(tmp_path, "codex-acp")
    (tmp_path / "package.json").write_text('{"name": "x", "version": "9.8.7"}')
    assert with_versions(find_agents(only(tmp_path)), "/nowhere")[0].version == "9.8.7"


@contextmanager
def answering(path: str, body: bytes, status: int = 200) -> Generator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == path else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name that it has there)
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("path", "listed"),
    [
        ("/api/tags", {"models": [{"name": "qwen3:8b"}, {"name": "--evil"}, {"name": "a\x1b[0m"}, 5]}),
        ("/v1/models", {"data": [{"id": "qwen3:8b"}], "object": "list"}),
    ],
)
def test_a_model_server_of_this_machine_says_what_it_has(path: str, listed: object) -> None:
    with answering(path, json.dumps(listed).encode()) as port:
        (server,) = find_servers([Place("ollama", "Ollama", port, path)])
    assert (server.models, server.url) == (("qwen3:8b",), f"http://127.0.0.1:{port}")


@pytest.mark.broad(but_first=2)
@pytest.mark.parametrize(
    ("body", "status"),
    [(b"<html>", 200), (b"[1]", 200), (b'{"models": 3}', 200), (b"{}", 500), (b"[" * 2_000_000, 200)],
)
def test_what_else_answers_at_that_port_is_no_model_server(body: bytes, status: int) -> None:
    with answering("/api/tags", body, status) as port:
        assert find_servers([Place("ollama", "Ollama", port, "/api/tags")]) == ()
