"""Deliveries by HTTP and by the command have the same answers; an issue that was delivered becomes commits."""

from __future__ import annotations

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import forked
import pytest
from kit import REDFIRST, make_project
from queued.sums_project import PLAIN, answers, issue, make
from triggered.outside import HELPER, LABEL, SECRET, SHOP, Delivery, generic, github, outside

from pipeline.app.triggers import deliver, read_triggers
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow


def ask(port: int, path: str, delivery: Delivery, method: str = "POST") -> tuple[int, str]:
    headers, body = delivery
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_24_and_25_by_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = outside(tmp_path, monkeypatch, LABEL + SHOP + HELPER)
    env = {**here.environ, "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    argv, place = [REDFIRST, "console", "--hooks", "127.0.0.1:0"], here.repository.worktree
    with subprocess.Popen(argv, cwd=place, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            port = int(process.stderr.readline().rpartition(":")[2])
            headers, body = github()
            assert ask(port, "/hooks/label", (headers, body + b" "))[0] == 401
            assert ask(port, "/hooks/shop", generic(at=datetime(2026, 1, 1, tzinfo=UTC)))[0] == 401
            assert ask(port, "/hooks/label", (headers, b" " * (2 << 20)))[0] == 413
            with ThreadPoolExecutor(20) as pool:
                found = list(pool.map(ask, [port] * 40, ["/hooks/label"] * 40, [(headers, body)] * 40))
            assert sorted(status for status, _ in found) == [200] * 39 + [202]
            told = [json.loads(text) for _, text in found]
            assert sorted(one["result"] for one in told) == ["duplicate"] * 39 + ["ordered"]
            (order,) = here.orders()
            assert {one["order"] for one in told} == {order.id}
            assert here.git("for-each-ref", "--format=%(refname:short)", "refs/heads/gh-*") == "gh-12"
            assert ask(port, "/hooks/shop", generic(at=datetime.now(UTC)))[0] == 202
            for path in ("/", "/runs", "/hooks", "/hooks/label/x", "/static/style.css", "/hooks/nobody"):
                assert ask(port, path, (headers, body))[0] == 404, path
            assert ask(port, "/hooks/helper", generic(key=None))[0] == 404, (
                "what nobody signs is for this machine alone"
            )
            assert ask(port, "/hooks/label", (headers, body), "GET")[0] == 405
            here.git("config", "user.useConfigOnly", "true")
            here.git("config", "--unset", "user.email")
            assert ask(port, "/hooks/label", github(13)) == (503, "It cannot be taken now.\n")
        finally:
            process.terminate()
        lines = process.stderr.read().splitlines()
    assert lines.pop().startswith("a delivery to label was not taken: git does not know who commits.")
    refused = [line.partition(":")[0] for line in lines if "refused" in line]
    assert refused == [
        f"a delivery to {name} was refused ({code})" for name, code in (("label", 401), ("shop", 401), ("label", 413))
    ]
    assert [line.partition(" (")[0] for line in lines if "refused" not in line] == [
        "label: GH-12 is ordered",
        "shop: SHOP-7 is ordered",
    ]
    assert len(here.orders()) == 2


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = make_project(tmp_path)
    project.configure(LABEL + SHOP)
    project.env |= {"HOOK": "secret", "SHOP": SECRET}
    return project


WITH_INPUT = """import os, sys
os.dup2(os.open(sys.argv.pop(1), os.O_RDONLY), 0)
import redfirst
redfirst.main()
"""


def redfirst(project: Project, *argv: str, body: bytes) -> subprocess.CompletedProcess[str]:
    """Run the command with a standard input."""
    program, given = project.home / "with_input.py", project.home / "body"
    program.write_text(WITH_INPUT)
    given.write_bytes(body)
    command = [str(program), str(given), "deliver", "label", *argv]
    return forked.run(command, cwd=project.root, env=project.environment(), timeout=300)


def test_the_command_takes_headers_from_a_file_and_the_body_from_standard_input(project: Project) -> None:
    headers, body = github()
    place = project.home / "headers.txt"
    place.write_text("HTTP/1.1 200 OK\n" + "".join(f"{name.title()}: {value}\r\n" for name, value in headers.items()))
    argv = ("--headers", str(place))
    done = redfirst(project, *argv, "--json", body=body)
    document = json.loads(done.stdout)
    assert (done.returncode, document["status"], document["issue"]) == (0, 202, "GH-12")
    again = redfirst(project, *argv, body=body)
    assert (again.returncode, again.stdout) == (0, "nothing is ordered: it was delivered before\n")
    forged = redfirst(project, *argv, "--json", body=body + b" ")
    error = json.loads(forged.stdout)["error"]
    assert (forged.returncode, error["kind"], error["details"]) == (2, "input_invalid", {"status": 401})
    (order,) = project.document("queue", "list")["orders"]
    assert (order["issue"], order["via"], order["state"]) == ("GH-12", "label", "queued")
    (shown,) = project.document("work", "--dry-run")["orders"]
    assert (shown["begins"], shown["why"]) == (True, None)
    assert re.search(r"^label +github +on, 1 order$", project.redfirst("trigger", "list").stdout, re.MULTILINE)
    assert project.document("trigger", "resume", "label")["triggers"][0]["paused"] is False
    assert "secret" not in done.stdout + done.stderr + forged.stderr


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('[triggers.x]\non = "a"', "triggers.x.source is missing"),
        ('[triggers.x]\nsource = "github"\non = "a"\nsecret_env = "A"', "triggers.x.senders is missing"),
        ('[triggers.x]\nsource = "agent"\ncron = "* * * * *"', "triggers.x.cron has no effect"),
        ('[triggers.x]\nsource = "schedule"\ncron = "* * * * * *"', "must have five fields"),
        ('[triggers.x]\nsource = "schedule"\ncron = "0 0 30 2 *"', "is no time of cron"),
        ('[triggers.x]\nsource = "schedule"\ncron = "0 0 * * *"\ntimezone = "Mars/Base"', "must be a time zone"),
        ('[triggers.x]\nsource = "agent"\nsecret_env = "whsec_c2VjcmV0"', "triggers.x.secret_env"),
        ('[triggers.cli]\nsource = "agent"', "give the trigger another name"),
    ],
)
def test_a_trigger_that_is_not_whole_is_refused(project: Project, config: str, says: str) -> None:
    project.configure(config)
    with pytest.raises(UserError) as told:
        read_triggers(Repository.find(project.root), project.environment())
    said = str(told.value)
    assert (told.value.reason, says in said, "whsec_c2VjcmV0" in said) == (Reason.CONFIG, True, False), said


