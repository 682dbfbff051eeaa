"""The machine of a recipe's run: what starts, what is held, how it ends; no agent, no disk. The page shows its rows."""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.recipes.model import Recipe
from pipeline.matrix.recipes.next_steps import RecipeMachine, before, differing, held_by, obligations, reopened
from pipeline.matrix.recipes.step_table import (
    ANY,
    BOUNDS,
    GIVEN,
    ROWS,
    At,
    Begin,
    Bound,
    Checkpoint,
    Done,
    Go,
    Onward,
    Otherwise,
    Retry,
    Settle,
    StepEvent,
    StepSignal,
    StepsState,
    Stop,
    Unsettle,
)
from pipeline.matrix.routing.render import refresh
from pipeline.matrix.scheduling.patterns import parsed
from pipeline.outcomes import Outcome, Reason

if TYPE_CHECKING:
    from pipeline.matrix.recipes.step_table import Action

ANSWERS = (StepSignal.ANSWERED, StepSignal.UNSURE, StepSignal.CANNOT_PROCEED, StepSignal.QUESTIONS)


def recipe(*steps: dict[str, Any], **more: Any) -> Recipe:
    said = [{"agent": "explore", "prompt": "p", **step} for step in steps]
    return Recipe.model_validate_json(json.dumps({"name": "r", "steps": said, **more}))


RESEARCH = recipe(
    {"id": "angles", "payload": {"type": "array"}},
    {"id": "look", "depends_on": ["angles"], "for_each": "{{steps.angles.payload}}"},
    {"id": "doubt", "depends_on": ["look"], "accepts": "partial"},
    {"id": "brief", "depends_on": ["look", "doubt"], "accepts": "partial"},
)


def begun(machine: RecipeMachine) -> StepsState:
    return machine.advance(machine.initial(), StepEvent(signal=StepSignal.OK))[0]


def told(machine: RecipeMachine, state: StepsState, lane: str, signal: StepSignal, **items: int) -> StepsState:
    return machine.advance(state, StepEvent(signal=signal, lane=lane, items=items))[0]


def walked(machine: RecipeMachine, **signals: StepSignal) -> StepsState:
    """Return the state at the end; each step answers, but for those that are named."""
    state = begun(machine)
    while state.outcome is None:
        lane = state.due(())[0]
        items = {"look": 3} if lane == "angles" else {}
        state = told(machine, state, lane, signals.get(lane.replace(".", "_"), StepSignal.ANSWERED), **items)
    return state


def test_a_list_becomes_steps_side_by_side_and_all_ready_is_done() -> None:
    machine = RecipeMachine(RESEARCH, {})
    state = told(machine, begun(machine), "angles", StepSignal.ANSWERED, look=2)
    assert state.due(()) == ("look.1", "look.2")
    end = walked(machine)
    assert (end.outcome, end.reason) == (Outcome.COMPLETED, Reason.DONE)
    assert set(end.settled) == {"angles", "look.1", "look.2", "look.3", "doubt", "brief"}


def test_an_empty_list_is_ready() -> None:
    machine = RecipeMachine(RESEARCH, {})
    state = told(machine, begun(machine), "angles", StepSignal.ANSWERED, look=0)
    assert state.due(()) == ("doubt",)


def test_check_15_one_that_fails_leaves_a_half_that_is_used_and_only_it_is_asked_again() -> None:
    machine = RecipeMachine(RESEARCH, {})
    end = walked(machine, look_2=StepSignal.TIMED_OUT)
    assert (end.outcome, end.reason) == (Outcome.PARTIAL, Reason.STEPS_OPEN)
    assert {name for name, how in end.settled.items() if how is not Checkpoint.READY} == {"look.2"}
    again = machine.resume(end)
    assert (again.outcome, again.due(())) == (None, ("look.2",))
    assert told(machine, again, "look.2", StepSignal.ANSWERED).outcome is Outcome.COMPLETED


