"""Decides in a recipe's run which steps start, what a signal makes of one, and how the run stands at the end.

A step that is at work is a lane, called as the step, or `look.3` for the third of a `for_each`. The trunk only begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pipeline.matrix.engine.protocols import TRUNK, Decision, Effect
from pipeline.matrix.recipes.model import Kind, Recipe, Step
from pipeline.matrix.recipes.plan import MOST_ITEMS, planned_graph, posture_of
from pipeline.matrix.recipes.rules import ancestors, input_names
from pipeline.matrix.recipes.step_table import (
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
    StepEvent,
    StepLane,
    StepsState,
    Stop,
    Unsettle,
    row_of,
)
from pipeline.matrix.recipes.templates import areas_by_item, listed, only_reference
from pipeline.matrix.scheduling.graph import Posture
from pipeline.matrix.scheduling.patterns import parsed
from pipeline.outcomes import Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from pydantic import JsonValue

    from pipeline.matrix.recipes.step_table import Action

_Area = tuple[str, ...]


def before(machine: RecipeMachine, state: StepsState, name: str) -> tuple[str, ...]:
    """Return all steps before one in the graph, by their names, in order."""
    above = machine.plan.before(machine.step_of(name).id)
    return (*(each for one in above for each in machine.names(state, one)), *siblings_before(machine, state, name))


def behind(machine: RecipeMachine, id_: str) -> tuple[str, ...]:
    """Return the steps of the file that stand behind one in the graph, in order."""
    bit = 1 << machine.order.index(id_)
    return tuple(one for one in machine.order if machine.plan.above[one] & bit)


def siblings_before(machine: RecipeMachine, state: StepsState, name: str) -> tuple[str, ...]:
    """Return the steps of the same `for_each` that a writer waits for: their areas meet, in a row at least."""
    step = machine.step_of(name)
    if name == step.id or not machine.writes(step.id):
        return ()
    names = machine.names(state, step.id)
    known = state.areas.get(step.id, ())
    areas = known if len(known) == len(names) else ((),) * len(names)
    return tuple(names[at] for at in sorted(_above(areas)[names.index(name)]))


@lru_cache(maxsize=64)
def _above(areas: tuple[_Area, ...]) -> tuple[frozenset[int], ...]:
    """Return of each area those before it that it meets, and those before these; an empty one is everything."""
    found: list[frozenset[int]] = []
    for at, area in enumerate(areas):
        above: set[int] = set()
        for other in range(at - 1, -1, -1):  # the latest first: what stands before it need not be compared
            if other not in above and _meet(area, areas[other]):
                above |= {other, *found[other]}
        found.append(frozenset(above))
    return tuple(found)


def _meet(one: _Area, other: _Area) -> bool:
    if not one or not other:
        return True
    return any(parsed(left).meets(parsed(right)) for left in one for right in other)


@dataclass(frozen=True)
class Obligation:
    """A seam that not all sides keep to; `open` are the steps that do not, or have not come to say so."""

    seam: str
    provider: str
    consumers: tuple[str, ...]
    open: tuple[str, ...]


def seams_of(step: Step) -> tuple[str, ...]:
    """Return the seams of which a step is a side."""
    return tuple(dict.fromkeys((*step.provides, *step.requires)))


def honours(state: StepsState, name: str, seam: str) -> bool:
    """Return whether a step is over, can be built on, and keeps to a seam.

    It says so itself; one that nobody asks keeps to it when it is ready.
    """
    checkpoint = state.settled.get(name)
    return checkpoint is not None and checkpoint.is_usable and seam not in state.open_seams.get(name, ())


def broken_before(machine: RecipeMachine, state: StepsState, step: Step) -> tuple[str, ...]:
    """Return the steps before one that do not keep to a seam that it requires, all of them being over."""
    above = machine.ancestors(step.id)
    sides = dict.fromkeys(one for seam in step.requires for one in above if seam in seams_of(machine.steps[one]))
    return tuple(
        name
        for one in sides
        for name in machine.names(state, one)
        if not all(honours(state, name, seam) for seam in step.requires if seam in seams_of(machine.steps[one]))
    )


def obligations(machine: RecipeMachine, state: StepsState) -> tuple[Obligation, ...]:
    """Return the seams that are open, in the order of the file."""
    found: list[Obligation] = []
    for provider in machine.recipe.steps:
        for seam in provider.provides:
            consumers = tuple(step.id for step in machine.recipe.steps if seam in step.requires)
            names = [name for one in (provider.id, *consumers) for name in machine.names(state, one)]
            open_ = tuple(name for name in names if not honours(state, name, seam))
            if open_:
                found.append(Obligation(seam, provider.id, consumers, open_))
    return tuple(found)


class RecipeMachine:
    """Drives the steps of one recipe with these inputs."""

    def __init__(self, recipe: Recipe, values: Mapping[str, str]) -> None:
        self.recipe = recipe
        self.values = values
        self.steps = {step.id: step for step in recipe.steps}
        self.plan = planned_graph(recipe, values)
        self.order = self.plan.order
        self._ancestors = ancestors(recipe.steps)
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
        return tuple(one for one in self.order if one in self._ancestors[id_])

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


_FIRST: Final[Mapping[Kind, At]] = {
    Kind.AGENT: At.ASK,
    Kind.APPLY_FROM: At.APPLY,
    Kind.RUN: At.RUN,
    Kind.TESTS: At.TESTS,
    Kind.GATE: At.HOLD,
    Kind.FILE_ISSUES: At.FILE,
    Kind.PUBLISH: At.PUBLISH,
}
"""Where a step of each kind begins."""


def started(machine: RecipeMachine, state: StepsState) -> tuple[StepsState, list[tuple[str, dict[str, str]]]]:
    """Return the state with every step at work that may be, and what is to be said of it.

    All steps are looked at after each event, of which there may be a thousand: what cannot begin costs next to nothing.
    """
    effects: list[tuple[str, dict[str, str]]] = []
    at_work = sum(lane.gate is None for name, lane in state.lanes.items() if name != TRUNK)
    room = machine.recipe.max_concurrency - at_work
    for id_ in machine.order:  # in this order each step stands behind what it waits for
        step = machine.steps[id_]
        if step.for_each is None and (id_ in state.settled or id_ in state.lanes):
            continue
        waits = machine.waits[id_]
        if waits and not all(_is_over(machine, state, one) for one in waits):
            continue
        is_held = bool(step.depends_on or step.requires) and bool(held_by(machine, state, step))
        if not (is_held or room > 0 or step.gate is not None):
            continue
        for name in machine.names(state, id_):
            if name in state.settled or name in state.lanes:
                continue
            if is_held:
                state = replace(state, settled={**state.settled, name: Checkpoint.HELD})
                effects.append(("step_held", {"step": name}))
            elif any(one not in state.settled for one in siblings_before(machine, state, name)):
                continue
            elif step.gate is not None or room > 0:
                visits = state.visits + 1
                gate = None if step.gate == "note" else step.gate  # a note waits for nobody
                lane = StepLane(step=id_, at=_FIRST[step.kind], visit=visits, gate=gate)
                state = replace(state, lanes={**state.lanes, name: lane}, visits=visits)
                room -= gate is None
                effects.append(("step_started", {"step": name}))
    return state, effects


def ended(state: StepsState) -> StepsState:
    """Return the state with its outcome, where nothing is at work and nothing can start."""
    lanes = [lane for name, lane in state.lanes.items() if name != TRUNK]
    if any(lane.gate is None for lane in lanes):
        return state
    if lanes:
        return replace(state, outcome=Outcome.PARKED, reason=Reason.APPROVAL)
    if all(one is Checkpoint.READY for one in state.settled.values()):
        if state.blockers:
            return replace(state, outcome=Outcome.COMPLETED_WITH_BLOCKERS, reason=Reason.BLOCKERS)
        return replace(state, outcome=Outcome.COMPLETED, reason=Reason.DONE)
    return replace(state, outcome=Outcome.PARTIAL, reason=Reason.STEPS_OPEN)


def _is_over(machine: RecipeMachine, state: StepsState, id_: str) -> bool:
    if machine.steps[id_].for_each is None:
        return id_ in state.settled
    return all(name in state.settled for name in machine.names(state, id_))


def held_by(machine: RecipeMachine, state: StepsState, step: Step) -> tuple[str, ...]:
    """Return the steps because of which one cannot start, all that it waits for being over: none where it can."""
    names = [name for one in step.depends_on for name in machine.names(state, one)]
    if step.accepts == "ready":
        found = [name for name in names if state.settled[name] is not Checkpoint.READY]
    else:
        found = [] if any(state.settled[name].is_usable for name in names) else names
    if not found and step.for_each is not None and step.id not in state.counts:
        found = names  # the list is not there
    return tuple(dict.fromkeys((*found, *broken_before(machine, state, step))))


def unsettled(machine: RecipeMachine, state: StepsState, *steps: str) -> tuple[StepsState, tuple[str, ...]]:
    """Return the state in which steps, by their names or ids, and all behind them have not begun; and their names.

    How often a person has sent one back stays counted.
    """
    gone = {each for one in steps for each in (one, *(machine.names(state, one) if one in machine.steps else ()))}
    for id_ in machine.order:
        gone |= {name for name in machine.names(state, id_) if not gone.isdisjoint(before(machine, state, name))}
    lists = {step for id_ in gone if id_ in machine.steps for step, _ in machine.lists_of(id_)}
    fresh = replace(
        state,
        lanes={name: lane for name, lane in state.lanes.items() if name not in gone},
        settled={name: how for name, how in state.settled.items() if name not in gone},
        trees={name: tree for name, tree in state.trees.items() if name not in gone},
        open_seams={name: seams for name, seams in state.open_seams.items() if name not in gone},
        blockers={name: left for name, left in state.blockers.items() if name not in gone},
        counts={step: count for step, count in state.counts.items() if step not in lists},
        areas={step: areas for step, areas in state.areas.items() if step not in lists},
        counters={key: paid for key, paid in state.counters.items() if _stays(key, gone)},
    )
    known = (*(name for id_ in machine.order for name in machine.names(state, id_)), *steps)
    return fresh, tuple(dict.fromkeys(one for one in known if one in gone & {*state.settled, *state.lanes}))


def _stays(key: str, gone: Collection[str]) -> bool:
    bound, _, name = key.partition("@")
    return bound == Bound.HUMAN or name not in gone


_NONE: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = MappingProxyType({})


def reopened(
    machine: RecipeMachine,
    state: StepsState,
    steps: Collection[str],
    items: Mapping[str, int],
    areas: Mapping[str, tuple[tuple[str, ...], ...]] = _NONE,
) -> StepsState:
    """Return the state of a run that goes on with these steps and all behind them to be done, and nothing else.

    Args:
        machine: Of the recipe as it is from here on.
        state: How the run stands.
        steps: The names, or ids, of what is done again; of a changed recipe those that are new, too.
        items: How many steps each `for_each` becomes whose list is there already.
        areas: What each of these may change, nothing where that does not depend on its item.
    """
    known = {*machine.steps, *(name for id_ in machine.order for name in machine.names(state, id_))}
    lost = [name for name in (*state.settled, *state.lanes) if name not in known and name != TRUNK]
    resumes = state.resumes + (state.outcome is not None)
    after = replace(state, outcome=None, reason=None, resumes=resumes)
    after, _ = unsettled(machine, after, *steps, *lost)
    counts = {**after.counts, **{id_: items[id_] for id_ in items if id_ not in after.counts}}
    after = replace(after, counts=counts, areas={**after.areas, **areas})
    return ended(started(machine, after)[0])


def differing(old: RecipeMachine, new: RecipeMachine) -> tuple[str, ...]:
    """Return the ids of the steps that a changed recipe says anew, or that see something else now, in order."""
    found: set[str] = set()
    for id_ in new.order:
        above = {*new.plan.before(id_)}
        is_same = id_ in old.steps and _said(old, old.steps[id_]) == _said(new, new.steps[id_])
        if not is_same or above != {*old.plan.before(id_)} or not found.isdisjoint(above):
            found.add(id_)
    return tuple(id_ for id_ in new.order if id_ in found)


def _said(machine: RecipeMachine, step: Step) -> tuple[Step, tuple[tuple[str, str], ...]]:
    """Return a step with the values of the inputs that it names."""
    return step, tuple((name, machine.values[name]) for name in input_names(step) if name in machine.values)
