"""The list of runs: each journal is folded once, and one that is damaged costs only its own line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pipeline.engine.journal import utc_now
from pipeline.errors import UserError
from pipeline.git import Repository
from pipeline.policy.characters import as_utf8
from pipeline.runs.facts import progress_of
from pipeline.runs.lease import FileLease
from pipeline.runs.run import Run
from pipeline.runs.store import WORKFLOW, run_names
from pipeline.service.documents import RunLine, RunsDocument

if TYPE_CHECKING:
    from pathlib import Path


def list_runs(repository: Repository, *, now: datetime | None = None, linked: bool = False) -> RunsDocument:
    """Return the runs of the worktree, the newest first.

    Args:
        repository: Seen from the worktree.
        now: What ages are counted to.
        linked: From the main checkout, those of its linked worktrees as well.
    """
    moment = now or utc_now()
    lines = [_line(repository.worktree / WORKFLOW / name, moment) for name in run_names(repository)]
    if linked and repository.worktree.resolve() == repository.main_checkout.resolve():
        for folder in repository.linked_worktrees():
            lines += _lines_of(folder, moment)
    return RunsDocument(runs=tuple(sorted(lines, key=lambda line: line.started_at or "", reverse=True)))


def _lines_of(worktree: Path, now: datetime) -> list[RunLine]:
    """Return the runs of another worktree; one that keeps them where no run does costs a line."""
    try:
        return [_line(worktree / WORKFLOW / name, now) for name in run_names(Repository.find(worktree))]
    except UserError as error:
        return [_damaged(worktree / WORKFLOW, error.message, live=False)]


def newest(repository: Repository) -> Path | None:
    """Return the folder of the run that was started last, or None where there is none that can be read."""
    readable = [line for line in list_runs(repository).runs if line.problem is None]
    return repository.worktree / WORKFLOW / readable[0].name if readable else None


def status_of(run: Run, *, live: bool) -> str:
    """Return one word on how the run stands: its outcome, or that it is being driven, or that its driver died."""
    if run.state.outcome is not None:
        return run.state.outcome.value
    return "running" if live else "interrupted"


def _line(folder: Path, now: datetime) -> RunLine:
    live = FileLease.is_held(folder)
    try:
        run = Run.load(folder, driving=False)
    except UserError as error:
        return _damaged(folder, error.message, live=live)
    state = run.state
    done, total = progress_of(run)
    return RunLine(
        name=folder.name,
        worktree=as_utf8(str(folder.parents[1])),
        issue=run.info.issue,
        live=live,
        status=status_of(run, live=live),
        outcome=state.outcome,
        reason=state.reason,
        step=state.trunk.step.value,
        phase=state.trunk.step.phase,
        task=state.current,
        tasks_done=done,
        tasks_total=total,
        dispatches=state.dispatches,
        started_at=run.info.started_at,
        last_at=run.journal.lines[-1].at if run.journal.lines else None,
        age_s=_age(run.info.started_at, now),
        problem=None,
    )


def _damaged(folder: Path, why: str, *, live: bool) -> RunLine:
    return RunLine(
        name=folder.name,
        worktree=as_utf8(str(folder.parent if folder.name == WORKFLOW else folder.parents[1])),
        issue=None,
        live=live,
        status="damaged",
        outcome=None,
        reason=None,
        step=None,
        phase=None,
        task=None,
        tasks_done=0,
        tasks_total=0,
        dispatches=0,
        started_at=None,
        last_at=None,
        age_s=None,
        problem=why,
    )


def _age(started_at: str, now: datetime) -> int | None:
    try:
        begun = datetime.fromisoformat(started_at)
    except ValueError:
        return None
    return max(int((now - begun.astimezone(UTC)).total_seconds()), 0)
