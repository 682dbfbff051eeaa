"""What is advised of a run for each outcome and reason is executed, also where only a broken machine brings it about.

A driver died at a chosen instant, and the events that would have followed are decided as the next one would have: what
is there is a run with all that belongs to it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from crashes import KILLED, die_at
from e2e.next_scene import FAILING, HONEST, SECOND, detached, dirty, issue_with, make_scene, no_tracker
from e2e.next_table import OUTCOMES, TABLE
from kit import ISSUE
from next_lines import Scene, actions_of

from pipeline.matrix.routing.state import Event, NewTask
from pipeline.outcomes import Reason
from pipeline.run.lease import FileLease
from pipeline.run.run import Run
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from kit import Project

pytestmark = pytest.mark.slow

BEGUN, ASKED, DONE = "after journal run_started", "before journal dispatch_started", "after journal publish_moving"
"""Instants: at SANITY; at PLAN, with its claim; at PUBLISH, with all that there is to publish."""


def at(signal: Signal, **facts: Any) -> Event:
    return Event(signal=signal, **facts)


def rejected(reason: Reason) -> tuple[str, list[Event]]:
    return BEGUN, [at(Signal.PRECONDITION, reason=reason, note="said so")]


def to_final_review(*blockers: str) -> list[Event]:
    """Take a run from PLAN to its last review, with a task that is done already."""
    return [
        at(Signal.DRAFTED),
        at(Signal.CONVERGED if blockers else Signal.ACCEPTABLE, blockers=blockers),
        at(Signal.DRAFTED, tasks=(NewTask(id="1", title="Reject empty names"),)),
        at(Signal.ACCEPTABLE),
        at(Signal.PASSES_ALREADY),
        at(Signal.ALREADY_DONE),
        at(Signal.ACCEPTABLE),
    ]


UNMET: Final = {"TODO/GAL-1.md": ISSUE.replace("depends-on: []", "depends-on: [GAL-2]"), **SECOND}
STORIES: Final[dict[str, tuple[str, list[Event]]]] = {
    "rejected/usage": rejected(Reason.USAGE),
    "rejected/config": rejected(Reason.CONFIG),
    "rejected/untrusted": rejected(Reason.UNTRUSTED),
    "rejected/disk": rejected(Reason.DISK),
    "rejected/environment": rejected(Reason.ENVIRONMENT),
    "rejected/locked": rejected(Reason.LOCKED),
    "rejected/issue_not_found": (BEGUN, [at(Signal.OK), at(Signal.NOT_FOUND)]),
    "rejected/issue_not_todo": (BEGUN, [at(Signal.OK), at(Signal.NOT_TODO)]),
    "rejected/superseded": rejected(Reason.SUPERSEDED),
    "rejected/hub_unavailable": rejected(Reason.HUB_UNAVAILABLE),
    "rejected/claimed_elsewhere": (BEGUN, [at(Signal.OK), at(Signal.CLAIMED_ELSEWHERE)]),
    "parked/environment": (ASKED, [at(Signal.ENV_BROKEN)]),
    "parked/agent_unavailable": (ASKED, [at(Signal.UNAVAILABLE, role=Role.ORCHESTRATOR)]),
    "cancelled/interrupted": (ASKED, [at(Signal.CANCELLED)]),
    "failed/escape": (ASKED, [at(Signal.ESCAPE), at(Signal.HANDLED, reason=Reason.ESCAPE)]),
    "failed/cleanup_needed": (ASKED, [at(Signal.ESCAPE), at(Signal.HANDLER_FAILED)]),
    "failed/baseline_impossible": (
        ASKED,
        [at(Signal.BASELINE_IMPOSSIBLE), at(Signal.HANDLED, reason=Reason.BASELINE_IMPOSSIBLE)],
    ),
    "failed/evidence_not_reached": (ASKED, [at(Signal.ESCAPE), at(Signal.HANDLED, reason=Reason.EVIDENCE_NOT_REACHED)]),
    "completed/nothing_to_do": (ASKED, [*to_final_review(), at(Signal.PUBLISHED)]),
    "completed_with_blockers/blockers": (ASKED, [*to_final_review("plan-1-01"), at(Signal.PUBLISHED)]),
    "parked/regression": (DONE, [at(Signal.REGRESSION)]),
    "parked/signing": (DONE, [at(Signal.SIGNING_FAILED)]),
}


REJECTIONS: Final[dict[str, Callable[[Project], object]]] = {
    "rejected: dirty": dirty,
    "rejected: detached": detached,
    "rejected: on the base": lambda project: project.git("switch", "--quiet", "main"),
    "rejected: branch moved": lambda project: project.git("commit", "--quiet", "--allow-empty", "--message", "mine"),
    "rejected: no tracker": no_tracker,
    "rejected: broken tracker": issue_with("status: Todo", "status: Soon"),
    "rejected: missing dependency": issue_with("depends-on: []", "depends-on: [GAL-9]"),
    "rejected: unmet dependency": lambda project: project.write(UNMET),
}
REPEATING: Final = {
    *("rejected/usage", "rejected/config", "rejected/disk", "rejected/environment", "rejected/issue_not_found"),
    *("rejected/superseded", "rejected/hub_unavailable"),
    *("parked/environment", "parked/agent_unavailable", "failed/cleanup_needed", "failed/evidence_not_reached"),
    "failed/baseline_impossible",
    *("completed/nothing_to_do", "parked/regression"),
    *("rejected: branch moved", "rejected: missing dependency", "rejected: broken tracker"),
}
"""Whose commands are all advised, and executed, of other runs as well."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scene]:
    """Runs whose drivers died, by the instant; each is made when it is first asked for."""
    return Begun(tmp_path_factory)


