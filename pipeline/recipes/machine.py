"""Decides in a recipe's run which steps start, what a signal makes of one, and how the run stands at the end.

A step that is at work is a lane, called as the step, or `look.3` for the third of a `for_each`. The trunk only begins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.engine.machine import TRUNK, Decision, Effect
from pipeline.outcomes import Outcome, Reason
from pipeline.recipes.again import unsettled
from pipeline.recipes.before import before
from pipeline.recipes.items import areas_by_item
from pipeline.recipes.model import Kind
from pipeline.recipes.plan import MOST_ITEMS, planned_graph, posture_of
from pipeline.recipes.starting import ended, started
from pipeline.recipes.step_table import (
    BOUNDS,
    At,
    Begin,
    Bound,
    Checkpoint,
    Done,
    Given,
    Go,
    Onward,
    Otherwise,
    Retry,
    Settle,
    Stop,
    Unsettle,
    row_of,
)
from pipeline.recipes.steps_state import StepEvent, StepLane, StepsState
from pipeline.recipes.templates import listed, only_reference
from pipeline.scheduling.graph import Posture

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from pipeline.recipes.model import Recipe, Step
    from pipeline.recipes.step_table import Action


class RecipeMachine:
    """Drives the steps of one recipe with these inputs."""

    def __init__(self, recipe: Recipe, values: Mapping[str, str]) -> None:
        self.recipe = recipe
        self.values = values
        self.steps = {step.id: step for step in recipe.steps}
        self.plan = planned_graph(recipe, values)
        self.order = self.plan.order
        self.waits = {
            step.id: (*step.depends_on, *(one.earlier for one in self.plan.after[step.id])) for step in recipe.steps
        }

    def initial(self) -> StepsState:
        """Return the state of a run that has not done anything."""
        areas = {id_: areas_by_item(self.steps[id_], self.values, items) for id_, items in self.items.items()}
        return StepsState(
            lanes={TRUNK: StepLane(step=At.BEGIN.value, at=At.BEGIN)},
            counts={id_: len(items) for id_, items in self.items.items()},
            areas={id_: found for id_, found in areas.items() if found},
        )

    @property
    def items(self) -> dict[str, list[JsonValue]]:
        """Return the items of each `for_each` over an input."""
        found = {step.id: only_reference(step.for_each) for step in self.recipe.steps if step.for_each is not None}
        return {
            id_: [*listed(self.values[source.input])[:MOST_ITEMS]]
            for id_, source in found.items()
            if source is not None and source.input is not None
        }

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
        if lane.gate is not None:  # a person has answered: the run goes on, whatever it was parked for
            resumes = state.resumes + (state.outcome is not None)  # what parked it beside the gate is asked again
            state = replace(state, outcome=None, reason=None, resumes=resumes)
        row, action = row_of(lane.at, event.signal, self._facts(lane, event))
        after, action, counters, exhausted = self._followed(state, event, action)
        effects: list[tuple[str, dict[str, str]]] = []
        if isinstance(action, Settle | Done):
            checkpoint = action.checkpoint if isinstance(action, Settle) else Checkpoint.READY
            after = _settled(after, event, checkpoint)
            effects.append(("step_settled", {"step": event.lane, "checkpoint": checkpoint.value}))
        if isinstance(action, Unsettle):
            after, gone = unsettled(self, after, action.to)
            effects += [("step_unsettled", {"step": name}) for name in gone]
        if isinstance(action, Settle | Begin | Unsettle):
            after, begun = started(self, after)
            effects += begun
            after = ended(after)
        if isinstance(action, Stop):
            after = replace(after, outcome=action.outcome, reason=action.reason)
        if isinstance(action, Done):
            after = replace(after, outcome=Outcome.COMPLETED, reason=Reason.NOTHING_TO_DO)
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
            ready = dict.fromkeys(self._kept(state), Checkpoint.READY)
            counters = {name: count for name, count in state.counters.items() if name.partition("@")[2] in ready}
            blockers = {name: left for name, left in state.blockers.items() if name in ready}
            again, _ = started(self, replace(again, settled=ready, counters=counters, blockers=blockers))
        return ended(again)

    def step_of(self, name: str) -> Step:
        """Return the step of the file that became what is called so."""
        return self.steps[name if name in self.steps else name.rpartition(".")[0]]

    def writes(self, id_: str) -> bool:
        """Return whether what a step changes is seen by those behind it."""
        return posture_of(self.steps[id_]) in {Posture.ISOLATED, Posture.SHARED}

    def is_last(self, state: StepsState, name: str) -> bool:
        """Return whether a step is not asked again if its answer does not count."""
        return state.counters.get(f"{Bound.ATTEMPTS}@{name}", 0) >= self._limit(Bound.ATTEMPTS, self.step_of(name))

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

    def _facts(self, lane: StepLane, event: StepEvent) -> Iterator[Given]:
        if _open_seams(lane, event):
            yield Given.OPEN_SEAM
        if lane.step in self.steps and self.steps[lane.step].kind is not Kind.AGENT:
            yield Given.NOBODY_ASKED

    def _followed(
        self, state: StepsState, event: StepEvent, action: Action
    ) -> tuple[StepsState, Action, dict[str, int], tuple[str, ...]]:
        """Return what an action comes to here, with the bound that is paid, or found used up."""
        lane = state.lanes[event.lane]
        step = self.steps.get(lane.step)
        if step is None or not isinstance(action, Onward | Retry | Otherwise | Unsettle):
            return state, action, {}, ()
        if isinstance(action, Otherwise):
            return state, Done() if step.otherwise == "nothing-to-do" else Settle(Checkpoint.FAILED), {}, ()
        if isinstance(action, Onward):
            at = _behind(lane.at, step)
            if at is None:
                return state, Settle(action.last), {}, ()
            return _listed(_at(state, event, at), event), Go(at), {}, ()
        if isinstance(action, Unsettle):
            return self._sent_back(state, event, step)
        bound = f"{action.bound}@{event.lane}"
        paid = state.counters.get(bound, 0) + 1
        if paid > self._limit(action.bound, step):
            return state, Settle(BOUNDS[action.bound][1]), {}, (bound,)
        after = _at(state, event, action.at or lane.at)
        return replace(after, counters={**state.counters, bound: paid}), action, {bound: paid}, ()

    def _sent_back(
        self, state: StepsState, event: StepEvent, step: Step
    ) -> tuple[StepsState, Action, dict[str, int], tuple[str, ...]]:
        """Return what a person's no comes to: what the gate names is done again, as often as they may say so."""
        bound = f"{Bound.HUMAN}@{event.lane}"
        paid = state.counters.get(bound, 0) + 1
        if step.back_to is None or paid > self._limit(Bound.HUMAN, step):
            return state, Settle(Checkpoint.FAILED), {}, () if step.back_to is None else (bound,)
        return replace(state, counters={**state.counters, bound: paid}), Unsettle(step.back_to), {bound: paid}, ()

    def _limit(self, bound: Bound, step: Step) -> int:
        own = step.attempts if bound is Bound.ATTEMPTS else None
        return BOUNDS[bound][0] if own is None else own - 1

    def _kept(self, state: StepsState) -> Iterator[str]:
        """Yield what is not done again: what is ready, and rests on no files that a step is to write again."""
        again: set[str] = set()
        for id_ in self.order:
            for name in self.names(state, id_):
                if state.settled.get(name) is Checkpoint.READY and again.isdisjoint(before(self, state, name)):
                    yield name
                elif self.writes(id_):
                    again.add(name)


