"""`redfirst events`: the same events whenever they are read, of a closed list, no gap (docs/reference/events.md)."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import typer
from cli import stories
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs.real import alone, begin, event, git, make_repository
from typer.testing import CliRunner

from pipeline.app.events import TYPES, checked
from pipeline.errors import UserError
from pipeline.faces.cli.watch import events
from pipeline.matrix.engine.journal import JOURNAL, Journal
from pipeline.matrix.engine.journal_kinds import EVENTS
from pipeline.repo import Repository
from pipeline.run.folder import RunFolder, Tail
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.run.run import Run

pytestmark = pytest.mark.slow
NO_EVENTS = {
    *("artifact_written", "claim_taken", "config_changed", "gates_asked", "tracker_written"),
    *("publish_onto", "publish_intended", "publish_moving", "landing_intended"),
}
"""Lines that nobody waits for: what they lead to is an event."""

app = typer.Typer()
app.command()(events)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    made = make_repository(tmp_path / "project")
    monkeypatch.chdir(made.worktree)
    return made


def ask(*words: str) -> list[str]:
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def read(lines: list[str]) -> list[dict[str, Any]]:
    any_event = checked()
    for line in lines:
        any_event.validate_json(line)
    return [json.loads(line) for line in lines]


@pytest.mark.broad(but_first=1)
@pytest.mark.parametrize("ending", stories.ENDINGS)
def test_01_02_03_events_are_of_the_schema_and_the_same_whenever_and_since_whatever_they_are_read(
    repository: Repository, ending: Callable[[Repository], Run]
) -> None:
    run = ending(repository)
    lines = ask(run.info.run_id)
    found = read(lines)
    assert lines == ask() == ask("--follow", run.info.run_id), "nobody drives it: following ends"
    assert [one["id"].rpartition("/")[2] for one in found] == [
        str(line.seq) for line in run.journal.lines if line.kind not in NO_EVENTS
    ]
    for number in (0, len(lines) // 2, len(lines) - 1):
        assert ask("--since", found[number]["id"]) == lines[number + 1 :]
    stopped = [one for one in found if one["type"] in {"redfirst.run.parked.v1", "redfirst.run.finished.v1"}]
    wanted = [] if run.state.outcome is None else [{"outcome": run.state.outcome, "reason": run.state.reason}]
    assert [one["data"] for one in stopped][-1:] == wanted
    assert ask("--type", "run.*") == [line for line in lines if '"type":"redfirst.run.' in line]


def test_each_kind_of_line_is_an_event_or_known_to_be_none() -> None:
    mapped = {"decision", "gate_answered"}  # each is one of two types
    named = {name.replace(".", "_") for name in TYPES} | {
        *("tests_ran", "gate_opened", "gate_expired", "published", "step_unsettled", "landed"),
    }
    assert set(EVENTS) - NO_EVENTS - mapped - named == set()
    assert set(EVENTS) >= NO_EVENTS


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(cuts=st.lists(st.integers(min_value=0), max_size=12))
def test_04_a_line_that_is_not_whole_waits_and_none_is_lost_or_told_twice(
    repository: Repository, cuts: list[int]
) -> None:
    folder = repository.worktree / ".workflow/run-GAL-39"
    if not folder.exists():
        stories.finished(repository)
    content = (folder / JOURNAL).read_bytes()
    torn = repository.worktree / ".workflow/run-GAL-40"
    shutil.rmtree(torn, ignore_errors=True)
    torn.mkdir()
    tail = Tail(torn)
    found = tail.lines()
    for cut in sorted({cut % len(content) for cut in cuts} | {len(content)}):
        (torn / JOURNAL).write_bytes(content[:cut])
        found += tail.lines()
    assert [str(line) for line in found] == [str(line) for line in Journal.read(RunFolder(folder)).lines]


def test_30_hostile_text_is_inert(repository: Repository) -> None:
    run = begin(repository)
    run.decide(event(Signal.BASELINE_IMPOSSIBLE, note=f"<script>{stories.ESCAPES}</script>\n" + "x" * 1000))
    (line,) = ask("--type", "step.completed")
    assert line.isascii()
    assert line.isprintable()
    note = json.loads(line)["data"]["note"]
    assert note.isprintable()
    assert len(note) <= 200


def test_what_cannot_be_meant_is_refused_and_a_damaged_run_hides_no_other(repository: Repository) -> None:
    run = stories.finished(repository)
    lines = ask()
    for words, said in [
        (("--type", "runs.*"), "No event is of a type like 'runs.*'"),
        (("--since", "nonsense"), "No event has the id 'nonsense'"),
        (("--since", json.loads(lines[0])["id"] + "x"), "is no id of an event"),
    ]:
        with pytest.raises(UserError, match=said):
            ask(*words)
    other = repository.worktree / ".workflow/run-GAL-40"
    shutil.copytree(run.folder, other)
    (other / JOURNAL).write_bytes(b"{}\n")
    assert ask() == lines
    with pytest.raises(UserError, match="damaged at line 1"):
        ask("GAL-40")


def test_the_source_is_the_project_also_of_a_run_in_a_worktree_of_its_own(repository: Repository) -> None:
    aside = repository.worktree.parent / "project-gal-39"
    git(repository.worktree, "worktree", "add", "--quiet", "-b", "aside", str(aside))
    begin(Repository.find(aside))
    (line,) = ask("--type", "run.started")
    assert json.loads(line)["source"] == f"/redfirst/{repository.worktree.name}"
    assert json.loads(line)["id"].startswith("project-gal-39-")
