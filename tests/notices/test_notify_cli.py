"""`redfirst notify`, and what `run` and `work` send by themselves (docs/how-to/notices.md)."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from crashes import spawn
from queued.sums_project import make
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from queued.sums_project import Queued

pytestmark = pytest.mark.slow
TYPES = ["run.started", "dispatch.started", "publication.done", "run.finished"]


def with_sink(
    tmp_path: Path, out: Path, script: str = "cat >> {out}", count: int = 1, *, broken: bool = False
) -> Queued:
    scripts = {"file": script.format(out=out), **({"broken": "exit 1"} if broken else {})}
    types = json.dumps([*TYPES, "order.*"])
    tables = [
        f"[notify.{name}]\ncommand = {json.dumps(['sh', '-c', command, 'sh'])}\ntypes = {types}\n"
        for name, command in scripts.items()
    ]
    return make(tmp_path, count, extra="".join(tables))


def told(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()]


def wanted(queued: Queued) -> list[dict[str, Any]]:
    return queued.events(*TYPES, "order.*")


def cursors(queued: Queued) -> Iterator[Path]:
    return (queued.project.home / "state").rglob("notices/file.json")


def test_a_run_tells_its_sinks_by_itself_in_order_and_once_and_ends_as_ever_where_one_takes_nothing(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    queued = with_sink(tmp_path, out, broken=True)
    done = queued.redfirst("run", "GAL-1", "--set", f"agents.script={queued.project.home}/script-1.json")
    assert (done["_code"], done["outcome"]) == (0, "completed"), done
    assert "broken did not take" in done["_stderr"]
    found = told(out)
    assert found == wanted(queued)
    assert [one["type"] for one in found][:: len(found) - 1] == ["redfirst.run.started.v1", "redfirst.run.finished.v1"]
    sinks = {sink.pop("name"): sink for sink in queued.redfirst("notify", "--once")["sinks"]}
    assert sinks["file"] == {"sent": 0, "waits": 0, "given_up": 0, "why": ""}
    assert told(out) == found
    assert (sinks["broken"]["sent"], sinks["broken"]["waits"]) == (0, len(found))
    checks = {check["id"]: check for check in queued.redfirst("doctor")["checks"]}
    assert checks["notify"]["status"] == "warn"
    assert "tried again, since the command ended with 1" in checks["notify"]["message"]


@pytest.mark.broad
def test_a_worker_and_its_driver_send_each_event_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    queued = with_sink(tmp_path, out)
    queued.redfirst("notify", "--once")  # from now on
    queued.add()
    queued.work()
    found = told(out)
    assert sorted(found, key=lambda one: one["id"]) == sorted(wanted(queued), key=lambda one: one["id"])
    assert {"redfirst.order.placed.v1", "redfirst.order.ended.v1"} < {one["type"] for one in found}


def test_a_crash_between_sending_and_writing_that_down_loses_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    queued = with_sink(tmp_path, out, "cat >> {out}; [ $(wc -l < {out}) != 2 ] || kill -9 $PPID", count=3)
    queued.redfirst("notify", "--once")  # from now on
    queued.add()
    assert queued.project.redfirst("notify", "--once").returncode < 0
    assert len(told(out)) == 2
    assert queued.project.redfirst("notify", "--once").returncode == 0
    events = wanted(queued)
    assert told(out) == [*events[:2], *events[1:]]
    assert len(events) == 3


def test_one_process_at_a_time_sends_until_it_is_stopped(tmp_path: Path) -> None:
    out = tmp_path / "out"
    queued = with_sink(tmp_path, out)
    with spawn(queued.project, "notify", "--json") as first:
        wait_until(lambda: any(cursors(queued)))
        refused = queued.redfirst("notify", "--once")
        assert (refused["_code"], refused["error"]["kind"]) == (75, "locked")
        queued.add()
        wait_until(lambda: "/orders" in next(cursors(queued)).read_text())
        first.terminate()
        stdout, _ = first.communicate()
    assert json.loads(stdout)["sinks"][0]["sent"] == 1
    assert [one["type"] for one in told(out)] == ["redfirst.order.placed.v1"]


def test_an_example_is_sent_and_what_does_not_work_is_said(tmp_path: Path) -> None:
    out = tmp_path / "out"
    queued = with_sink(tmp_path, out)
    assert queued.redfirst("notify", "--test", "file")["sinks"][0]["sent"] == 1
    assert [one["subject"] for one in told(out)] == ["run-EXAMPLE-1"]
    for words, said in [
        (("--test", "other"), "There is no [notify.other]. There are: file."),
        (("--test", "file", "--once"), "give one of them"),
    ]:
        assert said in queued.redfirst("notify", *words)["error"]["message"]
    queued.project.env["REDFIRST_NOTIFY__FILE__COMMAND"] = '["false"]'
    assert "ended with 1" in queued.redfirst("notify", "--test", "file")["error"]["message"]
    queued.project.env["REDFIRST_NOTIFY__FILE__TYPES"] = '["runs.*"]'
    assert "No event is of a type like 'runs.*'" in queued.redfirst("notify", "--once")["error"]["message"]
    queued.project.env["REDFIRST_NOTIFY__FILE__URL"] = "https://example.org/hook"
    assert "exactly one of command, url and url_env" in queued.redfirst("notify")["error"]["message"]


def test_a_repository_starts_nothing_before_trust(tmp_path: Path) -> None:
    out = tmp_path / "out"
    queued = make(tmp_path, 1)
    assert "Nobody is to be notified" in queued.redfirst("notify")["error"]["message"]
    queued.project.write({"redfirst.toml": f'[notify.file]\ncommand = ["touch", "{out}"]\n'})
    queued.project.commit()
    refused = queued.redfirst("notify", "--test", "file")
    assert refused["error"]["kind"] == "untrusted"
    assert "notify.file.command" in refused["error"]["message"]
    assert queued.project.redfirst("run", "GAL-1").returncode == 2
    assert not out.exists()
    assert queued.project.redfirst("trust", "--yes").returncode == 0
    assert queued.redfirst("notify", "--test", "file")["_code"] == 0
    assert out.exists()


def test_init_adds_a_preset_to_the_users_own_file_and_nothing_over_it(tmp_path: Path) -> None:
    queued = make(tmp_path, 1)
    path = queued.project.home / "config/redfirst/config.toml"
    before = "# mine\n" + path.read_text()
    path.write_text(before)
    shown = queued.project.redfirst("init", "--notify", "slack", "--dry-run").stdout
    assert path.read_text() == before
    for name, words in [("desktop", ()), ("slack", ()), ("email", ("--argv", "mail -s '{text}' ada@example.org"))]:
        made = queued.redfirst("init", "--notify", name, *words)
        assert (made["written"], made["next"][-1]) == (True, f"redfirst notify --test {name}")
    text = path.read_text()
    assert text.startswith(before.rstrip("\n"))
    assert shown in text
    tables = tomllib.loads(text)["notify"]
    assert tables["desktop"]["command"][0] == "notify-send"
    assert (tables["slack"]["url_env"], tables["slack"]["form"]) == ("SLACK_WEBHOOK_URL", "slack")
    assert tables["email"]["command"] == ["mail", "-s", "{text}", "ada@example.org"]
    for words, said in [
        (("desktop",), "has a [notify.desktop] already"),
        (("email",), "needs your command as --argv"),
        (("pager",), "Accepted: desktop, slack, email"),
        (("desktop", "--agent", "human"), "is a call of its own"),
    ]:
        assert said in queued.redfirst("init", "--notify", *words)["error"]["message"]
    assert path.read_text() == text
    assert queued.redfirst("notify", "--once")["sinks"][2]["name"] == "email"