class Begun(dict[str, Scene]):
    """Makes what is asked for."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self._folders = folders

    def __missing__(self, instant: str) -> Scene:
        scene = make_scene(self._folders.mktemp("outcomes"), HONEST if instant == DONE else FAILING)
        scene.project.git("config", "gpg.program", "gpg")
        assert die_at(scene.project, instant, 1, "run", "GAL-1") == KILLED
        self[instant] = scene
        return scene


def decide(scene: Scene, events: Sequence[Event]) -> None:
    folder = scene.project.run_folder()
    lease = FileLease.take(folder)
    run = Run.load(folder, driving=True)
    for event in events:
        run.decide(event)
    lease.release()
    if run.state.outcome == "failed":  # the failure handler gives the issue back
        scene.project.git("update-ref", "-d", "refs/redfirst/claims/GAL-1")
        scene.project.git("checkout", "--quiet", "--", "TODO")


def cases(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.broad] if name in REPEATING else []) for name in names]


@pytest.mark.parametrize("name", cases(STORIES))
@pytest.mark.broad
def test_each_way_to_stand(begun: dict[str, Scene], name: str) -> None:
    instant, events = STORIES[name]
    there = begun[instant]
    with there.put_back():
        decide(there, events)
        shown = there.project.document("show", "GAL-1")
        assert f"{shown['outcome']}/{shown['reason']}" == name == OUTCOMES[name].stands
        there.each(actions_of(shown), OUTCOMES[name].lines)
        if name == "cancelled/interrupted":
            there.within(there.project.redfirst("show").stdout, OUTCOMES["the page of a run"].lines)
            there.within(there.project.redfirst("explain").stdout, OUTCOMES["why in short"].lines)


@pytest.mark.parametrize("name", cases(REJECTIONS))
@pytest.mark.broad(but_first=1)
def test_where_a_run_is_rejected_that_had_begun(begun: dict[str, Scene], name: str) -> None:
    there = begun[BEGUN]
    with there.put_back():
        REJECTIONS[name](there.project)
        document = there.project.document("resume", "GAL-1")
        assert f"{document.get('outcome')}/{document.get('reason')}" == TABLE[name].stands, document
        there.each(actions_of(document), TABLE[name].lines)


def _lines(project: Project, changed: Callable[[list[str]], list[str]]) -> None:
    journal = project.run_folder() / "journal.jsonl"
    journal.write_text("".join(changed(journal.read_text(encoding="utf-8").splitlines(keepends=True))))


def _another_row(lines: list[str]) -> list[str]:
    number = next(n for n, line in enumerate(lines) if '"decision"' in line)
    line = json.loads(lines[number])
    line["data"]["row"] = "any/1"
    return [*lines[:number], json.dumps(line) + "\n", *lines[number + 1 :]]


def _result(project: Project) -> None:
    next(iter(sorted(project.run_folder().glob("dispatches/*/result.json")))).unlink()


DAMAGES: Final[dict[str, tuple[str, Callable[[Project], object], list[str]]]] = {
    "a damaged journal": (
        ASKED,
        lambda project: _lines(project, lambda lines: [*lines[:2], "rubbish\n", *lines[3:]]),
        ["show"],
    ),
    "rows of another version": (ASKED, lambda project: _lines(project, _another_row), ["show"]),
    "a damaged result": (DONE, _result, ["show"]),
    "a lost run.json": (ASKED, lambda project: (project.run_folder() / "run.json").write_text("{}"), ["show"]),
    "onto what does not hold its start": (
        ASKED,
        lambda project: project.git("branch", "alone", project.git("commit-tree", "HEAD^{tree}", "-m", "mine")),
        ["resume", "--onto", "alone"],
    ),
    "no desk waits": (BEGUN, lambda _: None, ["hand-in"]),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.broad
def test_where_a_run_cannot_be_gone_on_with(begun: dict[str, Scene], name: str) -> None:
    instant, damage, words = DAMAGES[name]
    there = begun[instant]
    with there.put_back():
        damage(there.project)
        there.each(actions_of(there.project.document(*words)), OUTCOMES[name].lines)


@pytest.mark.broad
def test_while_another_process_drives_it_and_waits_for_a_person(begun: dict[str, Scene]) -> None:
    there = begun[ASKED]
    driver = there.started("redfirst resume run-GAL-1 --agent orchestrator=human")
    assert driver.stderr is not None
    said: list[str] = []
    for line in driver.stderr:
        said.append(line)
        if "hand-in" in line:
            break
    there.within("".join(said), OUTCOMES["a desk waits"].lines)
    assert actions_of(there.project.document("show", "GAL-1")) == list(OUTCOMES["live"].lines)
    for command in ("approve", "abandon", "resume"):
        locked = there.project.document(command, "GAL-1")
        assert (locked["_code"], locked["error"]["kind"]) == (75, "locked"), command
    watch, stop = actions_of(locked)
    assert [watch, stop] == list(OUTCOMES["driven"].lines)
    unnamed = there.project.document("abandon")
    assert actions_of(unnamed) == list(OUTCOMES["driven, and no run is named"].lines)
    assert "is unfinished and at rest. Driven now: run-GAL-1." in unnamed["error"]["message"]
    there.project.git("worktree", "add", "-q", "-b", "other", "../other", "main")
    elsewhere = there.project.document("run", "GAL-1", "--worktree")
    assert (elsewhere["_code"], elsewhere["error"]["kind"]) == (75, "claimed_elsewhere")
    assert actions_of(elsewhere) == list(OUTCOMES["claimed by a live run"].lines)
    follower = there.started(watch)
    assert follower.stdout is not None
    assert "run_started" in follower.stdout.readline()
    assert there.typed(stop).returncode == 0
    _, err = driver.communicate(timeout=300)
    assert driver.returncode == 130, err
    follower.communicate(timeout=300)
    assert follower.returncode == 0
    assert there.project.document("show", "GAL-1")["reason"] == "interrupted"
