"""Reads how a run stands at one moment: phases, tasks, who is at work, what it took, what is left.

`watch` and the console read it from disk, the display of a driver from the run that it drives.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import anyio

from pipeline.app.documents import standing_of, title_of
from pipeline.matrix.recipes.plan import most_dispatches
from pipeline.matrix.recipes.step_table import Checkpoint
from pipeline.matrix.routing.lookup import limit_of
from pipeline.matrix.routing.plain_words import GATE_BEHIND, PHASES, TOLD, Phase, phase_with, usual_next
from pipeline.matrix.routing.state import TaskStatus
from pipeline.matrix.routing.state_changes import SETTLED
from pipeline.outcomes import COMPLETED, Outcome, Reason
from pipeline.progress import Progress, counted
from pipeline.run import summary_facts
from pipeline.run.activity_file import Doing, forget_now, read_now, write_now
from pipeline.run.lease import FileLease
from pipeline.run.recipe_run import RecipeRun, load_run
from pipeline.run.run import Run
from pipeline.run.spending import Spent, spent
from pipeline.vocabulary import Loop, Signal, Step

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from anyio.abc import TaskStatus as Started

    from pipeline.config.tables import Budget
    from pipeline.matrix.engine.journal import Line
    from pipeline.run.spending import AnyRun


_PLANNED: Final = (Step.PLAN, Step.REVIEW_PLAN, Step.SPLIT, Step.REVIEW_SPLIT, Step.WRITE_TESTS)
"""Where a run of one writer does not come, unless it is planned after all."""
Stands = Literal["done", "now", "ahead", "left_out", "failed"]


@dataclass(frozen=True)
class PhaseShown:
    """A phase, how it stands, and how often the run came there."""

    phase: Phase
    stands: Stands
    visits: int


@dataclass(frozen=True)
class TaskShown:
    """A task, or a step of a recipe: where it stands in a word or two."""

    id: str
    title: str
    at: str
    stands: Stands


@dataclass(frozen=True, kw_only=True)
class LiveView:
    """How a run stands.

    Args:
        run: Its name.
        title: Of its issue, or which recipe it is of.
        live: Whether a process drives it.
        status: In a word: running, queued, interrupted, paused, or its outcome.
        outcome: None while it is driven, or where its driver died.
        reason: Why it rests.
        place: Where it stands.
        told: What happens there, for somebody who sees it for the first time.
        usual: What follows where all goes well.
        note: What the last decision said.
        not_before: When the limit of an account ends that it waits for, or is parked by.
        phases: Of the way of an issue; none of a recipe's own steps.
        tasks: Or the steps of a recipe.
        now: What its driver does, and since when.
        loops: The ways back that were paid from where it stands, and how much of each.
        spent: Dispatches, tokens and cost.
        driven_s: How long processes drove it.
        lines: Its journal.
    """

    run: str
    title: str
    live: bool
    status: str
    outcome: Outcome | None
    reason: Reason | None
    place: str
    told: str
    usual: str = ""
    note: str = ""
    phases: tuple[PhaseShown, ...] = ()
    tasks: tuple[TaskShown, ...]
    now: tuple[Doing, ...]
    loops: tuple[str, ...] = ()
    spent: str
    driven_s: float
    lines: tuple[Line, ...]
    not_before: str | None = None


def live_view(folder: Path) -> LiveView:
    """Return how the run in *folder* stands now.

    Raises:
        UserError: it is damaged.
    """
    live = FileLease.is_held(folder)
    run = load_run(folder, driving=False)
    return _of_issue(run, live=live) if isinstance(run, Run) else _of_recipe(run, live=live)


def _of_issue(run: Run, *, live: bool) -> LiveView:
    at = next(iter(_steps(run)))
    return LiveView(
        title=title_of(run.folder),
        place=summary_facts.place_of(run),
        told=TOLD[at],
        usual=usual_next(at) if live else "",
        note=summary_facts.last_note(run),
        phases=phases_of(run),
        tasks=tuple(_tasks(run)),
        loops=loops_of(run),
        **_of_any(run, live=live),
    )


def _of_recipe(run: RecipeRun, *, live: bool) -> LiveView:
    recipe = f"recipe {run.facts.name}" if run.facts is not None else ""
    return LiveView(
        title=recipe,
        place=steps_words(run),
        told="Each step of the recipe is done as soon as what it waits for is ready.",
        tasks=tuple(_step(run, name) for name in _names(run)),
        **_of_any(run, live=live),
    )


def _names(run: RecipeRun) -> list[str]:
    return [name for id_ in run.machine.order for name in run.machine.names(run.state, id_)]


def steps_words(run: RecipeRun) -> str:
    """Return how many steps of a recipe are over, of those that are known."""
    names = _names(run)
    return f"{sum(name in run.state.settled for name in names)} of {counted(len(names), 'step')}"


def loops_of(run: Run) -> tuple[str, ...]:
    """Return the ways back that were paid from where a run stands, and how much of each."""
    return tuple(
        f"{one.loop.value.replace('_', ' ')} {one.spent} of {one.limit}"
        for one in summary_facts.counters_of(run)
        if one.holds and one.limit is not None and one.loop is not Loop.DISPATCHES
    )


def _of_any(run: AnyRun, *, live: bool) -> dict[str, Any]:
    outcome = None if live else run.state.outcome
    return {
        "run": run.info.run_id,
        "live": live,
        "status": "running" if live else standing_of(run, "interrupted"),
        "outcome": outcome,
        "reason": run.state.reason if outcome is not None else None,
        "now": read_now(run.folder, run.journal.epoch) if live else (),
        "spent": str(spent(run)),
        "driven_s": summary_facts.driven_s(run, datetime.now(UTC) if live else None),
        "lines": tuple(run.journal.lines),
        "not_before": summary_facts.not_before_of(run, datetime.now(UTC) if live else None),
    }


def _steps(run: Run) -> tuple[Step, ...]:
    """Return the steps that a run is at: of each task that is worked on beside others, or the one."""
    return tuple(lane.step for lane in run.state.beside.values()) or (run.state.trunk.step,)


def phases_of(run: Run) -> tuple[PhaseShown, ...]:
    """Return the phases, and how the run stands in each."""
    own = [one for one in run.history if not one.decision.row.startswith("any/")]
    been = [phase for one in own if (phase := phase_with(one.decision.step)) is not None]
    visits = Counter(been)
    left_out = {phase_with(one.decision.step) for one in own if one.event.signal is Signal.NOT_ASKED}
    if run.state.one_writer:
        left_out |= {phase_with(step) for step in _PLANNED}
    now = {phase for step in _steps(run) if (phase := phase_with(step)) is not None}
    if not now and run.state.trunk.step is not Step.GATE:  # the failure handler: it failed where it was last
        now = set(been[-1:])
    gate = GATE_BEHIND.get(run.state.trunk.gate or "")
    furthest = max((n for n, phase in enumerate(PHASES) if phase in now or phase.number == gate), default=-1)

    def stands(number: int, phase: Phase) -> Stands:
        if phase in now and not run.state.has_ended:
            return "now"
        if phase in now and run.state.outcome not in COMPLETED:
            return "failed"
        if phase in left_out:
            return "left_out"
        return "done" if visits[phase] and number <= furthest else "ahead"

    return tuple(PhaseShown(phase, stands(number, phase), visits[phase]) for number, phase in enumerate(PHASES))


def _tasks(run: Run) -> Iterator[TaskShown]:
    beside = {lane.task: lane.step for lane in run.state.beside.values()}
    if run.state.current is not None and run.state.outcome is None:
        beside.setdefault(run.state.current, run.state.trunk.step)
    for task in (one for one in run.state.tasks.values() if one.status is not TaskStatus.DROPPED):
        step = beside.get(task.id) if task.status not in SETTLED else None
        stands: Stands = "done" if task.status in SETTLED else "now" if step is not None else "ahead"
        words = step.value if step is not None else task.status.value.replace("_", " ")
        yield TaskShown(task.id, task.spec.title, words, stands)


def _step(run: RecipeRun, name: str) -> TaskShown:
    how = run.state.settled.get(name)
    if how is not None:
        return TaskShown(name, "", how.value.replace("_", " "), "done" if how is Checkpoint.READY else "failed")
    lane = run.state.lanes.get(name)
    if lane is None:
        return TaskShown(name, "", "waiting", "ahead")
    return TaskShown(name, "", "waits for you" if lane.gate is not None else "at work", "now")


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


class Standing:
    """Answers how the run of one driver stands; each part is found out when it is asked for."""

    def __init__(self, run: AnyRun, progress: Progress, budget: Budget) -> None:
        self.run = run
        self.progress = progress
        self._budget = budget
        self._clock = progress.clock
        self._began = self._step_began = self._clock()
        self._before_s = summary_facts.driven_s(run)
        self._step = self._visit
        self._spent = (-1, 0.0, "")

    @property
    def place(self) -> tuple[str, str]:
        """Return phase and step, and the task with its place among all, or nothing; of a recipe how many are over."""
        if isinstance(self.run, RecipeRun):
            return steps_words(self.run), ""
        step, state = self.run.state.trunk.step, self.run.state
        if state.beside:
            return "[6, 7] side by side", summary_facts.beside_words(state)
        return f"[{step.phase}] {step.value}", summary_facts.task_words(state, state.current) if state.current else ""

    @property
    def _visit(self) -> int:
        """Return a number that is another one once the run stands elsewhere."""
        return self.run.state.visits if isinstance(self.run, RecipeRun) else self.run.state.trunk.visit

    @property
    def doing(self) -> tuple[tuple[str, ...], float]:
        """Return what is done in words, nothing while the driver itself works, and for how many seconds."""
        if self._visit != self._step:
            self._step, self._step_began = self._visit, self._clock()
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
            left=loops_of(self.run) if isinstance(self.run, Run) else (),
            phases=phases_of(self.run) if isinstance(self.run, Run) else (),
            said=tuple(said for each in self.progress.activities if (said := each.said())),
        )

    def _spent_words(self) -> str:
        lines, now = len(self.run.journal.lines), self._clock()
        if lines != self._spent[0] or now - self._spent[1] >= _AFRESH_S:
            self._spent = (lines, now, _spent_words(self.run, spent(self.run), self._budget))
        return self._spent[2]


def _spent_words(run: AnyRun, taken: Spent, budget: Budget) -> str:
    of_recipe = isinstance(run, RecipeRun)
    limit = most_dispatches(len(run.recipe.steps)) if of_recipe else limit_of(run.state, Loop.DISPATCHES)
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


async def _show(standing: Standing, display: Display, *, task_status: Started[None]) -> None:
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
