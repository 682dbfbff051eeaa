"""Looks up in the tables what may be reported in a state, which row holds, and a loop's limit and counter.

What REASK grants is granted again in each visit, so that a role which is refused the same way in every visit would be
asked until the budget is gone: a row of answers that do not count ends by a count of its own, and by bytes that were
refused before.

Nothing here performs I/O.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.matrix.routing.actions import Again, Row
from pipeline.matrix.routing.matrix import BOUNDS, DISPATCHES_PER_TASK, EMITS, GATES, MATRIX, steps_of
from pipeline.vocabulary import Loop, Question, Role, Signal, Step

if TYPE_CHECKING:
    from pipeline.matrix.routing.state import Event, RunState


class UnroutedSignalError(LookupError):
    """A step reported what the matrix has no row for: a bug of ours, named with its whole coordinate."""


_AMENDS: Final = frozenset({Signal.AMENDED, Signal.REFUSED})
_OWN: Final = frozenset({Signal.WRITTEN, Signal.NOT_WRITTEN})
_OF_A_REVIEW: Final = frozenset(
    row.signal for row in MATRIX if row.step is Step.FINAL_REVIEW or isinstance(row.action, Again)
)
_DIAGNOSES: Final = frozenset(row.signal for row in MATRIX if row.step is Step.DIAGNOSE) - _AMENDS


def signals_of(state: RunState) -> frozenset[Signal]:
    """Return what may be reported now: the step's signals but those that gate, question or recipe rule out.

    Where the recipe asks nobody, nothing else can happen; a user may still stop the run.
    """
    at = state.trunk
    found = EMITS[at.step]
    if state.phases.passes(at.step) or (at.step is Step.SPLIT and state.passes_split):
        return frozenset({Signal.NOT_ASKED, Signal.CANCELLED})
    found -= {Signal.NOT_ASKED}
    if at.step is Step.GATE:
        found = frozenset(GATES[at.gate or ""])
        return found - {Signal.REJECTED_TO_SPLIT} if state.one_writer else found  # there is no split to go back to
    if at.step is Step.DIAGNOSE:
        found -= _DIAGNOSES if at.ask is Question.AMEND else _AMENDS
        if at.after not in {Signal.PASSES_ALREADY, Signal.RED_GONE}:
            found -= {Signal.ALREADY_DONE}
        if at.after is not Signal.PASSES_ALREADY or at.origin is Step.BUILD:
            found -= {Signal.TESTS_KEPT}
        if at.origin is not Step.WRITE_TESTS:
            found -= {Signal.WRONG_REPORT}
    if at.step is Step.INTEGRATE and state.current is None:  # the trunk, while tasks are worked on side by side
        return frozenset({Signal.CANCELLED})
    if at.step is Step.FINAL_REVIEW:
        found -= _OWN if state.own_step is None else _OF_A_REVIEW - _OWN
    if at.step is Step.SPLIT and not state.may_take_the_plans_task:
        found -= {Signal.ONE_TASK}
    if at.step is Step.SPLIT and not state.fixing:
        found -= {Signal.PROVED}
    if at.step is Step.WRITE_TESTS and not state.begins_with_a_proof:
        found -= {Signal.PROOF_PASSES}
    return found


def find_row(state: RunState, signal: Signal) -> Row:
    """Return the one row that holds for *signal* now.

    Raises:
        UnroutedSignalError: the matrix has no row for it.
    """
    step = state.trunk.step
    if signal not in signals_of(state):
        accepted = ", ".join(sorted(signals_of(state)))
        raise UnroutedSignalError(f"step {step.value} cannot report {signal.value} now, only: {accepted}")
    rows = [row for row in MATRIX if row.signal is signal and step in steps_of(row)]
    facts = state.facts()
    special = [row for row in rows if row.given in facts]
    plain = [row for row in rows if row.given is None]
    if len(special) == 1:
        return special[0]
    if not special and len(plain) == 1:
        return plain[0]
    raise UnroutedSignalError(f"step {step.value}: {len(rows)} rows for signal {signal.value}, given {facts}")


def limit_of(state: RunState, loop: Loop) -> int | None:
    """Return how often *loop*'s edges may be taken in its scope (configured, else the matrix's); None = unbounded."""
    bound = BOUNDS[loop]
    if bound.limit is None:
        return None
    limit = state.limits.get(loop, bound.limit)
    if loop is Loop.DISPATCHES:
        return limit + DISPATCHES_PER_TASK * state.split_size
    # as of reviews, the last one is not followed by another: three in a row are two that were asked again
    return max(limit - 1, 0) if bound.reviews or loop is Loop.UNUSABLE else limit


def counter_key(state: RunState, loop: Loop, role: Role | None) -> str:
    """Return the name of the counter that *loop* is paid from in the scope that holds now (matrix 2)."""
    match BOUNDS[loop].scope:
        case "plan revision":
            where = f"plan {state.plan_revision}"
        case "split revision":
            where = f"split {state.split_revision}"
        case "draft":
            where = f"draft {state.draft}"
        case "task":
            where = f"task {state.current}"
        case "task and red tree":
            where = f"task {state.current} {(state.task.red or '')[:12]}"
        case "slot":
            where = f"visit {state.trunk.visit} {role.value if role else '-'} {state.resumes}"
        case "row of a role":
            where = f"{role.value if role else '-'} {state.trunk.task or '-'} {state.resumes}"
        case _:
            where = "run"
    return f"{loop.value}@{where}"


NOT_COUNTED: Final = frozenset({Signal.MALFORMED, Signal.VIOLATION, Signal.TIMED_OUT})
"""An answer that does not count: one more of these in a row may be the last."""
_SAYS_NOTHING: Final = frozenset(
    {Signal.UNAVAILABLE, Signal.BUDGET, Signal.ESCAPE, Signal.CANCELLED, Signal.ENV_BROKEN}
)
"""Neither a refusal nor an answer that counts."""


def _refused(role: Role | None, signal: Signal) -> Role | None:
    """Return whose answer was refused; a draft is the orchestrator's."""
    if signal is Signal.HYGIENE:
        return Role.ORCHESTRATOR
    return role if signal in NOT_COUNTED else None


