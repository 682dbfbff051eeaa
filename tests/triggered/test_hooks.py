"""Deliveries by HTTP and by the command: the same answers, and nothing else is served."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import forked
import pytest
import uvicorn
from kit import REDFIRST, make_project
from triggered.outside import HELPER, LABEL, SECRET, SHOP, Outside, generic, github, outside

from pipeline.faces.console.app import configuration
from pipeline.faces.console.hooks import application

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow


@contextmanager
def listening(here: Outside, said: list[str]) -> Generator[int]:
    """Serve deliveries on a free port of loopback, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(configuration(application(here.repository, here.environ, said.append)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive(), "it does not end"


def ask(port: int, path: str, delivery: tuple[dict[str, str], bytes], method: str = "POST") -> tuple[int, str]:
    headers, body = delivery
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_24_and_25_by_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = outside(tmp_path, monkeypatch, LABEL + SHOP + HELPER)
    said: list[str] = []
    with listening(here, said) as port:
        headers, body = github()
        assert ask(port, "/hooks/label", (headers, body + b" "))[0] == 401
        assert ask(port, "/hooks/shop", generic(at=datetime(2026, 1, 1, tzinfo=UTC)))[0] == 401
        assert ask(port, "/hooks/label", (headers, b" " * (2 << 20)))[0] == 413
        with ThreadPoolExecutor(20) as pool:
            found = list(pool.map(lambda _: ask(port, "/hooks/label", (headers, body)), range(100)))
        assert sorted(status for status, _ in found) == [200] * 99 + [202]
        document: dict[str, Any] = json.loads(next(text for status, text in found if status == 202))
        assert (document["schema"], document["result"]) == ("redfirst.delivery/1", "ordered")
        assert ask(port, "/hooks/shop", generic(at=datetime.now(UTC)))[0] == 202
        for path in ("/", "/runs", "/hooks", "/hooks/label/x", "/static/style.css"):
            assert ask(port, path, (headers, body))[0] == 404, path
        assert ask(port, "/hooks/label", (headers, body), "GET")[0] == 405
        assert ask(port, "/hooks/nobody", (headers, body))[0] == 404
        assert ask(port, "/hooks/helper", generic(key=None))[0] == 404, (
            "what nobody signs comes from this machine alone"
        )
        assert said == []
        here.git("config", "user.useConfigOnly", "true")
        here.git("config", "--unset", "user.email")
        assert ask(port, "/hooks/label", github(13)) == (503, "It cannot be taken now.\n")
        assert said == ["a delivery to label was not taken: git does not know who commits."]
    assert len(here.orders()) == 2


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = make_project(tmp_path)
    project.configure(LABEL + SHOP)
    project.env |= {"HOOK": "secret", "SHOP": SECRET}
    return project


WITH_INPUT = """import os, sys
os.dup2(os.open(sys.argv.pop(1), os.O_RDONLY), 0)
sys.argv[0] = "redfirst"
import redfirst
redfirst.main()
"""


def deliver(project: Project, *argv: str, body: bytes) -> subprocess.CompletedProcess[str]:
    """Run the command with a standard input."""
    program, given = project.home / "with_input.py", project.home / "body"
    program.write_text(WITH_INPUT)
    given.write_bytes(body)
    command = [str(program), str(given), "deliver", "label", *argv]
    return forked.run(command, cwd=project.root, env=project.environment(), timeout=60)


def test_the_command_takes_headers_from_a_file_and_the_body_from_standard_input(project: Project) -> None:
    headers, body = github()
    place = project.home / "headers.txt"
    place.write_text("HTTP/1.1 200 OK\n" + "".join(f"{name.title()}: {value}\r\n" for name, value in headers.items()))
    argv = ("--headers", str(place))
    done = deliver(project, *argv, "--json", body=body)
    document = json.loads(done.stdout)
    assert (done.returncode, document["status"], document["issue"]) == (0, 202, "GH-12")
    again = deliver(project, *argv, body=body)
    assert (again.returncode, again.stdout) == (0, "nothing is ordered: it was delivered before\n")
    forged = deliver(project, *argv, "--json", body=body + b" ")
    error = json.loads(forged.stdout)["error"]
    assert (forged.returncode, error["kind"], error["details"]) == (2, "input_invalid", {"status": 401})
    (order,) = project.document("queue", "list")["orders"]
    assert (order["issue"], order["via"], order["state"]) == ("GH-12", "label", "queued")
    (shown,) = project.document("work", "--dry-run")["orders"]
    assert (shown["begins"], shown["why"]) == (True, None)
    listed = project.redfirst("trigger", "list").stdout
    assert re.search(r"^label +github +on, 1 order$", listed, re.MULTILINE)
    assert project.document("trigger", "resume", "label")["triggers"][0]["paused"] is False
    assert "secret" not in done.stdout + done.stderr + forged.stderr


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('[triggers.x]\non = "a"', "triggers.x.source is missing"),
        ('[triggers.x]\nsource = "github"\non = "a"\nsecret_env = "A"', "triggers.x.senders is missing"),
        ('[triggers.x]\nsource = "generic"\non = "a"', "triggers.x.secret_env is missing"),
        ('[triggers.x]\nsource = "schedule"', "triggers.x.cron is missing"),
        ('[triggers.x]\nsource = "agent"\ncron = "* * * * *"', "triggers.x.cron has no effect"),
        ('[triggers.x]\nsource = "schedule"\ncron = "* * * * * *"', "must have five fields"),
        ('[triggers.x]\nsource = "schedule"\ncron = "0 0 30 2 *"', "is no time of cron"),
        ('[triggers.x]\nsource = "schedule"\ncron = "0 0 * * *"\ntimezone = "Mars/Base"', "must be a time zone"),
        ('[triggers.x]\nsource = "agent"\nrate = "0/h"', "triggers.x.rate"),
        ('[triggers.x]\nsource = "agent"\nsecret_env = "whsec_c2VjcmV0"', "triggers.x.secret_env"),
        ('[triggers.cli]\nsource = "agent"', "give the trigger another name"),
    ],
)
def test_a_trigger_that_is_not_whole_is_refused(project: Project, config: str, says: str) -> None:
    project.configure(config)
    done = project.redfirst("trigger", "list")
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert "whsec_c2VjcmV0" not in done.stderr


def test_a_value_of_ones_own_switches_a_trigger_of_the_repository_off(project: Project) -> None:
    project.write({"redfirst.toml": SHOP})
    project.configure("[triggers.shop]\nenabled = false\n")
    project.commit()
    (record,) = project.document("trigger", "list")["triggers"]
    assert (record["name"], record["enabled"], record["source"]) == ("shop", False, "generic")


def test_an_address_that_is_none_is_refused(project: Project) -> None:
    done = project.redfirst("console", "--hooks", "8787")
    assert (done.returncode, "Write HOST:PORT" in done.stderr) == (2, True), done.stderr


def test_the_listener_says_where_it_is_and_serves_no_pages(project: Project) -> None:
    argv = [REDFIRST, "console", "--hooks", "127.0.0.1:0"]
    env = project.environment()
    with subprocess.Popen(argv, cwd=project.root, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
            assert found is not None
            port = int(found[1])
            assert ask(port, "/", ({}, b""), "GET")[0] == 404
            assert ask(port, "/hooks/label", github())[0] == 202
        finally:
            process.terminate()
