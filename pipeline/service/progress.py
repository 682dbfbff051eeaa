"""Knows how a driven run stands: place, activity, times, what it took, what is left. A display shows it."""

from __future__ import annotations

import abc
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from pipeline.progress import counted
from pipeline.recipes.plan import most_dispatches
from pipeline.routing.lookup import limit_of
from pipeline.routing.vocabulary import Loop
from pipeline.runs.activity_file import forget_now, write_now
from pipeline.runs.facts import beside_words, counters_of, driven_s, task_words
from pipeline.runs.spending import spent
from pipeline.service.live_view import phases_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import TaskStatus

    from pipeline.config.tables import Budget
    from pipeline.progress import Progress
    from pipeline.runs.spending import AnyRun, Spent
    from pipeline.service.live_view import PhaseShown
    from pipeline.steps.context import Context
    from pipeline.steps.recipe_context import RecipeContext

_EACH_S: Final = 1.0
"""How often a display is asked to show how things stand."""
_AFRESH_S: Final = 10.0
"""How old what was spent may be: finding it out reads a file of each dispatch that is not finished."""


@dataclass(frozen=True)
class Status:
    """How a run stands at one moment; what is not known is not in it.

    Args:
        place: Phase and step: `[7] implement`.
        task: `task 2 of 3`, or empty.
        doing: What is done now, in words.
        doing_s: Since how many seconds the oldest of it is being done.
        run_s: How many seconds the run was driven, all its drivers together.
        spent: Dispatches, and tokens and cost as far as they are known.
        left: The loops that were paid from where the run stands, and how much of each.
        phases: Of the way of an issue, and how the run stands in each.
        said: What each agent at work said last.
    """

    place: str
    task: str = ""
    doing: tuple[str, ...] = ()
    doing_s: float = 0.0
    run_s: float = 0.0
    spent: str = ""
    left: tuple[str, ...] = ()
    phases: tuple[PhaseShown, ...] = ()
    said: tuple[tuple[str, ...], ...] = ()


class Display(Protocol):
    """Where a driver says what happened, line by line, and shows how the run stands in between."""

    def __call__(self, text: str) -> None:
        """Say a line."""
        ...

    def show(self, standing: Standing) -> None:
        """Show how the run stands now, as far as there is something to show it on."""
        ...


class Standing(abc.ABC):
    """Answers how the run of one driver stands; each part is found out when it is asked for."""

    def __init__(self, run: AnyRun, progress: Progress, budget: Budget) -> None:
        self.run = run
        self.progress = progress
        self._budget = budget
        self._clock = progress.clock
        self._began = self._step_began = self._clock()
        self._before_s = driven_s(run)
        self._step = self.visit
        self._spent = (-1, 0.0, "")

    @property
    @abc.abstractmethod
    def place(self) -> tuple[str, str]:
        """Return phase and step, and the task with its place among all, or nothing."""

    @property
    @abc.abstractmethod
    def visit(self) -> int:
        """Return a number that is another one once the run stands elsewhere."""

    @property
    @abc.abstractmethod
    def most(self) -> int | None:
        """Return how many dispatches the run may ask."""

    @property
    def left(self) -> tuple[str, ...]:
        """Return the loops that were paid from where the run stands, and how much of each."""
        return ()

    @property
    def phases(self) -> tuple[PhaseShown, ...]:
        """Return the phases, and how the run stands in each."""
        return ()

    @property
    def doing(self) -> tuple[tuple[str, ...], float]:
        """Return what is done in words, nothing while the driver itself works, and for how many seconds."""
        if self.visit != self._step:
            self._step, self._step_began = self.visit, self._clock()
        activities = self.progress.activities
        began = activities[0].began if activities else self._step_began
        return tuple(each.what for each in activities), self._clock() - began

    def status(self) -> Status:
        """Return all that is known."""
        place, task = self.place
        doing, seconds = self.doing
        return Status(
            place=place,
            task=task,
            doing=doing,
            doing_s=seconds,
            run_s=self._before_s + self._clock() - self._began,
            spent=self._spent_words(),
            left=self.left,
            phases=self.phases,
            said=tuple(said for each in self.progress.activities if (said := each.said())),
        )

    def _spent_words(self) -> str:
        lines, now = len(self.run.journal.lines), self._clock()
        if lines != self._spent[0] or now - self._spent[1] >= _AFRESH_S:
            self._spent = (lines, now, _spent_words(self.run, spent(self.run), self.most, self._budget))
        return self._spent[2]


