"""Gates, commands and measurements in the machine of a recipe's run: what waits, what goes back; no agent, no disk."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workflows.test_check import rules, step
from workflows.test_machine import begun, recipe, told

from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.recipes.next_steps import RecipeMachine
from pipeline.matrix.recipes.simulation import simulate
from pipeline.matrix.recipes.step_table import BOUNDS, ROWS, Bound, Checkpoint, StepEvent, StepSignal
from pipeline.matrix.routing.simulation import SignalsError, walk_text
from pipeline.outcomes import Outcome, Reason

NO_ROLE: dict[str, Any] = {"agent": None, "prompt": None}
GATE: dict[str, Any] = {**NO_ROLE, "gate": "approve"}
BACK = recipe(
    {"id": "aside"},
    {"id": "list", "payload": {"type": "array"}},
    {"id": "each", "depends_on": ["list"], "for_each": "{{steps.list.payload}}"},
    {**GATE, "id": "ok", "depends_on": ["aside", "each"], "back_to": "list"},
    {"id": "after", "depends_on": ["ok"]},
)


def test_check_19_of_two_gates_one_is_approved_and_the_run_waits_at_the_other() -> None:
    steps = ({**GATE, "id": "one"}, {**GATE, "id": "two"}, {"id": "a", "depends_on": ["one"]})
    machine = RecipeMachine(recipe(*steps), {})
    state = begun(machine)
    assert (state.outcome, state.reason) == (Outcome.PARKED, Reason.APPROVAL)
    state = told(machine, machine.resume(state), "one", StepSignal.APPROVED)
    assert (state.outcome, state.due(())) == (None, ("a",))
    state = told(machine, state, "a", StepSignal.ANSWERED)
    assert (state.outcome, [name for name, lane in state.lanes.items() if lane.gate]) == (Outcome.PARKED, ["two"])
    state = told(machine, machine.resume(state), "two", StepSignal.APPROVED)
    assert (state.outcome, state.reason) == (Outcome.COMPLETED, Reason.DONE)


def test_check_20_back_to_does_that_step_and_what_is_behind_it_again_and_no_other() -> None:
    machine = RecipeMachine(BACK, {})
    state = begun(machine)
    state = told(machine, state, "aside", StepSignal.ANSWERED)
    state = told(machine, state, "list", StepSignal.ANSWERED, each=2)
    for lane in ("each.1", "each.2"):
        state = told(machine, state, lane, StepSignal.ANSWERED)
    visits = state.visits
    state, decision = machine.advance(state, StepEvent(signal=StepSignal.REJECTED, lane="ok"))
    unsettled = [effect.data["step"] for effect in decision.effects if effect.kind == "step_unsettled"]
    assert unsettled == ["list", "each.1", "each.2", "ok"]
    assert (state.settled, state.outcome, state.due(())) == ({"aside": Checkpoint.READY}, None, ("list",))
    assert state.lanes["list"].visit > visits, "it is asked anew: no old answer is taken for the new one"
    state = told(machine, state, "list", StepSignal.ANSWERED, each=1)
    assert state.due(()) == ("each.1",), "the new list is a shorter one"


def test_a_person_sends_back_as_often_as_that_may_be_and_then_the_gate_has_failed() -> None:
    back = {**GATE, "id": "ok", "depends_on": ["a"], "back_to": "a"}
    machine = RecipeMachine(recipe({"id": "a"}, back, {"id": "b", "depends_on": ["ok"]}), {})
    state = begun(machine)
    for _ in range(BOUNDS[Bound.HUMAN][0]):
        state = told(machine, told(machine, state, "a", StepSignal.ANSWERED), "ok", StepSignal.REJECTED)
        assert state.due(()) == ("a",)
    state = told(machine, told(machine, state, "a", StepSignal.ANSWERED), "ok", StepSignal.REJECTED)
    assert (state.settled["ok"], state.settled["b"]) == (Checkpoint.FAILED, Checkpoint.HELD)
    assert state.outcome is Outcome.PARTIAL


def test_a_rejection_without_a_way_back_holds_what_is_behind_it() -> None:
    machine = RecipeMachine(recipe({**GATE, "id": "ok"}, {"id": "b", "depends_on": ["ok"]}), {})
    state = told(machine, begun(machine), "ok", StepSignal.REJECTED)
    assert state.settled == {"ok": Checkpoint.FAILED, "b": Checkpoint.HELD}


def test_a_note_waits_for_nobody() -> None:
    machine = RecipeMachine(recipe({**GATE, "id": "tell", "gate": "note"}), {})
    state = begun(machine)
    assert (state.outcome, state.due(())) == (None, ("tell",))
    assert told(machine, state, "tell", StepSignal.OK).outcome is Outcome.COMPLETED


def test_check_34_what_is_not_met_leaves_nothing_to_do_where_the_step_says_so() -> None:
    for otherwise, outcome, reason in (
        ("nothing-to-do", Outcome.COMPLETED, Reason.NOTHING_TO_DO),
        (None, Outcome.PARTIAL, Reason.STEPS_OPEN),
    ):
        tests = {**NO_ROLE, "id": "t", "tests": "all", "expect": "fail", "otherwise": otherwise}
        machine = RecipeMachine(recipe(tests, {"id": "b", "depends_on": ["t"]}), {})
        state = told(machine, begun(machine), "t", StepSignal.NOT_MET)
        assert (state.outcome, state.reason) == (outcome, reason)
        state = told(machine, begun(machine), "t", StepSignal.CANNOT_PROCEED)
        assert state.settled["t"] is Checkpoint.FAILED, "what could not be measured is not nothing to do"


@pytest.mark.parametrize("name", ["trunk", "outcome", "request"])
def test_what_redfirst_calls_something_itself_is_no_name_of_a_step(name: str) -> None:
    assert [rule for rule, _ in rules(step(f"id: {name}, gate: ask"))] == ["bad_id"]


def test_nothing_goes_back_from_a_note() -> None:
    assert [rule for rule, _ in rules(step("id: a, gate: note, depends_on: [first], back_to: first"))] == [
        "unknown_key"
    ]


def test_a_step_may_be_called_begin() -> None:
    machine = RecipeMachine(recipe({"id": "begin"}), {})
    assert told(machine, begun(machine), "begin", StepSignal.ANSWERED).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("text", "why", "pointer"),
    [
        ("[ANSWERED, {step: each.3, signal: ANSWERED}]", "each.3 reports nothing now; only: list", "/1/step"),
        ("[APPROVED]", "nothing follows APPROVED at ask", "/0/signal"),
        ("[{signal: ANSWERD}]", ", signal: Input should be", "/0/signal"),
        ("[{signal: ANSWERED, itms: {}}]", ", itms: Extra inputs", "/0/itms"),
        ("OK", "Expected a list", ""),
    ],
)
def test_an_entry_that_cannot_be_taken_is_named_with_what_can(text: str, why: str, pointer: str) -> None:
    with pytest.raises(SignalsError, match=why) as caught:
        simulate(text, RecipeMachine(BACK, {}))
    assert caught.value.pointer == pointer


def test_a_walk_says_what_it_waits_for() -> None:
    walk = simulate("[ANSWERED, {signal: ANSWERED, items: {each: 1}}, ANSWERED]", RecipeMachine(BACK, {}))
    assert walk.waits_for == ("ok",)
    assert walk_text(walk).endswith("Outcome: parked (approval), exit 4.\nThe run waits for: ok.")


@given(st.integers(0, 10_000))
def test_every_run_ends_whatever_persons_and_measurements_say(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  (a graph)
    ids = [f"s{number}" for number in range(chance.randint(1, 6))]
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {**NO_ROLE, "run": ["true"], "otherwise": chance.choice([None, "nothing-to-do"])},
        GATE,
        {**GATE, "gate": "note"},
    )
    steps: list[dict[str, Any]] = []
    for at, id_ in enumerate(ids):
        above = chance.sample(ids[:at], chance.randint(0, min(at, 2)))
        kind = chance.choice(kinds)
        back = {"back_to": above[0]} if above and kind.get("gate") == "approve" and chance.random() < 0.7 else {}
        steps.append({"id": id_, "depends_on": above, **kind, **back})
    machine = RecipeMachine(recipe(*steps), {})
    state, taken = begun(machine), 0
    while state.outcome is None or state.outcome is Outcome.PARKED:
        gates = [name for name, lane in state.lanes.items() if lane.gate]
        lane = chance.choice([*(state.due(()) if state.outcome is None else ()), *gates])
        accepted = [signal for at, signal in ROWS if at is state.lanes[lane].at]
        state = told(machine, state, lane, chance.choice(accepted))
        taken += 1
        assert taken < 2_000, "a person can send back only so often"
    assert state.lanes.keys() <= {TRUNK, *ids}
