"""Reads a run's state and journal as facts for people, programs and summary.md. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from pipeline.judge.reports.untrusted_text import one_line
from pipeline.matrix.engine.journal_kinds import ArtifactWritten, RunFinished, RunParked, RunResumed, RunStarted
from pipeline.matrix.routing.lookup import counter_key, limit_of
from pipeline.matrix.routing.matrix import BOUNDS
from pipeline.matrix.routing.state import RunState, TaskStatus
from pipeline.matrix.routing.state_changes import SETTLED
from pipeline.outcomes import Reason
from pipeline.reset_times import as_text
from pipeline.run.gates import gate_place
from pipeline.run.journal_kinds import DispatchFinished, DispatchWaits, Landed, Published
from pipeline.run.spending import spent
from pipeline.vocabulary import Loop, Role

if TYPE_CHECKING:
    from pipeline.run.run import Run
    from pipeline.run.spending import AnyRun


_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class UsageFacts:
    """What a run cost. None as soon as one dispatch does not say (a lost or running one too); never 0 for unknown."""

    cost_usd: float | None
    input_tokens: int | None
    output_tokens: int | None
    dispatches: int


@dataclass(frozen=True)
class BoxFacts:
    """What isolated the agents when the run was last driven; None where the journal does not say."""

    backend: str | None
    network: str | None


@dataclass(frozen=True)
class Counter:
    """How often a loop was taken in a scope, and how often it may be (matrix 2).

    `holds` is whether the scope is the present one; a limit of None is unbounded.
    """

    loop: Loop
    scope: str
    spent: int
    limit: int | None
    holds: bool

    def __str__(self) -> str:
        of = f" of {self.limit}" if self.limit is not None else ""
        scope = _scope_words(self.scope)
        return f"{self.loop.value} {self.spent}{of}" + (f" ({scope})" if scope else "")


def _scope_words(scope: str) -> str:
    """Return the scope of a counter in words; those in its key are for programs."""
    match scope.split(" "):
        case ["plan" | "split" as what, number]:
            return f"{what} revision {number}"
        case ["task", task, _]:
            return f"task {task}, with its present tests"
        case ["visit", _, role, _]:
            return f"@{role}"
        case [role, _, _] if role in set(Role):
            return f"@{role}, in a row"
        case ["run"]:
            return ""
        case _:
            return scope


def last_note(run: Run) -> str:
    """Return what the last decision said; nothing of an abandoned run: what it kept until then holds no more."""
    if not run.history or run.state.reason is Reason.ABANDONED:
        return ""
    return run.history[-1].event.note


def progress_of(run: Run) -> tuple[int, int]:
    """Return how many tasks are settled, and how many there are; dropped ones do not count."""
    kept = [task for task in run.state.tasks.values() if task.status is not TaskStatus.DROPPED]
    return sum(task.status in SETTLED for task in kept), len(kept)


def task_words(state: RunState, task: str) -> str:
    """Return a task with its place among those that are to be done: `task 2 of 3`, `task fix-1, 4 of 4`."""
    kept = [each.id for each in state.tasks.values() if each.status is not TaskStatus.DROPPED]
    if task not in kept:
        return f"task {task}"
    place = f"{kept.index(task) + 1}"
    return f"task {task}{'' if task == place else f', {place}'} of {len(kept)}"


def driven_s(run: AnyRun, now: datetime | None = None) -> float:
    """Return the seconds that processes drove the run: until it parked or they died, and again from its resumption.

    Args:
        run: The run.
        now: The time, while it is driven.

    Raises:
        ValueError: a line of a stranger's journal has no time.
    """
    moments = [(line.kind, datetime.fromisoformat(line.at)) for line in run.journal.lines]
    took: list[float] = []
    waits = False
    for (kind, earlier), (following, later) in pairwise(moments):
        # a summary is written behind the line that parks; what comes after the last one is said by others
        waits = kind in {RunParked.KIND, RunFinished.KIND} or (waits and kind in {ArtifactWritten.KIND, Landed.KIND})
        if not waits and following != RunResumed.KIND:
            took.append((later - earlier).total_seconds())
    if now is not None and moments:
        took.append((now - moments[-1][1]).total_seconds())
    return sum(seconds for seconds in took if seconds > 0)


def usage_of(run: Run) -> UsageFacts:
    """Return what the run cost so far, all dispatches taken together."""
    uses = [result.usage for result in run.results.values()]
    # A dispatch that was started and has no result, running or lost in a crash, cost something that nobody told us.
    all_told = run.state.dispatches == len(uses)
    return UsageFacts(
        cost_usd=_total([use.cost_usd for use in uses], 0.0) if all_told else _written_down(run),
        input_tokens=_total([use.input_tokens for use in uses], 0) if all_told else None,
        output_tokens=_total([use.output_tokens for use in uses], 0) if all_told else None,
        dispatches=run.state.dispatches,
    )


def _written_down(run: Run) -> float | None:
    """Return the cost where a dispatch has no result: of that one, what the gateway wrote down counts."""
    taken = spent(run)
    return taken.cost_usd if taken.asked and not taken.unpriced else None


def _total(values: list[_Number | None], nothing: _Number) -> _Number | None:
    known = [value for value in values if value is not None]
    return sum(known, start=nothing) if len(known) == len(values) else None


def box_facts_of(run: Run) -> BoxFacts:
    """Return what isolated the agents, as the driver of the last epoch that said so journalled it."""
    for line in reversed(run.journal.lines):
        if isinstance(line.data, RunStarted | RunResumed) and line.data.sandbox:
            said = line.data.sandbox
            return BoxFacts(said.get("sandbox") or None, said.get("network") or None)
    return BoxFacts(None, None)


def commits_of(run: Run) -> tuple[str, ...]:
    """Return the commits that the run put on its branch, oldest first."""
    published = run.journal.of(Published)
    return published[-1].data.commits if published else ()


def landed_on(run: AnyRun) -> str | None:
    """Return the branch that `land` put the commits of a run on; None where it did not."""
    landed = run.journal.of(Landed)
    return landed[-1].data.onto if landed else None


def not_before_of(run: AnyRun, now: datetime | None = None) -> str | None:
    """Return when the limit of an account ends that a run waits for or that parked it; None where none is known.

    Args:
        run: The run.
        now: The time, while it is driven: a limit that has ended is not waited for.
    """
    if run.state.outcome is not None and run.state.reason not in {Reason.AGENT_UNAVAILABLE, Reason.INTERRUPTED}:
        return None
    found: dict[str, str] = {}
    for line in run.journal.lines:
        match line.data:
            case RunResumed():
                found.clear()
            case (
                DispatchWaits(dispatch=name, not_before=moment)
                | DispatchFinished(dispatch=name, not_before=str(moment))
            ):
                found[name] = moment
            case DispatchFinished(dispatch=name):
                found.pop(name, None)
            case _:
                pass
    last = max(found.values(), default=None)
    return None if last is None or (now is not None and last <= as_text(now)) else last


def place_of(run: Run) -> str:
    """Return where the run stands in words: step, phase, task."""
    state = run.state
    if (waits := gate_place(run)) is not None:
        return f"at {waits}"
    if state.reason is Reason.INPUT:
        return "at a question"
    if state.beside:
        return f"{lanes_words(state)} (side by side)"
    task = f", task {state.current}" if state.current else ""
    phase = f" (phase {state.trunk.step.phase})" if state.trunk.step.phase != "-" else ""
    return f"{state.trunk.step.value}{phase}{task}"


def beside_words(state: RunState) -> str:
    """Return which tasks are worked on side by side: `tasks 1, 3 of 4`."""
    kept = [task.id for task in state.tasks.values() if task.status is not TaskStatus.DROPPED]
    beside = {lane.task for lane in state.beside.values()}
    return f"task{'s' if len(beside) > 1 else ''} {', '.join(id_ for id_ in kept if id_ in beside)} of {len(kept)}"


def lanes_words(state: RunState) -> str:
    """Return where the tasks stand that are worked on side by side: `task 1 at implement, task 2 at write-tests`."""
    order = list(state.tasks)
    lanes = sorted((order.index(str(lane.task)), lane) for lane in state.beside.values())
    return ", ".join(f"task {lane.task} at {lane.step.value}" for _, lane in lanes)


def work_tree(run: Run) -> str:
    """Return the furthest tree of the run: an answer that no step has judged, else what its current step works on.

    Else it is head, else what a revision gave up.
    """
    state = run.state
    if (answered := _unjudged(run)) is not None:
        return answered
    task = state.tasks.get(state.current) if state.current else None
    if task is not None and (found := task.candidate or task.tests or task.stubs):
        return found
    if state.nothing_changed and state.previous_work:
        return state.previous_work
    return state.head


def _unjudged(run: Run) -> str | None:
    """Return the tree of the last admitted change, where its driver died before the step could measure it."""
    judged = {one.decision.visit for one in run.history if not one.decision.row.startswith("any/")}
    for record in reversed(run.records.values()):
        result = run.results.get(record.dispatch)
        if result is not None and result.gate == "admitted" and result.tree not in {None, result.base_tree}:
            return result.tree if record.visit not in judged else None
    return None


# --- counters --------------------------------------------------------------------------------------------------------


def counters_of(run: Run) -> tuple[Counter, ...]:
    """Return the counters that are not zero, those of the present scopes first, and the dispatches."""
    state = run.state
    live = frozenset[str]().union(*(_present_counters(state.seen_from(lane)) for lane in state.lanes))
    dispatches = Counter(Loop.DISPATCHES, "run", state.dispatches, limit_of(state, Loop.DISPATCHES), holds=True)
    found = [counter_of(state, key, spent, holds=key in live) for key, spent in state.counters.items()]
    return (dispatches, *sorted(found, key=lambda counter: not counter.holds))


def counter_of(state: RunState, key: str, spent: int, *, holds: bool = True) -> Counter:
    """Return what the state's counter *key* (`test_rewrite@task 1`) stands for."""
    name, _, scope = key.partition("@")
    loop = Loop(name)
    return Counter(loop, scope, spent, limit_of(state, loop), holds)


def exhausted_counter(state: RunState, loop: Loop, role: Role | None) -> Counter:
    """Return the counter of *loop* that was found at its limit in *state*."""
    key = counter_key(state, loop, role)
    return counter_of(state, key, state.counters.get(key, 0))


def _present_counters(state: RunState) -> frozenset[str]:
    per_task = {loop for loop, bound in BOUNDS.items() if bound.scope.startswith("task")}
    by_role = (Loop.REASK, Loop.UNUSABLE)
    slots = {counter_key(state, loop, role) for role in Role for loop in by_role}
    loops = [loop for loop in Loop if loop not in by_role and (state.current is not None or loop not in per_task)]
    return frozenset(slots | {counter_key(state, loop, None) for loop in loops})


def dropped_tests(state: RunState) -> tuple[str, ...]:
    """Return a line for each task whose tests were written and are in no commit, with where they are to be found."""
    return tuple(
        f"task {task.id} ({one_line(task.spec.title)}): the code did it already, and its tests were not shown "
        f"to notice a fault; they are in judgements/already-{task.id}.md only"
        for task in state.tasks.values()
        if task.drops_tests
    )