def test_a_value_of_ones_own_switches_a_trigger_of_the_repository_off(project: Project) -> None:
    project.configure('[triggers.x]\non = "a"\n')
    done = project.redfirst("trigger", "list")
    assert (done.returncode, "triggers.x.source is missing" in done.stderr) == (2, True), done.stderr
    project.write({"redfirst.toml": SHOP})
    project.configure("[triggers.shop]\nenabled = false\n")
    project.commit()
    (record,) = project.document("trigger", "list")["triggers"]
    assert (record["name"], record["enabled"], record["source"]) == ("shop", False, "generic")
    done = project.redfirst("console", "--hooks", "8787")
    assert (done.returncode, "Write HOST:PORT" in done.stderr) == (2, True), done.stderr


@pytest.mark.broad
def test_a_delivered_issue_is_run_on_its_branch_and_lands_there(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    project = queued.project
    project.use_script(answers(1), PLAIN + SHOP)
    body = issue(1).partition("# GAL-1: Double m1")[2]
    delivery = generic(at=datetime.now(UTC), id="SHOP-7", title="Double m1", body=body)
    environ = {**project.environment(), "SHOP": SECRET}
    found = deliver(Repository.find(project.root), environ, "shop", *delivery)
    assert (found.result, len(queued.work())) == ("ordered", 2)
    (order,) = queued.orders()
    assert (order["outcome"], order["issue"], order["via"]) == ("completed", "SHOP-7", "shop")
    assert (
        project.git("log", "--reverse", "--format=%s", "main..shop-7-double-m1").splitlines()[0] == "chore: file SHOP-7"
    )
    assert project.document("land", order["run"])["_code"] == 0
    assert project.git("rev-parse", "shop-7^{tree}") == project.git("rev-parse", "shop-7-double-m1^{tree}")
    assert "status: Done" in project.git("show", "shop-7:TODO/SHOP-7.md")
    assert project.git("log", "--format=%s", "main") == "init"