def _open_seams(lane: StepLane, event: StepEvent) -> tuple[str, ...]:
    """Return the contracts that a step leaves open: what it says now, else what it said before."""
    return lane.open_seams if event.open_seams is None else event.open_seams


def _behind(at: At, step: Step) -> At | None:
    """Return the next place that a step has behind one."""
    places = [place for place, has in ((At.ACCEPT, step.accept), (At.REVIEW, step.review)) if has]
    behind = places[places.index(at) + 1 :] if at in places else places
    return behind[0] if behind else None


def _at(state: StepsState, event: StepEvent, at: At) -> StepsState:
    """Return the state with a lane that has arrived at a place, with what it has written."""
    lane, visits = state.lanes[event.lane], state.visits + 1
    attempt = lane.attempt + (at is At.ASK)
    open_seams = _open_seams(lane, event)
    moved = replace(lane, at=at, visit=visits, attempt=attempt, tree=event.tree or lane.tree, open_seams=open_seams)
    return replace(state, lanes={**state.lanes, event.lane: moved}, visits=visits)


def _settled(state: StepsState, event: StepEvent, checkpoint: Checkpoint) -> StepsState:
    lanes = {name: where for name, where in state.lanes.items() if name != event.lane}
    lane = state.lanes[event.lane]
    tree = event.tree or lane.tree
    open_seams = _open_seams(lane, event)
    after = replace(
        state,
        lanes=lanes,
        settled={**state.settled, event.lane: checkpoint},
        trees={**state.trees, **({event.lane: tree} if tree is not None else {})},
        open_seams={**state.open_seams, event.lane: open_seams},
        blockers={**state.blockers, event.lane: event.blockers} if event.blockers else state.blockers,
    )
    return _listed(after, event) if checkpoint.is_usable else after


def _listed(state: StepsState, event: StepEvent) -> StepsState:
    """Return the state with what the lists of an event come to."""
    counts = {step: min(count, MOST_ITEMS) for step, count in event.items.items()}
    areas = {step: found[:MOST_ITEMS] for step, found in event.areas.items()}
    return replace(state, counts={**state.counts, **counts}, areas={**state.areas, **areas})