def test_check_16_who_takes_only_what_is_ready_is_held_with_all_behind_it() -> None:
    machine = RecipeMachine(recipe({"id": "a"}, {"id": "b", "depends_on": ["a"]}, {"id": "c", "depends_on": ["b"]}), {})
    state, decision = machine.advance(begun(machine), StepEvent(signal=StepSignal.UNSURE, lane="a"))
    assert state.settled == {"a": Checkpoint.PARTIAL, "b": Checkpoint.HELD, "c": Checkpoint.HELD}
    assert [effect.kind for effect in decision.effects] == ["step_settled", "step_held", "step_held", "run_parked"]


def test_an_answer_that_does_not_count_is_asked_for_as_often_as_the_step_says() -> None:
    machine = RecipeMachine(recipe({"id": "a", "attempts": 3}), {})
    state = begun(machine)
    for _ in range(2):
        state = told(machine, state, "a", StepSignal.MALFORMED)
        assert state.outcome is None
    assert state.lanes["a"].attempt == 3
    assert told(machine, state, "a", StepSignal.MALFORMED).settled == {"a": Checkpoint.FAILED}


def test_no_more_are_at_work_than_may_be() -> None:
    machine = RecipeMachine(recipe(*({"id": f"s{number}"} for number in range(5)), max_concurrency=2), {})
    state = begun(machine)
    assert state.due(()) == ("s0", "s1")
    assert told(machine, state, "s1", StepSignal.ANSWERED).due(()) == ("s0", "s2")


def test_a_run_parks_when_only_gates_are_left() -> None:
    gate = {"id": "ok", "agent": None, "prompt": None, "gate": "approve"}
    machine = RecipeMachine(recipe({"id": "a"}, gate, {"id": "b", "depends_on": ["ok"]}), {})
    state = told(machine, begun(machine), "a", StepSignal.ANSWERED)
    assert (state.outcome, state.reason) == (Outcome.PARKED, Reason.APPROVAL)
    assert told(machine, machine.resume(state), "ok", StepSignal.APPROVED).settled["ok"] is Checkpoint.READY


@pytest.mark.parametrize("signal", ANY)
def test_what_stops_a_run_can_go_on_unless_it_escaped(signal: StepSignal) -> None:
    machine = RecipeMachine(recipe({"id": "a", "attempts": 1}), {})
    state = told(machine, begun(machine), "a", signal)
    assert state.outcome is not None
    assert (machine.resume(state).outcome is None) == (signal is not StepSignal.ESCAPE)


def test_every_signal_has_a_row_somewhere() -> None:
    assert {signal for _, signal in ROWS} | set(ANY) == set(StepSignal)
    assert {at for at, _ in ROWS} == set(At)


def wrote(machine: RecipeMachine, state: StepsState, lane: str, signal: StepSignal, tree: str | None) -> StepsState:
    return machine.advance(state, StepEvent(signal=signal, lane=lane, tree=tree))[0]


def test_what_a_writer_wrote_is_measured_then_reviewed_and_goes_back_as_often_as_each_may() -> None:
    reviewed = {"agent": "make", "accept": {"regression": True}, "review": ["check"]}
    machine = RecipeMachine(recipe({"id": "w", "attempts": 3, **reviewed}), {})
    state = wrote(machine, begun(machine), "w", StepSignal.ANSWERED, "t1")
    assert (state.lanes["w"].at, state.lanes["w"].tree, state.lanes["w"].attempt) == (At.ACCEPT, "t1", 1)
    state = told(machine, state, "w", StepSignal.NOT_MET)
    assert (state.lanes["w"].at, state.lanes["w"].tree, state.lanes["w"].attempt) == (At.ASK, "t1", 2)
    for tree in ("t2", "t3", "t4"):  # the review pays of its own
        state = wrote(machine, state, "w", StepSignal.ANSWERED, tree)
        state = told(machine, state, "w", StepSignal.MET)
        assert state.lanes["w"].at is At.REVIEW
        state = told(machine, state, "w", StepSignal.NEEDS_WORK)
    assert (state.settled, state.trees) == ({"w": Checkpoint.PARTIAL}, {"w": "t4"})
    assert state.visits == 12, "each arrival has a number of its own: no answer is taken for another one"


