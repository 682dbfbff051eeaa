"""What is advised of a run for each outcome and reason is executed, also where only a broken machine brings it about.

A driver died at a chosen instant, and the events that would have followed are decided as the next one would have: what
is there is a run with all that belongs to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from crashes import KILLED, die_at
from e2e.next_table import OUTCOMES
from e2e.test_next_lines import FAST, FILES, HONEST
from kit import make_project
from next_lines import Scene, actions_of

from pipeline.outcomes import Reason
from pipeline.routing.state import Event, NewTask
from pipeline.routing.vocabulary import Role, Signal
from pipeline.runs.lease import FileLease
from pipeline.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

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


STORIES: Final[dict[str, tuple[str, list[Event]]]] = {
    "rejected/usage": rejected(Reason.USAGE),
    "rejected/config": rejected(Reason.CONFIG),
    "rejected/untrusted": rejected(Reason.UNTRUSTED),
    "rejected/disk": rejected(Reason.DISK),
    "rejected/environment": rejected(Reason.ENVIRONMENT),
    "rejected/locked": rejected(Reason.LOCKED),
    "rejected/issue_not_found": (BEGUN, [at(Signal.OK), at(Signal.NOT_FOUND)]),
    "rejected/issue_not_todo": (BEGUN, [at(Signal.OK), at(Signal.NOT_TODO)]),
    "rejected/claimed_elsewhere": (BEGUN, [at(Signal.OK), at(Signal.CLAIMED_ELSEWHERE)]),
    "parked/environment": (ASKED, [at(Signal.ENV_BROKEN)]),
    "parked/agent_unavailable": (ASKED, [at(Signal.UNAVAILABLE, role=Role.ORCHESTRATOR)]),
    "cancelled/interrupted": (ASKED, [at(Signal.CANCELLED)]),
    "failed/escape": (ASKED, [at(Signal.ESCAPE), at(Signal.HANDLED, reason=Reason.ESCAPE)]),
    "failed/cleanup_needed": (ASKED, [at(Signal.ESCAPE), at(Signal.HANDLER_FAILED)]),
    "failed/evidence_not_reached": (ASKED, [at(Signal.ESCAPE), at(Signal.HANDLED, reason=Reason.EVIDENCE_NOT_REACHED)]),
    "completed/nothing_to_do": (ASKED, [*to_final_review(), at(Signal.PUBLISHED)]),
    "completed_with_blockers/blockers": (ASKED, [*to_final_review("plan-1-01"), at(Signal.PUBLISHED)]),
    "parked/regression": (DONE, [at(Signal.REGRESSION)]),
    "parked/signing": (DONE, [at(Signal.SIGNING_FAILED)]),
}


@pytest.fixture(scope="module", params=[BEGUN, ASKED, DONE])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Scene]:
    place = tmp_path_factory.mktemp("outcomes") / "a place"
    place.mkdir()
    project = make_project(place, FILES)
    project.env["TESTS_LANGUAGE"] = "languages.sums"
    project.use_script([{"when": {"kind": "plan"}, "exit": 3}] * 2 if request.param != DONE else HONEST, FAST)
    project.git("config", "gpg.program", "gpg")
    assert die_at(project, request.param, 1, "run", "GAL-1") == KILLED
    return request.param, Scene(project, place)


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


def test_each_way_to_stand(scene: tuple[str, Scene]) -> None:
    instant, there = scene
    for name, (began, events) in STORIES.items():
        if began == instant:
            with there.put_back():
                decide(there, events)
                shown = there.project.document("show", "GAL-1")
                assert f"{shown['outcome']}/{shown['reason']}" == name == OUTCOMES[name].stands
                there.each(actions_of(shown), OUTCOMES[name].lines)
                if name == "cancelled/interrupted":
                    there.within(there.project.redfirst("show").stdout, OUTCOMES["the page of a run"].lines)
                    there.within(there.project.redfirst("explain").stdout, OUTCOMES["why in short"].lines)


def test_while_another_process_drives_it_and_waits_for_a_person(scene: tuple[str, Scene]) -> None:
    instant, there = scene
    if instant != ASKED:
        return
    driver = there.started("redfirst resume run-GAL-1 --agent orchestrator=human")
    assert driver.stderr is not None
    said: list[str] = []
    for line in driver.stderr:
        said.append(line)
        if "hand-in" in line:
            break
    there.within("".join(said), OUTCOMES["a desk waits"].lines)
    assert actions_of(there.project.document("show", "GAL-1")) == list(OUTCOMES["live"].lines)
    watch, stop = actions_of(there.project.document("resume", "GAL-1"))
    assert [watch, stop.replace(str(driver.pid), "PID")] == list(OUTCOMES["driven"].lines)
    there.project.git("worktree", "add", "-q", "-b", "other", "../other", "main")
    elsewhere = there.project.document("run", "GAL-1", "--worktree")
    assert actions_of(elsewhere) == list(OUTCOMES["claimed by a live run"].lines)
    follower = there.started(watch)
    assert follower.stdout is not None
    assert "run_started" in follower.stdout.readline()
    assert there.typed(stop).returncode == 0
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == 130, err
    follower.communicate(timeout=60)
    assert follower.returncode == 0
    assert there.project.document("show", "GAL-1")["reason"] == "interrupted"
