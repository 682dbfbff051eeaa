"""Does what is due without anybody asking: sees to gates that nobody answered in time. Calling it twice does no harm.

Whoever calls it (a worker, a console), and how many do at once, makes no difference: what is done is decided under the
lease of the run, by its journal and the time that is given.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from pipeline.config.tables import OnTimeout
from pipeline.engine.events import Answerer, GateAnswered, GateExpired
from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason
from pipeline.runs.gates import gate_of
from pipeline.runs.recipe_run import RecipeRun, load_run
from pipeline.runs.roster import Roster, seen_from
from pipeline.service import gates, recipe_gates, recipe_run
from pipeline.service.answers import under_lease
from pipeline.service.packets import QUESTION, opened
from pipeline.service.run_list import lines_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.runs.run import Run
    from pipeline.steps.context import Context
    from pipeline.steps.recipe_context import RecipeContext

TIMEOUT: Final = Answerer(actor="redfirst", via="timeout")
"""Who answers where nobody does."""
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class Attended:
    """What was done about a gate that nobody answered: remind, reject, abandon."""

    run: str
    worktree: str
    gate: str
    then: OnTimeout


class _NotDueError(Exception):
    """Somebody was quicker."""


def attend(repository: Repository, now: datetime, say: Callable[[str], None] = lambda _: None) -> tuple[Attended, ...]:
    """Do what is due in all runs of a repository; return what was done.

    Args:
        repository: Seen from any of its worktrees.
        now: The time.
        say: Takes what could not be done, and why.
    """
    folders = [place.folder for place in Roster(repository).runs]
    done: list[Attended] = []
    for folder, line in zip(folders, lines_of(folders, now), strict=True):
        if line.outcome is not Outcome.PARKED or line.reason not in {Reason.APPROVAL, Reason.INPUT} or line.live:
            continue
        there = seen_from(repository, folder)
        try:
            run = load_run(folder, driving=False)
            for gate in _gates(run):
                then = _due(run, gate, now)
                if then is not None:
                    _do(there, folder, gate, then, now)
                    done.append(Attended(folder.name, line.worktree, gate, then))
        except _NotDueError:
            continue
        except UserError as error:
            if error.reason is not Reason.LOCKED:
                say(f"{folder.name}: {error.message}")
    return tuple(done)


def _gates(run: Run | RecipeRun) -> tuple[str, ...]:
    if isinstance(run, RecipeRun):
        return tuple(gate.step for gate in recipe_gates.open_gates(run))
    gate = QUESTION if run.state.reason is Reason.INPUT else gate_of(run)
    return () if gate is None else (gate,)


def _due(run: Run | RecipeRun, gate: str, now: datetime) -> OnTimeout | None:
    """Return what is to be done about a gate now, None where nothing is.

    Nobody's silence sends a run back twice in a row, since each draft is paid for, and none answers a question.
    """
    asked = gates.gates_config_of(run)
    began = opened(run, gate)
    if asked.timeout is None or asked.on_timeout is OnTimeout.WAIT:
        return None
    if now < datetime.fromisoformat(began.at) + _lasting(asked.timeout):
        return None
    answered = run.journal.of(GateAnswered)
    again = gate == QUESTION or (bool(answered) and answered[-1].data.via == TIMEOUT.via)
    then = OnTimeout.REMIND if asked.on_timeout is OnTimeout.REJECT and again else asked.on_timeout
    return None if then is OnTimeout.REMIND and _is_told(run, gate) else then


def _lasting(said: str) -> timedelta:
    return timedelta(**{_UNITS[said[-1]]: int(said[:-1])})


def _is_told(run: Run | RecipeRun, gate: str) -> bool:
    since = opened(run, gate).seq
    return any(line.seq > since and line.data.gate == gate for line in run.journal.of(GateExpired))


def _do(repository: Repository, folder: Path, gate: str, then: OnTimeout, now: datetime) -> None:
    """Do it, if it still is due once nobody else can answer."""

    def told(run: Run | RecipeRun) -> None:
        if gate not in _gates(run) or _due(run, gate, now) is not then:
            raise _NotDueError
        if not _is_told(run, gate):
            run.journal.append(GateExpired(gate=gate, then=then.value))

    def of_issue(ctx: Context) -> None:
        told(ctx.run)
        if then is OnTimeout.REJECT:
            gates.reject(ctx, TIMEOUT, _feedback(ctx.run), None, gate, lambda: None)

    def of_recipe(ctx: RecipeContext) -> None:
        told(ctx.run)
        if then is OnTimeout.REJECT:
            recipe_gates.reject(ctx, TIMEOUT, gate, _feedback(ctx.run), lambda _: None)

    if then is not OnTimeout.ABANDON:
        under_lease(repository, folder, lambda _: None, of_issue, of_recipe)
    elif isinstance(load_run(folder, driving=False), RecipeRun):
        recipe_run.abandon(repository, folder, dict(os.environ), told)
    else:
        gates.abandon(repository, folder, lambda _: None, told)


def _feedback(run: Run | RecipeRun) -> str:
    timeout = gates.gates_config_of(run).timeout
    return f"Nobody answered within {timeout}. Look for what may be unclear or too much in it, and draft it again."
