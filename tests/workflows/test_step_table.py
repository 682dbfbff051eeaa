"""The rows of a recipe's steps: each way is one, those of a fact too, and the page shows them all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from workflows.test_machine import begun, recipe, told

from pipeline.matrix.recipes.next_steps import RecipeMachine
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
    Stop,
    Unsettle,
)
from pipeline.matrix.routing.render import refresh

if TYPE_CHECKING:
    from pipeline.matrix.recipes.step_table import Action


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
