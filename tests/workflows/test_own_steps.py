"""Steps of a recipe's own between the tasks of an issue and the review of its result."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from crashes import KILLED, die_at, problems, repeated_dispatches
from e2e.lanes import finding, go_on, play
from kit import RESULT_ACCEPTED
from workflows.side_by_side import verified
from workflows.test_quick import asked, planned, summed, sums, worked

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.lanes import Played
    from kit import Entry, Project

pytestmark = pytest.mark.slow

LOG = '{id: log, agent: make, write_set: [CHANGELOG.md, "*.sum"], prompt: "One line on {{inputs.issue}}."%s}'
OURS = "name: ours\nextends: builtin:quick\nedits:\n  - {insert_after: tasks, step: %s}\n"
LINE = "- GAL-1: greet doubles\n"


def recipe(project: Project, step: str = LOG % "") -> str:
    """Write a recipe with a step of its own; return its path."""
    place = project.home / "ours.yaml"
    place.write_text(OURS % step, encoding="utf-8")
    return str(place)


def logs(text: str = LINE, **more: Any) -> Entry:
    report = {"result": "COMPLETE", "summary": "One line."}
    return {"when": {"kind": "change"}, "files": {"CHANGELOG.md": text}, "report": report, **more}


def played(tmp_path: Path, *script: Entry, step: str = LOG % "", argv: tuple[str, ...] = ()) -> Played:
    project = sums(tmp_path)
    entries = [planned(summed("greet")), *worked("greet", "1"), *script]
    return play(project, entries, "--recipe", recipe(project, step), *argv)


@pytest.mark.broad
def test_check_32_what_a_hung_step_wrote_is_in_the_final_diff(tmp_path: Path) -> None:
    done = played(tmp_path, logs(), RESULT_ACCEPTED)
    project = done.project
    assert done.document["outcome"] == "completed", (done.document["note"], done.rows)
    assert asked(project) == ["plan-and-tasks", "write-tests", "implement", "change", "review-result"]
    assert done.rows[-3:] == ["final-review/WRITTEN", "final-review/ACCEPTABLE", "publish/PUBLISHED"]
    review = done.asked("final-review", role="check")
    assert "+- GAL-1: greet doubles" in review.text("diff")
    assert "One line on GAL-1." in review.text("tasks")
    assert "CHANGELOG.md" in review.text("work_notes")
    assert done.assert_artifact_rule() == 5
    assert verified(project) == ["fix: double greet", "docs: one line on GAL-1", "chore(todo): close GAL-1"]
    assert project.git("show", "--format=%b", "--name-only", "work~1").split()[-1] == "CHANGELOG.md"
    assert "Step: log" in project.git("show", "--format=%B", "--no-patch", "work~1")
    told = project.redfirst("explain", "GAL-1", "-v").stdout
    assert "a step of the recipe's own has written" in told
    assert "log: CHANGELOG.md" in told


@pytest.mark.broad
def test_a_fix_task_does_the_step_again_over_what_it_wrote(tmp_path: Path) -> None:
    wrong = [finding("more is not doubled", concern="production")]
    fix: Entry = {"when": {"kind": "review-result"}, "report": {"verdict": "NEEDS WORK", "findings": wrong}}
    mended = {"verdict": "ACCEPTABLE", "prior": [{"id": "final-1-01", "status": "resolved"}]}
    done = played(
        tmp_path,
        logs(),
        fix,
        {"when": {"kind": "split"}, "report": {"tasks": [summed("more")]}},
        *worked("more", "fix-1"),
        logs(f"{LINE}- and so does more\n", run=["grep", "greet", "CHANGELOG.md"]),
        {"when": {"kind": "review-result"}, "report": mended},
    )
    assert done.document["outcome"] == "completed", (done.document["note"], done.rows)
    again = done.asked("final-review", 2, role="make")
    assert "You have done this before" in again.text("request")
    assert {"log.md", "so-far.patch"} <= {path.name for path in (again.folder / "artifacts/outcomes").iterdir()}
    assert verified(done.project) == [
        "fix: double greet",
        "docs: one line on GAL-1",
        "fix: double more",
        "docs: one line on GAL-1",
        "chore(todo): close GAL-1",
    ]


@pytest.mark.broad
def test_what_does_not_count_is_asked_again_and_then_parks(tmp_path: Path) -> None:
    """A change elsewhere is refused, one that breaks a test is not taken; `resume` asks anew, and says what broke."""
    beside = logs(files={"greet.check": "", "CHANGELOG.md": LINE})
    breaking = {**logs(), "files": {"greet.sum": "greet n = n + 1\n"}}
    parked = played(tmp_path, beside, breaking, logs(), RESULT_ACCEPTED, step=LOG % ", attempts: 2, model: small")
    assert (parked.document["reason"], parked.document["_code"]) == ("agent_unusable", 4), parked.document
    assert parked.rows[-1] == "final-review/NOT_WRITTEN"
    assert "greet.check::" in parked.document["note"]
    refused = parked.dispatches("final-review", role="make")[0].result
    assert refused["violations"][0]["rule"] == "test-file"
    done = go_on(parked, "resume")
    assert done.document["outcome"] == "completed", (done.document["note"], done.rows)
    assert "passed and fails now" in done.asked("final-review", 3, role="make").text("measured")
    assert verified(done.project)[1] == "docs: one line on GAL-1"
    assert done.project.git("show", "work:greet.sum") == "greet n = n * 2"


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("{id: log, agent: check, prompt: x}", "is no step of `agent: make`"),
        ("{id: log, agent: make, prompt: x, review: [check]}", "'log' has review, which mean nothing"),
        ("{id: log, agent: make, prompt: x, depends_on: [plan]}", "has to stand between 'tasks' and 'final'"),
    ],
)
@pytest.mark.broad(but_first=1)
def test_what_cannot_stand_there_is_refused_before_anything_is_written(step: str, told: str, tmp_path: Path) -> None:
    project = sums(tmp_path)
    project.use_script([])
    before = project.git("rev-parse", "HEAD")
    refused = project.run("--recipe", recipe(project, step))["error"]
    assert told in refused["message"], refused
    assert project.untouched_since(before)
    assert told in project.redfirst("run", "GAL-1", "--recipe", recipe(project, step), "--dry-run").stdout


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.broad
def test_a_run_that_is_killed_in_such_a_step_asks_nobody_twice(seed: int, tmp_path: Path) -> None:
    project, chance = sums(tmp_path), random.Random(seed)  # noqa: S311  (a schedule, no secret)
    script = [planned(summed("greet")), *worked("greet", "1"), logs(sleep_s=0.2), RESULT_ACCEPTED]
    project.use_script(script)
    argv: tuple[str, ...] = ("run", "GAL-1", "--recipe", recipe(project))
    anywhere = "(after|before) (journal|replace|git)"
    instants = ("after journal dispatch_started", "after journal dispatch_finished", anywhere)
    kills, at = 0, (4, 4, chance.randint(60, 200))[seed % 3]
    where = instants[seed % 3]
    while kills < 10 and die_at(project, where, at, *argv) == KILLED:
        kills, argv, where, at = kills + 1, ("resume", "GAL-1"), anywhere, chance.randint(5, 90)
        if "publish/PUBLISHED" in project.rows():  # what is left is to put away
            break
    last = project.redfirst("resume", "GAL-1")
    assert last.returncode == 0 or "has ended (completed, done)" in last.stderr, last.stderr
    assert kills >= 1
    assert (problems(project), repeated_dispatches(project)) == ([], [])
    assert verified(project) == ["fix: double greet", "docs: one line on GAL-1", "chore(todo): close GAL-1"]
