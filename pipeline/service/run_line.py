"""Defines what `runs` tells of each run, and reads it: a line follows from run.json and the journal alone."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason, status_word
from pipeline.policy.characters import as_utf8
from pipeline.runs.lease import FileLease
from pipeline.runs.roster import RUNNING
from pipeline.runs.store import WORKFLOW

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.recipe_run import RecipeRun

RECORDS: Final = ("run.json", "journal.jsonl")
"""What a line follows from."""


@dataclass(frozen=True, kw_only=True)
class RunLine:
    """One run in a list. `problem` says why it cannot be read; the facts that it hides are null then.

    `queued`: it was answered, and no process has driven it since; it may be driven by now (`live`).
    `driven_s` is how long processes drove it, without what it waited for a person. `cost_usd` and `tokens` are null
    unless every dispatch that asked a model says them; `cost_known_usd` is what is known, null where none was asked.
    `landed` is the branch that `land` put it on. `not_before` is when the limit of an account ends that the run waits
    for or is parked by. `removed`: its folder is gone, its ref has the record, and `worktree` is the name in that ref.
    """

    name: str
    worktree: str
    issue: str | None
    live: bool
    status: str
    outcome: Outcome | None
    reason: Reason | None
    step: str | None
    phase: str | None
    task: str | None
    tasks_done: int
    tasks_total: int
    dispatches: int
    started_at: str | None
    last_at: str | None
    age_s: int | None
    driven_s: int | None = None
    cost_usd: float | None = None
    cost_known_usd: float | None = None
    tokens: int | None = None
    problem: str | None
    gate: str | None = None
    gate_place: str | None = None
    queued: bool = False
    landed: str | None = None
    not_before: str | None = None
    removed: bool = False


@dataclass(frozen=True, kw_only=True)
class RunsDocument:
    """What `runs --json` prints, the newest run first, of all worktrees of the repository."""

    schema: Literal["redfirst.runs/1"] = "redfirst.runs/1"
    ok: Literal[True] = True
    runs: tuple[RunLine, ...]


@dataclass(frozen=True)
class Rest:
    """What the runs took together that a list leaves out: the oldest of those that have ended.

    `cost_usd` is what is known; `is_whole` says that nothing of it is unknown.
    """

    runs: int = 0
    driven_s: int = 0
    cost_usd: float | None = None
    is_whole: bool = True


def as_json(document: RunsDocument) -> dict[str, Any]:
    """Return the document as `runs --json` prints it."""
    return cast("dict[str, Any]", json.loads(json.dumps(asdict(document))))


def line_of(folder: Path, now: datetime) -> RunLine:
    """Return the line of a run."""
    live = FileLease.is_held(folder)
    try:
        line = line_from(folder, now if live else None)
    except UserError as error:
        return unread_line(folder, error.message, live=live)
    rests = "queued" if line.queued else "interrupted"
    return aged(replace(line, live=live, status=RUNNING if live else rests), now)


def aged(line: RunLine, now: datetime) -> RunLine:
    """Return the line of a run as it stands now: an index of ended runs has no ages and no words."""
    status = status_word(line.outcome, line.reason) if line.outcome is not None else line.status
    try:
        begun = datetime.fromisoformat(line.started_at or "")
    except ValueError:
        return replace(line, status=status, age_s=None)
    return replace(line, status=status, age_s=max(int((now - begun.astimezone(UTC)).total_seconds()), 0))


def line_from(folder: Path, now: datetime | None = None) -> RunLine:
    """Return the line of a run as its files say; whether it is driven, and its age, are asked each time.

    Args:
        folder: Of the run.
        now: The time, while a process drives it.

    Raises:
        UserError: the run is damaged.
    """
    # These are heavy, and a run that has ended is known from an index.
    from pipeline.runs.facts import driven_s, landed_on, not_before_of, progress_of  # noqa: PLC0415
    from pipeline.runs.gates import gate_of, gate_place  # noqa: PLC0415
    from pipeline.runs.records import is_of_recipe  # noqa: PLC0415
    from pipeline.runs.run import Run  # noqa: PLC0415
    from pipeline.runs.spending import spent  # noqa: PLC0415

    if is_of_recipe(folder):
        line, run = _steps_of(folder)
    else:
        run = Run.load(folder, driving=False)
        done, total = progress_of(run)
        line = replace(
            unread_line(folder, None, live=False, issue=run.issue),
            step=run.state.trunk.step.value,
            phase=run.state.trunk.step.phase,
            task=run.state.current,
            tasks_done=done,
            tasks_total=total,
            gate=gate_of(run),
            gate_place=gate_place(run),
            landed=landed_on(run),
        )
    taken = spent(run)
    try:
        driven = int(driven_s(run, now))
    except ValueError:
        driven = None
    return replace(
        line,
        status="",
        outcome=run.state.outcome,
        reason=run.state.reason,
        dispatches=run.state.dispatches,
        started_at=run.info.started_at,
        last_at=run.journal.lines[-1].at if run.journal.lines else None,
        driven_s=driven,
        cost_usd=taken.cost_usd if taken.asked and not taken.unpriced else None,
        cost_known_usd=taken.cost_usd if taken.asked else None,
        tokens=taken.tokens if taken.asked and not taken.uncounted else None,
        queued=run.queued,
        not_before=not_before_of(run, now),
    )


def _steps_of(folder: Path) -> tuple[RunLine, RecipeRun]:
    """Return a run that the steps of a recipe drive, and what its line alone has; each step counts as a task."""
    from pipeline.recipes.step_table import Checkpoint  # noqa: PLC0415  (heavy; an ended run is known)
    from pipeline.runs.recipe_run import RecipeRun  # noqa: PLC0415  (the same)
    from pipeline.service.open_gates import gates_place, open_gates  # noqa: PLC0415  (the same)

    run = RecipeRun.load(folder, driving=False)
    gates = tuple(gate.step for gate in open_gates(run)) if run.state.reason is Reason.APPROVAL else ()
    names = [name for id_ in run.machine.order for name in run.machine.names(run.state, id_)]
    line = replace(
        unread_line(folder, None, live=False),
        tasks_done=sum(run.state.settled.get(name) is Checkpoint.READY for name in names),
        tasks_total=len(names),
        gate=", ".join(gates) or None,
        gate_place=gates_place(gates) if gates else None,
    )
    return line, run


def unread_line(
    folder: Path, why: str | None, *, live: bool, issue: str | None = None, status: str = "damaged"
) -> RunLine:
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
