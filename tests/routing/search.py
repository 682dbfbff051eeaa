"""An exhaustive search over the situations of small runs: no way may lead back to where it has been."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from routing.world import budget_is_used_up, events, out_of_budget, stands

from pipeline.matrix.routing.actions import Stop
from pipeline.matrix.routing.advance import advance
from pipeline.matrix.routing.lookup import counter_key
from pipeline.matrix.routing.matrix import ASKS
from pipeline.matrix.routing.simulation import dispatches_due
from pipeline.vocabulary import Loop, Role, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.matrix.routing.advance import Decision
    from pipeline.matrix.routing.state import Event, NewTask, RunState, TaskState

    Advance = Callable[[RunState, Event], tuple[RunState, Decision]]

Situation = tuple[object, ...]

_TASK_LOOPS = (
    Loop.STUB_RETRY,
    Loop.TEST_REWRITE,
    Loop.TEST_DIAGNOSIS,
    Loop.TEST_DESIGN,
    Loop.MAKE_RETRY,
    Loop.SCOPE_AMEND,
    Loop.SEAM,
    Loop.UNNOTICED_FAULTS,
)
_ROLE_LOOPS = (Loop.REASK, Loop.UNUSABLE)
_RUN_LOOPS = tuple(loop for loop in Loop if loop not in {*_TASK_LOOPS, *_ROLE_LOOPS, Loop.DISPATCHES, Loop.HUMAN})


@dataclass(frozen=True)
class Found:
    """What a search saw: how many situations, the longest way to an end, and what is wrong."""

    situations: int
    longest: int
    wrong: tuple[str, ...]


def situation(state: RunState, *, dispatches: bool) -> Situation:
    """What decides about the future, and nothing else: names of visits, revisions, trees and tasks are left out.

    Of the limits only those of the present scopes count: a revision, draft or visit never comes again.
    """
    spent = state.counters
    task = None if state.current is None else _shape(state.task, red=True)
    return (
        (state.trunk.step, state.trunk.ask, state.trunk.origin, state.trunk.gate, state.trunk.pending),
        state.trunk.after is Signal.PASSES_ALREADY,
        tuple(spent.get(counter_key(state, loop, None), 0) for loop in _RUN_LOOPS),
        None if task is None else tuple(spent.get(counter_key(state, loop, None), 0) for loop in _TASK_LOOPS),
        tuple(spent.get(counter_key(state, Loop.REASK, role), 0) for role in ASKS.get(state.trunk.step, ())),
        tuple(spent.get(counter_key(state, Loop.UNUSABLE, role), 0) for role in Role),
        state.trunk.left_out,
        task,
        tuple(_shape(state.tasks[name], red=False) for name in state.queue),
        state.own_step,
        (state.fixing, state.nothing_changed, bool(state.open_blockers), state.failure),
        (state.outcome, state.reason),
        (state.split_size, state.dispatches) if dispatches else None,
    )


def _shape(task: TaskState, *, red: bool) -> Situation:
    return (task.fix, task.spec.stub_first, task.spec.evidence, red and task.red is not None)


class Search:
    """A depth-first search by every event that can come.

    Args:
        splits: What SPLIT may draft.
        budget: Count dispatches as the driver does, and park when they are used up.
        decide: The function that is searched.
    """

    def __init__(
        self, splits: Sequence[tuple[NewTask, ...]], *, budget: bool = False, decide: Advance = advance
    ) -> None:
        self._splits = splits
        self._budget = budget
        self._decide = decide

    def run(self, start: RunState) -> Found:
        """Visit every situation that can be reached from *start*."""
        longest: dict[Situation, int] = {}
        wrong: list[str] = []
        root = situation(start, dispatches=self._budget)
        path: dict[Situation, int] = {root: 0}  # open situations: the longest way found so far
        stack = [(root, iter(self._following(start)))]
        while stack:
            here, following = stack[-1]
            state = next(following, None)
            if state is None:
                stack.pop()
                longest[here] = path.pop(here)
                if stack:
                    above = stack[-1][0]
                    path[above] = max(path[above], longest[here] + 1)
                continue
            key = situation(state, dispatches=self._budget)
            if key in path:
                wrong.append(f"a circle through {state.trunk.step} (visit {state.trunk.visit})")
            elif key in longest:
                path[here] = max(path[here], longest[key] + 1)
            else:
                wrong += _broken(state)
                path[key] = 0
                stack.append((key, iter(self._following(state))))
        return Found(len(longest), longest[root], tuple(wrong))

    def _following(self, state: RunState) -> list[RunState]:
        """The states that can follow; events that the table treats alike are tried once."""
        if stands(state):
            return []
        if self._budget and budget_is_used_up(state):
            return [self._decide(state, out_of_budget(state))[0]]
        alike: dict[object, Event] = {}
        for event, row in events(state, self._splits):
            if isinstance(row.action, Stop):
                alike["stop"] = event  # an end, whatever its reason
            else:
                passes = event.signal is Signal.PASSES_ALREADY
                alike[row.action, event.role, event.tasks, event.blockers, passes] = event
        found: list[RunState] = []
        for event in alike.values():
            after, decision = self._decide(state, event)
            found.append(replace(after, dispatches=after.dispatches + dispatches_due(decision, state, after)))
        return found


def _broken(state: RunState) -> list[str]:
    if state.trunk.step is Step.IMPLEMENT and state.task.red is None:
        return ["IMPLEMENT was entered without RED or a sign-off"]
    return []
