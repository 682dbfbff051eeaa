"""Makes the line of one run in a list."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.outcomes import Reason, status_word
from pipeline.policy.characters import as_utf8
from pipeline.runs.claimants import RUNNING
from pipeline.runs.lease import FileLease
from pipeline.runs.store import WORKFLOW
from pipeline.service.runs_document import RunLine

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.spending import AnyRun


def line_of(folder: Path, now: datetime) -> RunLine:
    """Return the line of a run."""
    live = FileLease.is_held(folder)
    try:
        line = _folded(folder, now if live else None)
    except UserError as error:
        return unread_line(folder, error.message, live=live)
    rests = "queued" if line.queued else "interrupted"
    status = status_word(line.outcome, line.reason) if line.outcome is not None else RUNNING if live else rests
    return replace(line, live=live, status=status, age_s=_age(line.started_at or "", now))


def line_from(folder: Path) -> RunLine:
    """Return the line of a run that no process drives, as its files say.

    Raises:
        UserError: the run is damaged.
    """
    return _folded(folder, None)


def aged(line: RunLine, now: datetime) -> RunLine:
    """Return the line of a run that has ended as it stands now."""
    status = status_word(line.outcome, line.reason) if line.outcome is not None else line.status
    return replace(line, status=status, age_s=_age(line.started_at or "", now))


def _folded(folder: Path, now: datetime | None) -> RunLine:
    """Return the line of a run as its journal says; whether it is driven, and its age, are asked each time.

    Args:
        folder: Of the run.
        now: The time, while it is driven.

    Raises:
        UserError: the run is damaged.
    """
    from pipeline.runs.facts import landed_on, not_before_of, progress_of  # noqa: PLC0415  (heavy; an ended run is known)
    from pipeline.runs.gates import gate_of, gate_place  # noqa: PLC0415  (the same)
    from pipeline.runs.records import is_of_recipe  # noqa: PLC0415  (heavy; an ended run is known)
    from pipeline.runs.run import Run  # noqa: PLC0415  (the same)
    from pipeline.runs.spending import spent  # noqa: PLC0415  (the same)

    if is_of_recipe(folder):
        return _of_recipe(folder, now)
    run = Run.load(folder, driving=False)
    state = run.state
    done, total = progress_of(run)
    taken = spent(run)
    asked = taken.asked > 0
    return RunLine(
        name=folder.name,
        worktree=as_utf8(str(folder.parents[1])),
        issue=run.issue,
        live=False,
        status="",
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
        age_s=None,
        driven_s=_driven(run, now),
        cost_usd=taken.cost_usd if asked and not taken.unpriced else None,
        cost_known_usd=taken.cost_usd if asked else None,
        tokens=taken.tokens if asked and not taken.uncounted else None,
        problem=None,
        gate=gate_of(run),
        gate_place=gate_place(run),
        queued=run.queued,
        landed=landed_on(run),
        not_before=not_before_of(run, now),
    )


def _of_recipe(folder: Path, now: datetime | None) -> RunLine:
    """Return the line of a run that the steps of a recipe drive; each of them counts as a task."""
    from pipeline.recipes.step_table import Checkpoint  # noqa: PLC0415  (heavy; an ended run is known)
    from pipeline.runs.facts import not_before_of  # noqa: PLC0415  (the same)
    from pipeline.runs.recipe_run import RecipeRun  # noqa: PLC0415  (the same)
    from pipeline.runs.spending import spent  # noqa: PLC0415  (the same)
    from pipeline.service.recipe_gates import gates_place, open_gates  # noqa: PLC0415  (the same)

    run = RecipeRun.load(folder, driving=False)
    state, taken = run.state, spent(run)
    gates = tuple(gate.step for gate in open_gates(run)) if state.reason is Reason.APPROVAL else ()
    names = [name for id_ in run.machine.order for name in run.machine.names(state, id_)]
    return RunLine(
        name=folder.name,
        worktree=as_utf8(str(folder.parents[1])),
        issue=None,
        live=False,
        status="",
        outcome=state.outcome,
        reason=state.reason,
        step=None,
        phase=None,
        task=None,
        tasks_done=sum(state.settled.get(name) is Checkpoint.READY for name in names),
        tasks_total=len(names),
        dispatches=state.dispatches,
        started_at=run.info.started_at,
        last_at=run.journal.lines[-1].at if run.journal.lines else None,
        age_s=None,
        driven_s=_driven(run, now),
        cost_usd=taken.cost_usd if taken.asked and not taken.unpriced else None,
        cost_known_usd=taken.cost_usd if taken.asked else None,
        tokens=taken.tokens if taken.asked and not taken.uncounted else None,
        problem=None,
        gate=", ".join(gates) or None,
        gate_place=gates_place(gates) if gates else None,
        queued=run.queued,
        not_before=not_before_of(run, now),
    )


def unread_line(folder: Path, why: str, *, live: bool, issue: str | None = None, status: str = "damaged") -> RunLine:
    """Return the line of a run that cannot be read, with why."""
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


def _driven(run: AnyRun, now: datetime | None) -> int | None:
    from pipeline.runs.facts import driven_s  # noqa: PLC0415  (heavy; an ended run is known)

    try:
        return int(driven_s(run, now))
    except ValueError:
        return None


def _age(started_at: str, now: datetime) -> int | None:
    try:
        begun = datetime.fromisoformat(started_at)
    except ValueError:
        return None
    return max(int((now - begun.astimezone(UTC)).total_seconds()), 0)
