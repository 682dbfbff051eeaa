"""Prints the step table as text, from the rows themselves: what follows of what a step reports. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from pipeline.recipes.step_table import (
    ANY,
    BOUNDS,
    GIVEN,
    ROWS,
    Begin,
    Bound,
    Done,
    Go,
    Onward,
    Otherwise,
    Retry,
    Settle,
    Stop,
    Unsettle,
)

if TYPE_CHECKING:
    from pipeline.recipes.step_table import Action


def steps_markdown() -> str:
    """Return the rows as a Markdown table; rows that a fact picks stand behind those that hold else."""
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
