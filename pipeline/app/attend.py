"""Does what is due without anybody asking: sees to gates that nobody answered in time. Calling it twice does no harm.

Whoever calls it (a worker, a console), and how many do at once, makes no difference: what is done is decided under the
lease of the run, by its journal and the time that is given.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from pipeline.app.answer import Rejection, abandon, gates_config_of, record
from pipeline.app.at_hub import is_ahead
from pipeline.app.gate_packets import QUESTION, open_gates, opened
from pipeline.app.run_list import ELSEWHERE, lines_of
from pipeline.config.tables import OnTimeout
from pipeline.errors import UserError
from pipeline.matrix.engine.journal_kinds import Answerer, GateAnswered, GateExpired
from pipeline.outcomes import ASKED, Outcome, Reason
from pipeline.queue.orders import fleet_for
from pipeline.run.gates import gate_of
from pipeline.run.recipe_run import RecipeRun, load_run
from pipeline.run.runs_of_repository import Roster, seen_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.repo import Repository
    from pipeline.run.run import Run
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
    """Do what is due in all runs of a repository that are nowhere else; return what was done.

    A run of a hub that is out of reach may be elsewhere.

    Args:
        repository: Seen from any of its worktrees.
        now: The time.
        say: Takes what could not be done, and why.
    """
    hub = fleet_for(repository, os.environ).hub
    folders = [place.folder for place in Roster(repository).runs]
    done: list[Attended] = []
    for folder, line in zip(folders, lines_of(folders, now), strict=True):
        if line.outcome is not Outcome.PARKED or line.reason not in ASKED or line.live or line.status == ELSEWHERE:
            continue
        there = seen_from(repository, folder)
        try:
            run = load_run(folder, driving=False)
            for gate in _gates(run):
                then = _due(run, gate, now)
                if then is not None and not (hub and is_ahead(there, hub, folder)):
                    expiry = _Expiry(gate, then, now)
                    if then is OnTimeout.ABANDON:
                        abandon(there, folder, lambda _: None, expiry.note)
                    else:
                        record(there, folder, expiry)
                    done.append(Attended(folder.name, line.worktree, gate, then))
        except _NotDueError:
            continue
        except UserError as error:
            if error.reason is not Reason.LOCKED:
                say(f"{folder.name}: {error.message}")
    return tuple(done)


def _gates(run: Run | RecipeRun) -> tuple[str, ...]:
    if isinstance(run, RecipeRun):
        return tuple(gate.step for gate in open_gates(run))
    gate = QUESTION if run.state.reason is Reason.INPUT else gate_of(run)
    return () if gate is None else (gate,)


def _due(run: Run | RecipeRun, gate: str, now: datetime) -> OnTimeout | None:
    """Return what is to be done about a gate now, None where nothing is.

    Nobody's silence sends a run back twice in a row, since each draft is paid for, and none answers a question.
    """
    asked = gates_config_of(run)
    began = opened(run, gate)
    if asked.timeout is None or asked.on_timeout is OnTimeout.WAIT:
        return None
    patience = timedelta(**{_UNITS[asked.timeout[-1]]: int(asked.timeout[:-1])})
    if now < datetime.fromisoformat(began.at) + patience:
        return None
    answered = run.journal.of(GateAnswered)
    again = gate == QUESTION or (bool(answered) and answered[-1].data.via == TIMEOUT.via)
    then = OnTimeout.REMIND if asked.on_timeout is OnTimeout.REJECT and again else asked.on_timeout
    return None if then is OnTimeout.REMIND and _is_told(run, gate) else then


def _is_told(run: Run | RecipeRun, gate: str) -> bool:
    since = opened(run, gate).seq
    return any(line.seq > since and line.data.gate == gate for line in run.journal.of(GateExpired))


@dataclass(frozen=True)
class _Expiry:
    """What is done to a gate that nobody answered, if it still is due once nobody else can answer."""

    gate: str
    then: OnTimeout
    now: datetime

    def note(self, run: Run | RecipeRun) -> None:
        """Say once in the journal that the time is over."""
        if self.gate not in _gates(run) or _due(run, self.gate, self.now) is not self.then:
            raise _NotDueError
        if not _is_told(run, self.gate):
            run.journal.append(GateExpired(gate=self.gate, then=self.then.value))

    def give(self, ctx: Context | RecipeContext) -> None:
        """Send the run back, where that is what follows."""
        self.note(ctx.run)
        if self.then is OnTimeout.REJECT:
            feedback = (
                f"Nobody answered within {gates_config_of(ctx.run).timeout}. Look for what may be unclear or too much "
                "in it, and draft it again."
            )
            Rejection(TIMEOUT, feedback, self.gate).give(ctx)