def test_a_reviewer_that_fails_is_asked_again_and_not_the_writer() -> None:
    machine = RecipeMachine(recipe({"id": "w", "agent": "make", "review": ["check"]}), {})
    state = wrote(machine, begun(machine), "w", StepSignal.ANSWERED, "t1")
    state = told(machine, state, "w", StepSignal.TIMED_OUT)
    assert (state.lanes["w"].at, state.lanes["w"].attempt) == (At.REVIEW, 1)
    assert told(machine, state, "w", StepSignal.ACCEPTABLE).settled == {"w": Checkpoint.READY}
    assert told(machine, state, "w", StepSignal.TIMED_OUT).settled == {"w": Checkpoint.FAILED}


def test_check_10_writers_whose_areas_meet_never_overlap_also_within_a_list() -> None:
    parted = {"id": "w", "agent": "make", "depends_on": ["a"], "for_each": "{{steps.a.payload}}"}
    areas = (("src/a",), ("src/b",), ("src/*",), ("src/a/x",))
    machine = RecipeMachine(recipe({"id": "a"}, {**parted, "write_set": ["{{item}}"]}, max_concurrency=9), {})
    state = machine.advance(
        begun(machine), StepEvent(signal=StepSignal.ANSWERED, lane="a", items={"w": 4}, areas={"w": areas})
    )[0]
    assert state.due(()) == ("w.1", "w.2")
    state = wrote(machine, state, "w.1", StepSignal.ANSWERED, "t1")
    assert state.due(()) == ("w.2", "w.4")
    assert (before(machine, state, "w.3"), before(machine, state, "w.4")) == (("a", "w.1", "w.2"), ("a", "w.1"))


def test_check_11_writers_without_a_write_set_go_one_by_one_and_check_09_readers_overlap() -> None:
    each = {"depends_on": ["a"], "for_each": "{{steps.a.payload}}"}
    writers = {"id": "w", "agent": "make", **each}, {"id": "z", "agent": "make", "depends_on": ["a"]}
    machine = RecipeMachine(recipe({"id": "a"}, *writers, {"id": "r", **each}, max_concurrency=9), {})
    state = told(machine, begun(machine), "a", StepSignal.ANSWERED, w=3, r=2)
    assert state.due(()) == ("w.1", "r.1", "r.2")


def test_going_on_writes_again_what_rests_on_files_that_are_written_again_and_nothing_else() -> None:
    steps = ({"id": "w1"}, {"id": "w2"}, {"id": "w3", "write_set": ["docs"]}, {"id": "x", "agent": "check"})
    said = [{"agent": "make", "write_set": ["src"], **step} for step in steps]
    said[3] = {"id": "x", "agent": "check", "depends_on": ["w2"]}
    machine = RecipeMachine(recipe(*said), {})
    end = walked(machine, w1=StepSignal.CANNOT_PROCEED)
    assert (end.outcome, end.settled["w2"], end.settled["x"]) == (Outcome.PARTIAL, Checkpoint.READY, Checkpoint.READY)
    again = machine.resume(end)
    assert set(again.settled) == {"w3"}, "w2 was written over files without the work of w1, and x read those of w2"
    assert again.due(()) == ("w1",)


@given(st.integers(0, 10_000))
def test_time_decides_nothing_and_every_run_ends(seed: int) -> None:
    """Which of the steps at work reports first changes nothing of what comes out, nor of what each step sees."""
    chance = random.Random(seed)  # noqa: S311  (a graph)
    ids = [f"s{number}" for number in range(chance.randint(1, 8))]
    steps = [
        {
            "id": id_,
            "depends_on": chance.sample(ids[:at], chance.randint(0, min(at, 2))),
            "accepts": chance.choice(["ready", "partial"]),
            **chance.choice([{}, {"agent": "make", "write_set": chance.choice([["a"], ["a/b"], ["c"], ["*/b"]])}]),
        }
        for at, id_ in enumerate(ids)
    ]
    machine = RecipeMachine(recipe(*steps, max_concurrency=chance.randint(1, 3)), {})
    answers = {id_: chance.choice(ANSWERS) for id_ in ids}
    ends: list[tuple[object, ...]] = []
    for order in range(2):
        state, steps_taken, sees = begun(machine), 0, dict[str, set[str]]()
        while state.outcome is None:
            at_work = [machine.steps[name].write_set or () for name in state.lanes if name != TRUNK]
            assert not any(
                parsed(a).meets(parsed(b)) for one, two in combinations(at_work, 2) for a in one for b in two
            )
            ready = {name for name, how in state.settled.items() if how is Checkpoint.READY}
            sees |= {name: ready & {*before(machine, state, name)} for name in state.lanes if name != TRUNK}
            lane = random.Random(order * 7919 + steps_taken).choice(state.due(()))  # noqa: S311  (a schedule)
            state = told(machine, state, lane, answers[lane])
            steps_taken += 1
            assert steps_taken <= 2 * len(ids)
        assert state.lanes.keys() == {TRUNK}
        ends.append((state.outcome, dict(sorted(state.settled.items())), dict(sorted(sees.items()))))
    assert ends[0] == ends[1]


