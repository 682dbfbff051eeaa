"""Ends a row of answers of one role that do not count: counts it, and knows bytes that were refused before.

What REASK grants is granted again in each visit, so that a role which is refused the same way in every visit would be
asked until the budget is gone. Nothing here performs I/O.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.routing.lookup import counter_key, limit_of
from pipeline.routing.vocabulary import Loop, Role, Signal

if TYPE_CHECKING:
    from pipeline.routing.state import Event, RunState

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
