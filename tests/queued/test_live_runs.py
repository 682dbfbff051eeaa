"""What runs are about to change, and what they cost today: what lets another one wait."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from kit import PLAN
from runs.real import BEGAN, alone, begin, dispatch, event, make_repository

from pipeline.app.work import live_runs, planned_paths, spent_today
from pipeline.run.lease import FileLease
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository

pytestmark = pytest.mark.slow


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    alone(monkeypatch, tmp_path / "home")
    return make_repository(tmp_path / "project")


def test_a_run_is_live_while_it_is_driven_and_its_plan_says_what_it_will_change(repository: Repository) -> None:
    run = begin(repository)
    assert (live_runs(repository), planned_paths(run.folder)) == ([], frozenset())
    for signal in (Signal.OK, Signal.CLAIMED):
        run.decide(event(signal))
    dispatch(run, Role.ORCHESTRATOR, "plan", report=PLAN["report"])
    lease = FileLease.take(run.folder)
    assert live_runs(repository) == [run.folder]
    lease.release()
    assert planned_paths(run.folder) == {"greet.py"}
    (run.folder / "run.json").write_text("nothing")
    assert planned_paths(run.folder) == frozenset()


def test_only_what_was_spent_since_midnight_counts(repository: Repository) -> None:
    for name, usd in (("run-GAL-1", 0.5), ("run-GAL-2", 0.25)):
        run = begin(repository, name)
        dispatch(run, Role.ORCHESTRATOR, "plan", usage={"cost_usd": usd})
        dispatch(run, Role.CHECK, "review-plan", usage={})
    assert sum(spent_today(repository, BEGAN).values()) == 0.75
    assert spent_today(repository, BEGAN + timedelta(days=1)) == {}
