"""Makes the line of one run in a list, and keeps it as long as the run's journal is the same."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason, status_word
from pipeline.policy.characters import as_utf8
from pipeline.runs.claimants import RUNNING
from pipeline.runs.lease import FileLease
from pipeline.runs.store import WORKFLOW
from pipeline.service.ended_runs import has_ended
from pipeline.service.runs_document import RECORDS, RunLine, kept_line
from pipeline.service.text_cache import keep_text, kept_record

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.spending import AnyRun

_MOST_LINES: Final = 1000


def line_of(folder: Path, now: datetime, *, indexed: bool = False) -> RunLine:
    """Return the line of a run; what has ended and is kept in an index is not kept by itself, too."""
    began = time.time_ns()
    live = FileLease.is_held(folder)  # what a driver does in between is not in its journal yet
    line = None if live else kept_record("lists", str(folder), kept_line)
    if line is None:
        try:
            line = _folded(folder, now if live else None)
        except UserError as error:
            return unread_line(folder, error.message, live=live)
        if not live and not (indexed and has_ended(line)):
            records = [str(folder / name) for name in RECORDS]
            keep_text("lists", str(folder), json.dumps(asdict(line)), records, began=began, most=_MOST_LINES)
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
    from pipeline.runs.facts import landed_on, not_before_of, progress_of  # noqa: PLC0415  (heavy; most lines are kept)
    from pipeline.runs.gates import gate_of, gate_place  # noqa: PLC0415  (the same)
    from pipeline.runs.recipe_run import is_of_recipe  # noqa: PLC0415  (heavy; most lines are kept)
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
    from pipeline.recipes.step_table import Checkpoint  # noqa: PLC0415  (heavy; most lines are kept)
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
    from pipeline.runs.facts import driven_s  # noqa: PLC0415  (heavy; most lines are kept)

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
