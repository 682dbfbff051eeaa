"""A run that redfirst 0.1.0 left, in its own bytes: every later version reads, folds and writes it just so."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest
from kit import REDFIRST

from pipeline.matrix.engine.journal import Journal
from pipeline.matrix.engine.journal_kinds import EVENTS, ConfigChanged, DecisionMade, EffectMade, RunResumed
from pipeline.outcomes import Outcome, Reason
from pipeline.run.folder import RunFolder
from pipeline.run.journal_kinds import ChangeAdmitted, ChangeRejected, DispatchFinished, DispatchStarted
from pipeline.run.run import Run
from pipeline.vocabulary import Loop, Step

RECORDED: Final = Path(__file__).parent / "recorded" / "run-GAL-39"
SINCE: Final = {
    *("publish_onto", "publish_moving", "step_started", "step_settled", "step_held", "step_unsettled"),
    *("run_queued", "gate_expired", "input_requested", "input_given", "point_passed"),
    *("landing_intended", "landing_refused", "landed", "dispatch_waits", "gates_asked"),
}
"""Kinds of lines that 0.1.0 did not have."""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    folder = tmp_path / ".workflow" / RECORDED.name
    shutil.copytree(RECORDED, folder)
    return Run.load(folder, driving=False)


def test_it_has_every_kind_of_line(run: Run) -> None:
    assert {line.kind for line in run.journal.lines} | SINCE == set(EVENTS)


def test_the_schema_names_every_kind_of_line(run: Run) -> None:
    shown = subprocess.run([REDFIRST, "schema", "journal"], capture_output=True, text=True, check=True)
    words = json.loads(shown.stdout)["properties"]["kind"]["enum"]
    assert sorted(words) == sorted({line.kind for line in run.journal.lines} | SINCE)


def test_it_is_folded_to_what_it_came_to(run: Run) -> None:
    state = run.state
    assert (state.outcome, state.reason) == (Outcome.COMPLETED_WITH_BLOCKERS, Reason.BLOCKERS)
    assert (state.trunk.step, state.trunk.visit, state.resumes, state.dispatches) == (Step.PUBLISH, 30, 1, 17)
    assert (state.plan_revision, state.split_revision, state.draft, state.effects) == (1, 3, 6, 12)
    assert state.limits == {Loop.PLAN_REVIEW: 4, Loop.MAKE_RETRY: 3, "parallel": 1}
    assert state.counters == {
        "plan_review@plan 1": 1,
        "reask@visit 9 test 1": 1,
        "test_rewrite@task 1": 1,
        "make_retry@task 1 7887c9338d69": 1,
        "test_design@task 1": 1,
        "final_review@plan 1": 1,
        "human@run": 1,
    }
    assert [(task.id, task.status, task.fix, task.testable) for task in state.tasks.values()] == [
        ("1", "done", False, True),
        ("2", "done", False, False),
        ("3", "done", True, False),
        ("4", "done", True, False),
    ]
    assert state.head == state.tasks["4"].candidate == "de979afa822cbd3c63ad3c94ba1cc77607d179b9"
    assert state.open_blockers == ("final-1",)


def test_it_is_written_again_in_the_same_bytes(run: Run) -> None:
    recorded = (RECORDED / "journal.jsonl").read_bytes()
    assert "".join(map(str, run.journal.lines)).encode() == recorded
    assert _driven_again(run) == recorded


def _driven_again(run: Run) -> bytes:
    """Return the journal that the same acts write today."""
    lines = run.journal.lines
    moments = iter([datetime.fromisoformat(line.at) for line in lines])
    store = RunFolder(run.folder)
    store.host = lines[0].host
    store.cut(0)
    again = Run(store, run.info, Journal(store, [], clock=lambda: next(moments)))
    for line in lines:
        match line.data:
            case DecisionMade(event=event):
                again.decide(again.machine.read(event))
            case DispatchStarted() as record:
                again.start_dispatch(record)
            case DispatchFinished(dispatch=name):
                again.finish_dispatch(run.results[name])
            case RunResumed() as resumed:
                again.resume(sandbox=resumed.sandbox if "sandbox" in resumed.model_fields_set else None)
            case ConfigChanged() as changed:
                again.tell(changed)
            case EffectMade() | ChangeAdmitted() | ChangeRejected():
                pass  # said with the decision, or the dispatch
            case other:
                again.journal.append(other)
    return store.journal()


def test_the_lane_is_written_only_where_it_is_not_the_trunk() -> None:
    for text in (RECORDED / "journal.jsonl").read_text().splitlines():
        data = json.loads(text)["data"]
        assert "lane" not in data
        assert "lane" not in data.get("event", {})