SEAM = recipe(
    {"id": "api", "provides": ["greeting"]},
    {"id": "page", "depends_on": ["api"], "requires": ["greeting"], "accepts": "partial"},
    {"id": "site", "depends_on": ["page"]},
)


def seamed(machine: RecipeMachine, state: StepsState, lane: str, *open_seams: str) -> StepsState:
    return machine.advance(state, StepEvent(signal=StepSignal.ANSWERED, lane=lane, open_seams=open_seams))[0]


def test_check_18_an_open_seam_holds_its_consumers_until_all_sides_keep_to_it() -> None:
    machine = RecipeMachine(SEAM, {})
    state = seamed(machine, begun(machine), "api", "greeting")
    assert state.settled == {"api": Checkpoint.PARTIAL, "page": Checkpoint.HELD, "site": Checkpoint.HELD}
    assert state.outcome is Outcome.PARTIAL
    assert held_by(machine, state, machine.steps["page"]) == ("api",), "though `page` takes halves"
    (found,) = obligations(machine, state)
    assert (found.seam, found.provider, found.consumers, found.open) == ("greeting", "api", ("page",), ("api", "page"))
    state = seamed(machine, machine.resume(state), "api")
    state = seamed(machine, state, "page", "greeting")
    assert state.settled["site"] is Checkpoint.HELD, "a consumer is a side, too"
    assert obligations(machine, state)[0].open == ("page",)
    state = seamed(machine, seamed(machine, machine.resume(state), "page"), "site")
    assert (state.outcome, obligations(machine, state)) == (Outcome.COMPLETED, ())


def test_a_step_is_done_again_with_what_saw_it_and_nothing_else() -> None:
    machine = RecipeMachine(RESEARCH, {})
    end = walked(machine, look_1=StepSignal.UNSURE, look_3=StepSignal.TIMED_OUT)
    again = reopened(machine, end, ["look.1"], {})
    assert set(again.settled) == {"angles", "look.2", "look.3"}, "what failed is not asked again unasked"
    assert (again.due(()), again.outcome, again.resumes) == (("look.1",), None, 1)
    again = reopened(machine, end, ["angles"], {})
    assert (again.settled, again.counts, again.due(())) == ({}, {}, ("angles",))
    assert told(machine, again, "angles", StepSignal.ANSWERED, look=1).due(()) == ("look.1",)


def test_check_22_only_steps_that_differ_and_what_saw_them_are_done_again() -> None:
    old, end = RecipeMachine(RESEARCH, {}), walked(RecipeMachine(RESEARCH, {}), look_2=StepSignal.TIMED_OUT)
    steps = [step.model_dump(by_alias=True, exclude_defaults=True) for step in RESEARCH.steps]
    new = RecipeMachine(recipe(*steps[:2], {**steps[2], "prompt": "q"}, steps[3], {"id": "extra"}), {})
    assert differing(old, new) == ("doubt", "brief", "extra")
    again = reopened(new, end, differing(old, new), {})
    assert set(again.settled) == {"angles", "look.1", "look.2", "look.3"}
    assert set(again.due(())) == {"doubt", "extra"}
    less = RecipeMachine(recipe(steps[0]), {})
    assert reopened(less, end, differing(old, less), {}).outcome is Outcome.COMPLETED, "what is gone is not done"
    other = RecipeMachine(recipe(*({**step, "prompt": "{{inputs.a}}"} for step in steps)), {"a": "1"})
    assert differing(other, RecipeMachine(other.recipe, {"a": "1"})) == ()
    assert differing(other, RecipeMachine(other.recipe, {"a": "2"})) == other.order