class IssueStanding(Standing):
    """How a run of an issue stands."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        super().__init__(ctx.run, ctx.progress, ctx.config.budget)

    @property
    def place(self) -> tuple[str, str]:
        """Return phase and step, and the task with its place among all, or nothing."""
        step, state = self._ctx.lane.step, self._ctx.state
        if state.beside:
            return "[6, 7] side by side", beside_words(state)
        return f"[{step.phase}] {step.value}", task_words(state, state.current) if state.current else ""

    @property
    def visit(self) -> int:
        """Return the number of its arrival where it stands."""
        return self._ctx.lane.visit

    @property
    def most(self) -> int | None:
        """Return how many dispatches the run may ask."""
        return limit_of(self._ctx.state, Loop.DISPATCHES)

    @property
    def left(self) -> tuple[str, ...]:
        """Return the loops that were paid from where the run stands, and how much of each."""
        return tuple(
            f"{counter.loop.value.replace('_', ' ')} {counter.spent} of {counter.limit}"
            for counter in counters_of(self._ctx.run)
            if counter.holds and counter.loop is not Loop.DISPATCHES and counter.limit is not None
        )

    @property
    def phases(self) -> tuple[PhaseShown, ...]:
        """Return the phases, and how the run stands in each."""
        return phases_of(self._ctx.run)


class StepsStanding(Standing):
    """How a run of a recipe's own steps stands: how many of them are over, of those that are known."""

    def __init__(self, ctx: RecipeContext) -> None:
        self._ctx = ctx
        super().__init__(ctx.run, ctx.progress, ctx.config.budget)

    @property
    def place(self) -> tuple[str, str]:
        """Return how many steps are over, and those that are at work."""
        run = self._ctx.run
        names = [name for id_ in run.machine.order for name in run.machine.names(run.state, id_)]
        return f"{sum(name in run.state.settled for name in names)} of {counted(len(names), 'step')}", ""

    @property
    def visit(self) -> int:
        """Return the number of the last arrival of a step."""
        return self._ctx.run.state.visits

    @property
    def most(self) -> int | None:
        """Return how many dispatches the run may ask."""
        return most_dispatches(len(self._ctx.run.recipe.steps))


def _spent_words(run: AnyRun, taken: Spent, limit: int | None, budget: Budget) -> str:
    parts = [f"{run.state.dispatches}{'' if limit is None else f' of {limit}'} dispatches"]
    if taken.asked and (taken.tokens or not taken.uncounted):
        of = "" if budget.tokens is None else f" of {budget.tokens:,}"
        parts.append(f"{'at least ' if taken.uncounted else ''}{taken.tokens:,}{of} tokens")
    if taken.asked and (taken.cost_usd or not taken.unpriced):
        of = "" if budget.cost_usd is None else f" of {budget.cost_usd:.2f}"
        parts.append(f"{'at least ' if taken.unpriced else ''}{taken.cost_usd:.2f}{of} USD")
    return ", ".join(parts)


@contextlib.asynccontextmanager
async def shown(standing: Standing, display: Display) -> AsyncGenerator[None]:
    """Show how the run stands each second and whenever something begins or ends, while the body drives it.

    What is being done, and what an agent says in it, is in `now.json` of the run folder meanwhile.
    """
    async with anyio.create_task_group() as group:
        await group.start(_show, standing, display)
        yield
        group.cancel_scope.cancel()


async def _show(standing: Standing, display: Display, *, task_status: TaskStatus[None]) -> None:
    run, progress = standing.run, standing.progress

    def changed() -> None:
        write_now(run.folder, run.journal.epoch, progress.activities)
        display.show(standing)

    progress.changed = changed
    changed()
    task_status.started()
    told: list[tuple[str, ...]] = []
    try:
        while True:
            await anyio.sleep(_EACH_S)
            if (said := [each.said() for each in progress.activities]) != told:
                told = said
                write_now(run.folder, run.journal.epoch, progress.activities)
            display.show(standing)
    finally:
        progress.changed = lambda: None
        forget_now(run.folder)