def why_unusable(state: RunState, role: Role | None, signal: Signal, refusal: str | None) -> str | None:
    """Return in words why this refusal is the last one of its row; None while the role may be asked again."""
    role = _refused(role, signal)
    if role is None:
        return None
    key = counter_key(state, Loop.UNUSABLE, role)
    if refusal is not None and refusal in state.refused.get(key, ()):
        return f"@{role.value} handed in the same again, which was refused the same way"
    limit = limit_of(state, Loop.UNUSABLE)
    if signal in NOT_COUNTED and limit is not None and state.counters.get(key, 0) >= limit:
        return f"{limit + 1} dispatches of @{role.value} in a row did not count"
    return None


def in_a_row(state: RunState, event: Event) -> RunState:
    """Return the state with this event in the row of its role's refusals, or with the rows that an answer has ended."""
    role = _refused(event.role, event.signal)
    if role is not None:
        key = counter_key(state, Loop.UNUSABLE, role)
        new = [event.refusal] if event.refusal is not None else []
        refused = frozenset({*state.refused.get(key, ()), *new})
        counts = event.signal in NOT_COUNTED  # HYGIENE has a bound of its own, for drafts that differ
        counters = {**state.counters, key: state.counters.get(key, 0) + 1} if counts else state.counters
        return replace(state, counters=counters, refused={**state.refused, key: refused} if refused else state.refused)
    if event.signal in _SAYS_NOTHING:
        return state
    ended = {counter_key(state, Loop.UNUSABLE, role) for role in state.slots if role not in state.trunk.left_out}
    if ended.isdisjoint(state.counters) and ended.isdisjoint(state.refused):
        return state
    return replace(
        state,
        counters={key: count for key, count in state.counters.items() if key not in ended},
        refused={key: row for key, row in state.refused.items() if key not in ended},
    )


_HELPS: Final[dict[Signal, str]] = {
    Signal.VIOLATION: "name in the issue the files that may change, ",
    Signal.TIMED_OUT: "give it more time ([agents] timeout_s), ",
    Signal.HYGIENE: "write into the issue what the draft missed, ",
}
"""What a person can do about a refusal beside asking another agent."""


def told_why(why: str | None, refusal: str, signal: Signal) -> str:
    """Return a refusal in words; the last one of a row, which a person reads, with what they can do."""
    if why is None:
        return refusal
    either = "or " if signal in _HELPS else ""
    could = f"{_HELPS.get(signal, '')}{either}ask another agent (redfirst resume --agent ROLE=NAME)"
    return f"{why}: {refusal.rstrip('.')}. What you can do: {could}."