# --- the rows: each way is one, those of a fact too, and the page shows them all --------------------------------------


def steps_markdown() -> str:
    """Return the rows as the table of the page; rows that a fact picks stand behind those that hold else."""
    cells = [(at.value, f"`{signal}`", "", _words(action)) for (at, signal), action in ROWS.items()]
    cells += [(at.value, f"`{signal}`", fact.value, _words(action)) for (at, signal, fact), action in GIVEN.items()]
    places = [at.value for at, _ in ROWS]
    cells.sort(key=lambda cell: places.index(cell[0]))
    cells += [("any", f"`{signal}`", "", _words(action)) for signal, action in ANY.items()]
    lines = [("At", "Signal", "Given", "Then"), ("---",) * 4, *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _words(action: Action) -> str:
    match action:
        case Begin():
            return "the first steps start"
        case Onward(last):
            return f"the next of accept and review that the step has; behind the last one {last.value}"
        case Settle(checkpoint):
            return checkpoint.value.replace("_", " ")
        case Retry(bound, at):
            return f"{'the same' if at is None else at.value} again, {_limited(bound)}"
        case Otherwise():
            return "failed; with `otherwise: nothing-to-do` the run is over, completed"
        case Unsettle():
            return f"what `back_to` names and all behind it again, {_limited(Bound.HUMAN)}; failed without one"
        case Stop(outcome, reason):
            return f"the run: {outcome.value} ({reason.value})"
        case Go() | Done():
            return "what a row comes to here"
        case _:
            assert_never(action)


def _limited(bound: Bound) -> str:
    count, then = BOUNDS[bound]
    return f"at most {count} by {bound.value}, then {then.value}"


def test_each_way_of_a_step_is_a_row_also_where_a_fact_picks_another_one() -> None:
    machine = RecipeMachine(recipe({"id": "a", "provides": ["wire"]}), {})
    for open_seams, row, checkpoint in (
        (("wire",), "ask/ANSWERED[a seam is open]", Checkpoint.PARTIAL),
        ((), "ask/ANSWERED", Checkpoint.READY),
    ):
        said = StepEvent(signal=StepSignal.ANSWERED, lane="a", open_seams=open_seams)
        after, decision = machine.advance(begun(machine), said)
        assert (decision.row, after.settled["a"]) == (row, checkpoint)
    patch = {"id": "p", "apply_from": "s", "depends_on": ["s"], "accept": {"regression": True}, "agent": None}
    scratch = {"id": "s", "agent": "make", "workspace_mode": "scratch"}
    machine = RecipeMachine(recipe(scratch, {**patch, "prompt": None}), {})
    state = told(machine, begun(machine), "s", StepSignal.ANSWERED)
    state = told(machine, state, "p", StepSignal.MET)
    after, decision = machine.advance(state, StepEvent(signal=StepSignal.NOT_MET, lane="p"))
    assert (decision.row, after.settled["p"]) == ("accept/NOT_MET[nobody is asked]", Checkpoint.FAILED)
    assert {(at, signal) for at, signal, _ in GIVEN} <= set(ROWS)


def test_the_page_shows_the_rows_that_there_are_and_each_way_back_is_paid() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/recipes.md").read_text(encoding="utf-8")
    assert page == refresh(page, {"steps": steps_markdown()}), "renew it"
    order = [At.ASK, At.APPLY, At.ACCEPT, At.REVIEW]
    for (at, signal), action in {**ROWS, **{(at, one): action for (at, one, _), action in GIVEN.items()}}.items():
        if isinstance(action, Retry):
            assert BOUNDS[action.bound][0] < 10, (at, signal)
        if isinstance(action, Onward):
            assert at in order, "it leads on only, which ends"
    exits = {
        at for (at, _), action in ROWS.items() if isinstance(action, Settle | Onward | Otherwise | Unsettle | Begin)
    }
    assert exits == set(At)
