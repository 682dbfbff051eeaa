"""The machine of a recipe's run: which steps start, what a signal makes of one, and how the run stands at the end.

A step that is at work is a lane, called as the step, or `look.3` for the third of a `for_each`. The trunk only begins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.engine.machine import TRUNK, Decision, Effect
from pipeline.outcomes import Outcome
from pipeline.recipes.model import Kind
from pipeline.recipes.plan import ATTEMPTS, MOST_ITEMS, planned_graph
from pipeline.recipes.starting import ended, started
from pipeline.recipes.step_table import At, Begin, Checkpoint, Retry, Settle, Stop, row_of
from pipeline.recipes.steps_state import StepEvent, StepLane, StepsState
from pipeline.recipes.templates import only_reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.recipes.model import Recipe
    from pipeline.recipes.step_table import Action

_AT: Final[Mapping[Kind, At]] = {Kind.AGENT: At.ASK, Kind.RUN: At.RUN, Kind.TESTS: At.RUN, Kind.GATE: At.HOLD}


class RecipeMachine:
    """Drives the steps of one recipe with these inputs."""

    def __init__(self, recipe: Recipe, values: Mapping[str, str]) -> None:
        self.recipe = recipe
        self.steps = {step.id: step for step in recipe.steps}
        plan = planned_graph(recipe, values)
        self.order = plan.order
        self.after = {id_: tuple(one.earlier for one in conflicts) for id_, conflicts in plan.after.items()}

    def initial(self) -> StepsState:
        """Return the state of a run that has not done anything."""
        return StepsState(lanes={TRUNK: StepLane(step=At.BEGIN.value)})

    def read(self, event: Mapping[str, object]) -> StepEvent:
        """Return an event of the journal.

        Raises:
            ValueError: it is none of this machine's.
        """
        return StepEvent.model_validate(event)

    def advance(self, state: StepsState, event: StepEvent) -> tuple[StepsState, Decision]:
        """Return the state after *event* and what was decided.

        Raises:
            LookupError, ValueError: nothing follows this event here.
        """
        if event.lane not in state.lanes:
            raise ValueError(f"no lane is called {event.lane}")
        lane = state.lanes[event.lane]
        row, action = row_of(self.at(lane.step), event.signal)
        after, action, counters, exhausted = self._followed(state, event, action)
        effects: list[tuple[str, dict[str, str]]] = []
        if isinstance(action, Settle):
            after = _settled(after, event.lane, action.checkpoint, event.items)
            effects.append(("step_settled", {"step": event.lane, "checkpoint": action.checkpoint.value}))
        if isinstance(action, Settle | Begin):
            after, begun = started(self, after)
            effects += begun
            after = ended(after)
        if isinstance(action, Stop):
            after = replace(after, outcome=action.outcome, reason=action.reason)
        if after.outcome is not None and after.reason is not None:
            kind = "run_parked" if after.outcome in {Outcome.PARKED, Outcome.PARTIAL} else "run_finished"
            effects.append((kind, {"outcome": after.outcome.value, "reason": after.reason.value}))
        first = state.effects + 1
        decision = Decision(
            step=lane.step,
            visit=lane.visit,
            row=row,
            action=action,
            counters=counters,
            exhausted=exhausted,
            effects=tuple(Effect(f"e{first + at}", kind, data) for at, (kind, data) in enumerate(effects)),
        )
        return replace(after, effects=state.effects + len(effects)), decision

    def resume(self, state: StepsState) -> StepsState:
        """Return the state of a run that goes on: what is ready stays, what is not is asked again."""
        if state.outcome is None or state.has_ended:
            return state
        again = replace(state, outcome=None, reason=None, resumes=state.resumes + 1)
        if state.outcome is Outcome.PARTIAL:
            ready = {name: how for name, how in state.settled.items() if how is Checkpoint.READY}
            counters = {name: count for name, count in state.counters.items() if name.partition("@")[2] in ready}
            again, _ = started(self, replace(again, settled=ready, counters=counters))
        return ended(again)

    def at(self, step: str) -> At:
        """Return what a step of the recipe is at, or the trunk."""
        return At.BEGIN if step == At.BEGIN.value and step not in self.steps else _AT[self.steps[step].kind]

    def names(self, state: StepsState, id_: str) -> tuple[str, ...]:
        """Return what a step of the file became: itself, or the steps of a `for_each`; the id while that is open."""
        count = state.counts.get(id_)
        if self.steps[id_].for_each is None or count is None:
            return (id_,)
        return tuple(f"{id_}.{number}" for number in range(1, count + 1))

    def ancestors(self, id_: str) -> tuple[str, ...]:
        """Return the steps of the file that a step depends on, directly or not, in order."""
        found: set[str] = set()
        open_ = list(self.steps[id_].depends_on)
        while open_:
            one = open_.pop()
            if one not in found:
                found.add(one)
                open_ += self.steps[one].depends_on
        return tuple(one for one in self.order if one in found)

    def lists_of(self, id_: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the `for_each` steps over the payload of a step, each with the keys below it."""
        for step in self.recipe.steps:
            source = only_reference(step.for_each) if step.for_each is not None else None
            if source is not None and source.step == id_:
                yield step.id, source.path

    def _followed(
        self, state: StepsState, event: StepEvent, action: Action
    ) -> tuple[StepsState, Action, dict[str, int], tuple[str, ...]]:
        if not isinstance(action, Retry):
            return state, action, {}, ()
        lane, bound = state.lanes[event.lane], f"attempts@{event.lane}"
        most = self.steps[lane.step].attempts or ATTEMPTS
        paid = state.counters.get(bound, 0)
        if paid + 1 >= most:
            return state, Settle(Checkpoint.FAILED), {}, (bound,)
        visits = state.visits + 1
        lanes = {**state.lanes, event.lane: replace(lane, visit=visits, attempt=lane.attempt + 1)}
        after = replace(state, lanes=lanes, visits=visits, counters={**state.counters, bound: paid + 1})
        return after, action, {bound: paid + 1}, ()


def _settled(state: StepsState, name: str, checkpoint: Checkpoint, items: Mapping[str, int]) -> StepsState:
    lanes = {lane: where for lane, where in state.lanes.items() if lane != name}
    counts = {step: min(count, MOST_ITEMS) for step, count in items.items()}
    return replace(
        state,
        lanes=lanes,
        settled={**state.settled, name: checkpoint},
        counts={**state.counts, **counts} if checkpoint.is_usable else state.counts,
    )
