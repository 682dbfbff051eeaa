"""The list of runs: each journal is folded once, and one that is damaged costs only its own line."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from pipeline.engine.events import RunParked, RunResumed
from pipeline.engine.journal import utc_now
from pipeline.errors import UserError
from pipeline.policy.characters import as_utf8
from pipeline.runs.claimants import GONE, claimant, status_of
from pipeline.runs.facts import progress_of
from pipeline.runs.gates import gate_of, gate_place
from pipeline.runs.lease import FileLease
from pipeline.runs.roster import Roster, orphans
from pipeline.runs.run import Run
from pipeline.runs.spending import spent
from pipeline.runs.store import WORKFLOW
from pipeline.service.documents import RunLine, RunsDocument

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository


def list_runs(repository: Repository, *, now: datetime | None = None) -> RunsDocument:
    """Return the runs of all worktrees of the repository, the newest first.

    Args:
        repository: Seen from any of them.
        now: What ages are counted to.
    """
    moment = now or utc_now()
    roster = Roster(repository)
    lines = [_line(run.folder, moment) for run in roster.runs]
    lines += [_unread(folder, error.message, live=False) for folder, error in roster.problems.items()]
    lines += [
        _unread(claim.folder, claimant(roster, issue, claim).refusal().message, live=False, issue=issue, status=GONE)
        for issue, claim in orphans(repository).items()
    ]
    return RunsDocument(runs=tuple(sorted(lines, key=lambda line: line.started_at or "", reverse=True)))


def newest(repository: Repository) -> Path | None:
    """Return the folder of the run that was started last, in this worktree if it has any; None if none can be read."""
    for run in Roster(repository).newest():
        try:
            Run.load(run.folder, driving=False)
        except UserError:
            continue
        return run.folder
    return None


def _line(folder: Path, now: datetime) -> RunLine:
    live = FileLease.is_held(folder)
    try:
        run = Run.load(folder, driving=False)
    except UserError as error:
        return _unread(folder, error.message, live=live)
    state = run.state
    done, total = progress_of(run)
    taken = spent(run)
    asked = taken.asked > 0
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
        driven_s=_driven(run, now if live else None),
        cost_usd=taken.cost_usd if asked and not taken.unpriced else None,
        cost_known_usd=taken.cost_usd if asked else None,
        tokens=taken.tokens if asked and not taken.uncounted else None,
        problem=None,
        gate=gate_of(run),
        gate_place=gate_place(run),
    )


def _unread(folder: Path, why: str, *, live: bool, issue: str | None = None, status: str = "damaged") -> RunLine:
    return RunLine(
        name=folder.name,
        worktree=as_utf8(str(folder.parent if folder.name == WORKFLOW else folder.parents[1])),
        issue=issue,
        live=live,
        status=status,
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


def _driven(run: Run, now: datetime | None) -> int | None:
    """Return the seconds that processes drove the run: until it parked or they died, and again from its resumption.

    Args:
        run: The run.
        now: The time, while it is driven.
    """
    try:
        moments = [(line.kind, datetime.fromisoformat(line.at)) for line in run.journal.lines]
    except ValueError:
        return None
    took = [
        (later - earlier).total_seconds()
        for (kind, earlier), (following, later) in pairwise(moments)
        if kind != RunParked.KIND and following != RunResumed.KIND
    ]
    if now is not None and moments:
        took.append((now - moments[-1][1]).total_seconds())
    return int(sum(seconds for seconds in took if seconds > 0))


def _age(started_at: str, now: datetime) -> int | None:
    try:
        begun = datetime.fromisoformat(started_at)
    except ValueError:
        return None
    return max(int((now - begun.astimezone(UTC)).total_seconds()), 0)
