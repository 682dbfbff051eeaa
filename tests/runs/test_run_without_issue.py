"""A run of another machine than the matrix: its folder, its dispatches and its crashes are those of any run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from engine.haiku import Haiku
from runs.real import info_of, make_repository, write_result

from pipeline.errors import UserError
from pipeline.matrix.engine.protocols import Decision, Event, LoopState
from pipeline.run.info import DispatchRecord
from pipeline.run.run import KeptRun, Run
from pipeline.run.store import workflow_folder
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.run.info import RunInfo


class PoemRun(KeptRun[LoopState, Event, Decision]):
    @staticmethod
    def machine_of(info: RunInfo) -> Haiku:
        assert info.limits == {"rewrites": 2}
        return Haiku()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "repository")


def begin(repository: Repository) -> PoemRun:
    folder = workflow_folder(repository) / "run-poem"
    info = info_of(repository, "run-poem", issue=None, workflow="poem", limits={"rewrites": 2})
    return PoemRun.create(folder, info)


def dispatch_of(run: PoemRun) -> DispatchRecord:
    at = run.state.trunk
    return DispatchRecord(
        dispatch=f"001-{at.step}-make",
        number=1,
        step=at.step,
        visit=at.visit,
        resumes=0,
        role=Role.MAKE,
        kind="answer",
        question=None,
        task=None,
        attempt=1,
        reask=None,
        base_tree=run.info.start_tree,
        backend="scripted",
    )


def test_a_run_of_another_machine_is_kept_and_read_like_any(repository: Repository) -> None:
    run = begin(repository)
    run.start_dispatch(dispatch_of(run))
    run.decide(Event(signal="written"))
    again = PoemRun.load(run.folder, driving=False)
    assert (again.state.trunk.step, again.state.dispatches) == ("count", 1)
    assert [each.step for each in again.records.values()] == ["write"]
    assert "issue" not in json.loads((run.folder / "journal.jsonl").read_text().splitlines()[0])["data"]


def test_what_it_had_not_said_before_a_crash_is_said(repository: Repository) -> None:
    run = begin(repository)
    record = dispatch_of(run)
    run.start_dispatch(record)
    write_result(run, record)  # killed before the journal knew
    again = PoemRun.load(run.folder, driving=True)
    assert again.results.keys() == {record.dispatch}
    assert PoemRun.load(run.folder, driving=False).results.keys() == {record.dispatch}


def test_the_matrix_drives_no_run_without_an_issue(repository: Repository) -> None:
    run = begin(repository)
    with pytest.raises(UserError, match="which works on no issue"):
        Run.load(run.folder, driving=False)
