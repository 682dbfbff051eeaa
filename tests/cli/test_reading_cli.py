"""`runs`, `show`, `explain`, `diff`: what they tell of runs that the real machine decided."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from cli import stories
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from runs.real import (
    alone,
    begin,
    event,
    git,
    load,
    make_repository,
    start_dispatch,
    ticking,
    to_first_task,
    to_split,
    write_result,
)
from typer.testing import CliRunner

from pipeline.app.documents import DoctorDocument
from pipeline.app.explanation import ExplainDocument
from pipeline.app.journal_lines import log_line
from pipeline.app.run_list import RunsDocument, list_runs, running_beside
from pipeline.app.run_status import DiffDocument, LogDocument, ShowDocument
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.cli.explain import explain
from pipeline.faces.cli.runs import runs, runs_text
from pipeline.faces.cli.show import diff, show
from pipeline.matrix.engine.journal import Line
from pipeline.matrix.engine.journal_kinds import EVENTS, ConfigChanged, GateAnswered, RunResumed
from pipeline.matrix.routing.state import NewTask
from pipeline.repo import Repository
from pipeline.run.info import Usage
from pipeline.run.journal_kinds import DispatchFinished
from pipeline.run.lease import FileLease
from pipeline.run.runs_of_repository import Roster
from pipeline.terminal import visible_lines
from pipeline.vocabulary import Loop, Role, Signal

pytestmark = pytest.mark.slow

READING_SCHEMAS: dict[str, TypeAdapter[Any]] = {
    "runs": TypeAdapter(RunsDocument),
    "show": TypeAdapter(ShowDocument),
    "log": TypeAdapter(LogDocument),
    "explain": TypeAdapter(ExplainDocument),
    "diff": TypeAdapter(DiffDocument),
    "doctor": TypeAdapter(DoctorDocument),
}


OURS = Path(runs.__code__.co_filename).parents[2]
READING = (
    *(("runs",), ("show",), ("show", "--log"), ("explain", "GAL-39")),
    *(("diff", "GAL-39"), ("diff", "GAL-39", "--stat")),
)

app = typer.Typer()
for command in (runs, show, explain, diff):
    app.command()(command)


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    made = make_repository(tmp_path / "project")
    monkeypatch.chdir(made.worktree)
    return made


def ask(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def ask_json(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ask(*words, "--json"))
    READING_SCHEMAS[found["schema"].partition("redfirst.")[2].partition("/")[0]].validate_python(found)
    return found


def refused(*words: str) -> UserError:
    result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, UserError)
    return result.exception


# --- hidden characters ----------------------------------------------------------------------------------------------


@pytest.mark.broad
@given(st.text())
def test_a_visible_text_can_be_printed_as_it_is(text: str) -> None:
    assert not {unicodedata.category(char) for char in visible(text)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert {char for char in visible_lines(text) if unicodedata.category(char) == "Cc"} <= {"\n", "\t"}


@pytest.mark.parametrize("story", ["retries_used_up", "finished"])
@pytest.mark.parametrize("words", READING)
@pytest.mark.broad(but_first=1)
def test_nothing_that_an_agent_said_reaches_the_terminal_as_a_control(
    repository: Repository, story: str, words: tuple[str, ...]
) -> None:
    run = getattr(stories, story)(repository)
    issue = "---\nid: GAL-39\ntitle: Evil \u202e title\nstatus: Todo\n---\n# GAL-39\n"
    run.write_artifact("issue.md", issue)
    for text in (ask(*words), ask(*words, "--json")):
        assert {char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Cs"}} <= {"\n"}


# --- runs ------------------------------------------------------------------------------------------------------------


def test_without_runs_the_list_says_how_to_start_one() -> None:
    assert ask("runs") == "No runs in this repository yet. Start one: redfirst run ISSUE\n"
    assert ask_json("runs") == {"schema": "redfirst.runs/1", "ok": True, "runs": []}
    assert "no runs in this repository" in refused("show").message


def test_runs_are_listed_newest_first_with_where_they_stand(repository: Repository) -> None:
    stories.finished(repository)
    parked = begin(repository, "run-GAL-40", gates=("plan",), started_at="2026-11-21T09:00:00.000Z")
    for signal in (Signal.OK, Signal.CLAIMED, Signal.DRAFTED, Signal.ACCEPTABLE):
        parked.decide(event(signal))
    paid = begin(repository, "run-GAL-41", started_at="2026-11-22T09:00:00.000Z")
    paid.decide(event(Signal.OK))
    for usage in (Usage(cost_usd=1.75, input_tokens=1000, output_tokens=1), Usage()):
        record = start_dispatch(paid, Role.ORCHESTRATOR, "plan", backend="claude")
        paid.finish_dispatch(write_result(paid, record, usage=usage))
    text = runs_text(list_runs(repository, now=ticking()())).splitlines()
    assert [line.split() for line in text[1:-1]] == [
        ["run-GAL-41", "interrupted", "issue", "0/0", "7s", "1.75+", "0s"],
        ["run-GAL-40", "parked", "at", "plan", "(1", "of", "1)", "0/0", "6s", "-", "0s"],
        ["run-GAL-39", "completed", "done", "1/1", "1m03s", "-", "1s"],
    ]
    assert text[-1] == "3 runs, 1m16s of work, at least 1.75 USD"
    assert max(map(len, text)) <= 80
    narrow = runs_text(list_runs(repository, now=ticking()()), 66).splitlines()
    assert [line.split() for line in narrow[2:4]] == [
        ["run-GAL-40", "parked", "at", "plan", "(1", "of", "0/0", "6s", "-", "0s"],
        ["1)"],
    ]
    assert max(map(len, narrow)) <= 66
    assert [line["name"] for line in ask_json("runs")["runs"]] == ["run-GAL-41", "run-GAL-40", "run-GAL-39"]


def test_what_a_run_waited_for_a_person_is_no_work(repository: Repository) -> None:
    parked = begin(repository, gates=("plan",))
    for signal in (Signal.OK, Signal.CLAIMED, Signal.DRAFTED, Signal.ACCEPTABLE):
        parked.decide(event(signal))
    before = ask_json("runs")["runs"][0]["driven_s"]
    lines = [json.loads(line) for line in (parked.folder / "journal.jsonl").read_text().splitlines()]
    assert lines[-1]["kind"] == "run_parked"
    parked.write_artifact("summary.md", "# So far")  # a moment later, by the driver that parked it
    written = ask_json("runs")["runs"][0]["driven_s"]
    assert written == before
    late = load(parked, driving=True)
    late.journal.append(GateAnswered(gate="plan", answer="approve"))
    late.journal.append(RunResumed(step="gate"))
    assert ask_json("runs")["runs"][0]["driven_s"] == before


def test_the_runs_of_all_worktrees_are_listed_in_any_of_them(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(repository, "run-GAL-40", started_at="2026-11-21T09:00:00.000Z")
    assert "WORKTREE" not in ask("runs")
    main, other = repository.worktree, repository.worktree.parent / "a linked one"
    for name in (other, repository.worktree.parent / "gone"):
        git(main, "worktree", "add", "--quiet", "--detach", str(name))
    begin(Repository.find(other), "run-GAL-41", started_at="2026-11-22T09:00:00.000Z")
    shutil.rmtree(repository.worktree.parent / "gone")
    listed = [(line["name"], line["worktree"]) for line in ask_json("runs")["runs"]]
    assert listed == [("run-GAL-41", str(other)), ("run-GAL-40", str(main))]
    head, first, second, _ = ask("runs").splitlines()
    assert head.endswith("WORKTREE")
    assert (first.endswith("  a linked one"), second.endswith("  project")) == (True, True)
    narrow = runs_text(list_runs(repository), 70).splitlines()
    assert [narrow[at].strip() for at in (2, 4)] == ["in a linked one", "in project"]
    assert max(map(len, narrow)) <= 70
    (other / ".workflow").rename(other / "elsewhere")
    (other / ".workflow").symlink_to(other / "elsewhere")
    damaged = next(line for line in ask_json("runs")["runs"] if line["status"] == "damaged")
    assert (damaged["worktree"], "is a link" in damaged["problem"]) == (str(other), True)
    (other / ".workflow").unlink()
    (other / "elsewhere").rename(other / ".workflow")
    monkeypatch.chdir(other)
    assert [(line["name"], line["worktree"]) for line in ask_json("runs")["runs"]] == listed
    assert ask_json("show")["run_id"] == "run-GAL-41"
    assert ask_json("show", "GAL-40")["run_dir"] == str(main / ".workflow/run-GAL-40")


def test_a_driven_run_is_marked_and_named_beside_another(repository: Repository) -> None:
    run, shown = begin(repository), begin(repository, "run-GAL-40")
    roster = Roster(repository)
    assert running_beside(roster, shown.folder) == []
    lease = FileLease.take(run.folder)
    line = next(line for line in ask("runs").splitlines() if "run-GAL-39" in line)
    assert line.split()[:4] == ["*", "run-GAL-39", "running", "sanity"]
    assert running_beside(roster, shown.folder) == [f"run-GAL-39 in {repository.worktree.name}"]
    assert running_beside(roster, run.folder) == []
    lease.release()
    assert {line["status"] for line in ask_json("runs")["runs"]} == {"interrupted"}


_ON_A_TERMINAL = """
import typer
from pipeline.faces.cli.runs import runs
app = typer.Typer()
app.command()(runs)
app()
"""


@pytest.mark.broad
@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colour_is_for_terminals_whose_user_wants_it(repository: Repository, no_color: str, *, coloured: bool) -> None:
    stories.finished(repository)
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "NO_COLOR": no_color, "PYTHONPATH": str(OURS)}
    subprocess.run([sys.executable, "-c", _ON_A_TERMINAL], stdout=theirs, env=env, check=True)
    os.close(theirs)
    assert (b"\x1b[32mcompleted" in os.read(ours, 10_000)) is coloured
    os.close(ours)


# --- show ------------------------------------------------------------------------------------------------------------


def test_show_tells_how_a_run_stands_and_why(repository: Repository) -> None:
    run = stories.retries_used_up(repository)
    run.decide(event(Signal.BUDGET, role=Role.TEST, note="40 of 40 dispatches are used up"))
    lines = [line.strip() for line in ask("show", "GAL-39", "-v").splitlines()]
    for line in (
        "run-GAL-39: Reject empty names",
        "state    parked (budget), exit code 5",
        "stands   write-tests (phase 6), task 1",
        "because  40 of 40 dispatches are used up",
        "sandbox  bubblewrap, network none",
        "usage    13 dispatches, no model asked",
        "1 [active] Reject empty names",
        f"RED {stories.TEST_ID}: ASSERTION_MISMATCH, legal: DID NOT RAISE ValueError",
        "guard tests/test_greet.py::test_name: passes before and after",
        "plan 1: NEEDS WORK; @simplify: JUSTIFIED COMPLEXITY",
        "to fix: plan-1-01 [HIGH] The parser is forgotten (plan.md)",
        "plan 2: ACCEPTABLE; @simplify: JUSTIFIED COMPLEXITY",
        "dispatches 13 of 40",
        "plan_review 1 of 2 (plan revision 1)",
        "make_retry 1 of 1 (task 1, with its present tests)",
        "reask 1 of 1 (@test), past",
        "evidence/task-1.json",
        "redfirst resume run-GAL-39 --set limits.dispatches=NUMBER",
    ):
        assert line in lines
    assert lines[-1] == "redfirst abandon run-GAL-39"


def test_show_of_a_published_run_names_commits_evidence_and_cost(repository: Repository) -> None:
    run = stories.finished(repository)
    found = ask_json("show")
    assert (found["outcome"], found["reason"], found["exit_code"], found["gate"]) == ("completed", "done", 0, None)
    assert found["commits"] == ["c" * 40]
    assert found["follow_ups"] == ["GAL-39.1"]
    assert found["usage"] == {"cost_usd": 2.5, "input_tokens": 10000, "output_tokens": 1000, "dispatches": 10}
    assert found["sandbox"] == {"backend": "bubblewrap", "network": "none"}
    (task,) = found["tasks"]
    assert (task["state"], task["evidence"]["path"]) == ("done", "evidence/task-1.json")
    (red,) = task["evidence"]["red"]
    assert (red["id"], red["class"], red["legal"]) == (stories.TEST_ID, "ASSERTION_MISMATCH", True)
    assert task["evidence"]["green"]["passed"] == [stories.TEST_ID]
    assert "GREEN: 1 test of the task, and 3 that passed before" in ask("show", "-v")
    (run.folder / "evidence/task-1.json").write_text("{")
    (run.folder / "reviews/plan-1.json").unlink()
    found = ask_json("show")
    assert (found["tasks"][0]["evidence"], found["outcome"]) == (None, "completed"), "broken evidence hides no more"
    assert [review["must_fix"] for review in found["reviews"][:2]] == [[], []]


@pytest.mark.broad
def test_a_lost_dispatch_is_told_from_a_running_one(repository: Repository) -> None:
    run = begin(repository)
    to_first_task(run)
    start_dispatch(run, Role.TEST, "write-tests")
    assert ask_json("show")["dispatches"][0]["state"] == "lost"
    assert "state   interrupted: the process that drove it is gone" in ask("show")
    assert ask("explain").startswith("run-GAL-39: interrupted in write-tests (phase 6), task 1: the process that drove")
    lease = FileLease.take(run.folder)
    found = ask_json("show")
    assert (found["live"], found["dispatches"][0]["state"]) == (True, "running")
    assert found["safe_next_actions"] == ["redfirst show run-GAL-39 --log --follow"]
    lease.release()
    assert ask_json("show")["safe_next_actions"] == ["redfirst resume run-GAL-39", "redfirst abandon run-GAL-39"]


def test_a_run_at_a_gate_says_which_and_how_to_answer(repository: Repository) -> None:
    run = begin(repository, gates=("plan",))
    to_split(run)
    found = ask_json("show")
    assert (found["gate"], found["place"], found["exit_code"]) == ("plan", "at approval point plan (1 of 1)", 4)
    assert "redfirst approve run-GAL-39" in found["safe_next_actions"]
    run.resume(sandbox={"sandbox": "none", "network": "open"})
    assert "NOTHING WAS ISOLATED" in ask("show")


def test_blockers_are_named_with_what_they_say(repository: Repository) -> None:
    run = begin(repository, limits={Loop.PLAN_REVIEW: 1})
    for signal in (Signal.OK, Signal.CLAIMED):
        run.decide(event(signal))
    stories.plan(run, "# Plan\n")
    stories.review(run, "NEEDS WORK", "The parser is forgotten")
    assert run.state.trunk.step.value == "split"
    (blocker,) = ask_json("show")["blockers"]
    assert blocker == {
        "id": "plan-1-01",
        "severity": "HIGH",
        "headline": "The parser is forgotten",
        "location": "plan.md",
        "proof": None,
    }
    assert "blockers  on record: plan-1-01" in ask("explain", "GAL-39", "--last")
    assert "open    plan-1-01 [HIGH] The parser is forgotten" in ask("show"), "while the run goes on it stops nothing"
    run.decide(event(Signal.CANCELLED))
    assert "blocker  plan-1-01 [HIGH] The parser is forgotten" in ask("show")


# --- the log ---------------------------------------------------------------------------------------------------------


def test_the_log_has_one_readable_line_an_event(repository: Repository) -> None:
    run = stories.red_reached(repository)
    lines = ask("show", "--log").splitlines()
    assert len(lines) == len(run.journal.lines)
    assert "2026-11-20 14:00:03  decision           sanity: OK -> issue: 3 tests" in lines
    assert any("change_rejected" in line and "(not-a-test): @test may write test files only" in line for line in lines)
    assert any("reask of visit 9 test 0: 1" in line for line in lines)
    refused = [line.data.complaint for line in run.journal.of(DispatchFinished) if line.data.complaint]
    assert refused
    for complaint in refused:
        assert [line.split()[2] for line in lines if complaint in line] == ["dispatch_finished"], "it stands there once"
    assert ask_json("show", "--log")["lines"][0]["kind"] == "run_started"


SAMPLES: tuple[Any, ...] = ("plan", "check", "c" * 40, "2026-11-20T15:00:00.000Z", 1, {}, ["plan"], None)


def sample_of(annotation: Any) -> Any:
    """Return a value that a key of such a type takes."""
    for value in SAMPLES:
        with suppress(ValidationError):
            TypeAdapter[Any](annotation).validate_python(value)
            return value
    raise LookupError(annotation)


@pytest.mark.parametrize("kind", EVENTS)
def test_every_kind_of_event_has_words_even_with_data_of_another_version(kind: str) -> None:
    fields = {name: field for name, field in EVENTS[kind].model_fields.items() if field.is_required()}
    said = {name: sample_of(Annotated[field.annotation, field]) for name, field in fields.items()}
    more = {} if kind == "dispatch_started" else {"x": "\x1b"}
    head = {"seq": 1, "at": "2026-11-20T14:00:00.000Z", "host": "h", "epoch": 1, "kind": kind}
    line = Line.model_validate({**head, "data": said | more})
    assert log_line(line).startswith(f"2026-11-20 14:00:00  {kind}")
    assert json.loads(str(line))["data"] == said | more, "what was not said is not written"


_DRIVER = """
import sys
from pathlib import Path
from pipeline.matrix.routing.state import Event
from pipeline.outcomes import Reason
from pipeline.vocabulary import Signal
from pipeline.run.lease import FileLease
from pipeline.run.run import Run
lease = FileLease.take(Path(sys.argv[1]))
run = Run.load(Path(sys.argv[1]), driving=True)
print("driving", flush=True)
sys.stdin.readline()
run.decide(Event(signal=Signal.OK, note="seen by the follower"))
sys.stdin.readline()
run.decide(Event(signal=Signal.NOT_FOUND, reason=Reason.ISSUE_NOT_FOUND))
"""

_FOLLOWER = """
import sys
from pathlib import Path
from pipeline.app.journal_lines import follow
follow(Path(sys.argv[1]), lambda line: print(line, flush=True))
print("end", flush=True)
"""


def test_following_a_log_shows_what_comes_and_ends_with_the_driver(repository: Repository) -> None:
    folder = begin(repository).folder

    def start(code: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", code, str(folder)]
        return subprocess.Popen(argv, cwd=OURS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    with start(_DRIVER) as driver:
        assert driver.stdin
        assert driver.stdout
        assert driver.stdout.readline() == "driving\n"
        with start(_FOLLOWER) as follower:
            assert follower.stdout
            assert "run_started" in follower.stdout.readline()
            driver.stdin.write("\n")
            driver.stdin.flush()
            assert "seen by the follower" in follower.stdout.readline()
            driver.stdin.write("\n")
            driver.stdin.flush()
            assert "NOT_FOUND" in follower.stdout.readline()
            assert "rejected: issue_not_found" in follower.stdout.readline()
            assert follower.stdout.readline() == "end\n"


@pytest.mark.parametrize("words", [("--follow",), ("--log", "--follow", "--json")])
def test_follow_belongs_to_the_log_for_people(repository: Repository, words: tuple[str, ...]) -> None:
    begin(repository)
    assert "--follow belongs to --log" in refused("show", *words).message


# --- explain ---------------------------------------------------------------------------------------------------------


def paragraph(text: str, start: str) -> list[str]:
    found = [part for part in text.split("\n\n") if part.split(". ", 1)[-1].startswith(start)]
    assert len(found) == 1, start
    return [" ".join(line.split()) for line in found[0].splitlines()]


def test_decisions_are_explained_by_what_they_rest_on_as_long_as_it_is_what_it_was(repository: Repository) -> None:
    run = stories.red_reached(repository)
    text = ask("explain", "GAL-39", "-v")
    rejected = paragraph(text, "write-tests task 1: VIOLATION from @test")
    for line in (
        "refused src/\\x1b]0;owned\\x07\\u202eevil.py, rule not-a-test: @test may write test files only",
        "dropped as scratch: __pycache__",
        "rule any/VIOLATION: a change outside the role's policy: restored, told, asked again (any dispatch)",
        "counts reask 1 of 1 (@test)",
        "then the same agent is asked again, told why: write-tests, task 1",
        "evidence dispatches/007-write-tests-test/result.json",
    ):
        assert line in rejected
    assert sum("These changes are not yours to make." in line for line in rejected) == 1, "it is said once"
    illegal = paragraph(text, "write-tests task 1: ILLEGAL_RED")
    assert "measured 1 failed (tests/test_greet.py)" in illegal
    assert "found refused: STRUCTURAL: test_empty fails without reaching production" in illegal
    assert "counts test_rewrite 1 of 2 (task 1)" in illegal
    run.write_artifact("evidence/red-008.md", "- something else\n")
    (run.folder / "evidence/red-009.md").unlink()
    text = ask("explain", "GAL-39", "-v")
    illegal, red = (paragraph(text, f"write-tests task 1: {signal}") for signal in ("ILLEGAL_RED", "RED"))
    assert "evidence/red-008.md (written again since)" in illegal
    assert not any("STRUCTURAL" in line or "something else" in line for line in illegal)
    assert "evidence/red-009.md (gone)" in red
    states = {line["path"]: line["state"] for line in ask_json("explain", "GAL-39")["decisions"][9]["evidence"]}
    assert states["evidence/task-1.json"] == states["evidence/red-008.md"] == "changed"
    assert states["dispatches/008-write-tests-test/result.json"] == "as_decided"


def test_a_limit_that_is_reached_is_explained_with_what_follows(repository: Repository) -> None:
    run = stories.retries_used_up(repository)
    lines = paragraph(ask("explain", "GAL-39", "--last"), "diagnose task 1: PRODUCTION_LOGIC")
    assert (
        "used up make_retry 1 of 1 (task 1, with its present tests), so: write-tests (counts for test_design)" in lines
    )
    assert "counts test_design 1 of 2 (task 1)" in lines
    assert "found production_logic: the guard is missing" in lines
    assert "then write-tests, task 1" in lines
    found = ask_json("explain", "GAL-39", "--last")
    (last,) = found["decisions"]
    assert last["number"] == len(run.history)
    (empty,) = last["exhausted"]
    assert (empty["purse"]["loop"], empty["purse"]["spent"], empty["purse"]["limit"]) == ("make_retry", 1, 1)


def test_what_happened_between_decisions_is_told(repository: Repository) -> None:
    run = begin(repository, gates=("plan",))
    to_split(run)
    run.resume()
    run.journal.append(GateAnswered(gate="plan", answer="approved", artifacts={}))
    run.decide(event(Signal.APPROVED))
    run.tell(ConfigChanged(limits={Loop.HYGIENE: 5}, config_hash="hash"))
    run.decide(event(Signal.DRAFTED, tasks=(NewTask(id="1"),)))
    text = ask("explain", "GAL-39", "-v")
    gate = paragraph(text, "gate: APPROVED")
    assert "a person answered at approval point plan: approved" in gate
    assert "then on, as approved: split" in gate
    assert "then waits at approval point plan for a person" in paragraph(text, "review-plan: ACCEPTABLE")
    assert any("limits from here on: hygiene = 5" in line for line in paragraph(text, "split: DRAFTED"))


# --- diff ------------------------------------------------------------------------------------------------------------


@pytest.mark.broad
def test_the_patch_of_a_run_applies_to_its_start(repository: Repository, tmp_path: Path) -> None:
    run = stories.finished(repository)
    patch = tmp_path / "work.patch"
    patch.write_text(ask("diff", "GAL-39"))
    git(repository.worktree, "apply", str(patch))
    assert (repository.worktree / "app.py").read_text() == "fixed\n"
    found = ask_json("diff", "GAL-39", "--stat")
    assert (found["old"], found["new"], found["patch"]) == (run.state.start, run.state.head, None)
    assert {file["path"] for file in found["files"]} == {"app.py", "tests/test_greet.py"}
    assert ask("diff", "GAL-39", "--stat").splitlines()[-1] == "2 files, +2 -1"


def test_the_diff_of_one_task_begins_where_the_task_began(repository: Repository) -> None:
    run = begin(repository)
    to_first_task(run, NewTask(id="1"), NewTask(id="2"))
    for number in ("1", "2"):
        tree = stories.tree_of(run, {f"task{number}.py": "x\n"})
        run.decide(event(Signal.RED, tree=tree))
        run.decide(event(Signal.GREEN, tree=tree))
    assert ask("diff", "GAL-39", "--task", "2", "--stat").splitlines()[0] == "task2.py  +1 -0"
    error = refused("diff", "GAL-39", "--task", "7")
    assert error.details == {"tasks": ["1", "2"]}


def test_what_is_not_there_is_told_as_that(repository: Repository) -> None:
    run = begin(repository, start_tree="1" * 40)
    for words in (("show", "X"), ("explain", "X"), ("diff", "X")):
        assert "run-GAL-39" in refused(*words).message
    assert ask("explain", "GAL-39").splitlines()[-1] == "Nothing was decided yet."
    error = refused("diff", "GAL-39")
    assert "git no longer has the objects of run-GAL-39" in error.message
    assert str(run.folder) in error.message


def test_reading_writes_nothing(repository: Repository) -> None:
    run = stories.red_reached(repository)
    with (run.folder / "journal.jsonl").open("ab") as file:
        file.write(b'{"torn')

    def everything() -> dict[Path, tuple[int, bytes]]:
        files = [path for path in repository.worktree.rglob("*") if path.is_file()]
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = everything()
    for words in READING:
        ask(*words)
    assert everything() == before
