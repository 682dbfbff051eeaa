"""Words actions and bounds: the same for the tables, the diagrams and the simulation. Nothing here performs I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from pipeline.routing.actions import Again, AskPerson, Forward, Goto, LeaveOut, NextTask, Retry, Return, Stop
from pipeline.routing.matrix import BOUNDS, DISPATCHES_PER_TASK
from pipeline.routing.vocabulary import Loop, Question, Step

if TYPE_CHECKING:
    from pipeline.outcomes import Outcome, Reason
    from pipeline.routing.actions import Action
    from pipeline.routing.matrix import Bound

_ORDER: Final = list(Step)


def step_words(step: Step) -> str:
    """Return a step with its phase number: `REVIEW_PLAN (4)`."""
    return step.name if step.phase == "-" else f"{step.name} ({step.phase})"


def action_words(action: Action, at: Step | None = None) -> str:
    """Return what an action does, seen from step *at*, without its bound: `back to PLAN (3)`."""
    match action:
        case Goto(to, ask):
            return f"to {step_words(to)}{_asked(ask)}"
        case Retry(to, _, ask):
            return _way(at, to) + _asked(ask)
        case Return():
            return "back to the step that asked"
        case Again():
            return "ask the same slot again"
        case AskPerson():
            return "park until a person answers, then ask the same slot again"
        case LeaveOut():
            return "go on without this slot"
        case NextTask():
            return "next task"
        case Forward():
            return "go on where the gate stood"
        case Stop(outcome, reason):
            return f"stop: {_stop(outcome, reason)}"
        case _:
            assert_never(action)


def routed_words(action: Action, at: Step | None = None) -> str:
    """Return a whole cell: the action, how often, and what then.

    For example `back to PLAN (3), at most 2 per run, then FAILURE`.
    """
    what = action_words(action, at)
    if isinstance(action, NextTask):
        return _next_task(what, at)
    match action:
        case Retry(_, loop) | Return(loop) | Again(loop) | AskPerson(loop):
            bound = BOUNDS[loop]
            if bound.limit is None:
                return f"{what}, as often as a person asks"
            return f"{what}, at most {limit_words(loop)}, then {exhausted_words(bound)}"
        case _:
            return what


def limited_words(action: Action, at: Step | None = None) -> str:
    """Return the action with the name of its limit: `back to PLAN (3), limit plan_rework`."""
    what = action_words(action, at)
    match action:
        case NextTask():
            return _next_task(what, at)
        case Retry(_, loop) | Return(loop) | Again(loop) | AskPerson(loop):
            return f"{what}, limit {loop.value}"
        case _:
            return what


def _next_task(what: str, at: Step | None) -> str:
    beside = f"; of tasks side by side first {step_words(Step.INTEGRATE)}" if at is Step.IMPLEMENT else ""
    return f"{what}, after the last {step_words(Step.FINAL_REVIEW)}{beside}"


def limit_words(loop: Loop) -> str:
    """Return a bound's number with its scope: `3 reviews per plan revision`, `2 per run`."""
    bound = BOUNDS[loop]
    if bound.limit is None:
        return "unbounded: each turn costs a person's act"
    extra = f", and {DISPATCHES_PER_TASK} more per task of the present split" if loop is Loop.DISPATCHES else ""
    return f"{bound.limit}{' reviews' if bound.reviews else ''} per {bound.scope}{extra}"


def exhausted_words(bound: Bound) -> str:
    """Return what follows when a limit is reached, role by role if that differs."""
    if bound.limit is None:
        return "never"
    by_words: dict[str, list[str]] = {}
    for role, action in bound.by_role.items():
        by_words.setdefault(_then(action), []).append(role.value)
    roles = [f"{', '.join(sorted(names))}: {words}" for words, names in by_words.items()]
    default = _then(bound.exhausted) + (", blockers on record" if bound.reviews else "")
    return "; ".join([*roles, f"others: {default}"]) if roles else default


def _then(action: Action) -> str:
    match action:
        case Goto(to, ask):
            return step_words(to) + _asked(ask)
        case Retry(to, loop, ask):
            return f"{step_words(to)} by {loop.value}{_asked(ask)}"
        case Stop(outcome, reason):
            return _stop(outcome, reason)
        case NextTask():
            return "the next task"
        case LeaveOut():
            return "left out"
        case Return() | Again() | AskPerson() | Forward():
            return action_words(action)
        case _:
            assert_never(action)


def _way(at: Step | None, to: Step) -> str:
    if at is to:
        return f"{step_words(to)} again"
    backwards = at is not None and _ORDER.index(to) < _ORDER.index(at)
    return f"{'back ' if backwards else ''}to {step_words(to)}"


def _asked(ask: Question | None) -> str:
    return f", question {ask.value}" if ask else ""


def _stop(outcome: Outcome, reason: Reason | None) -> str:
    return f"{outcome.value} ({reason.value})" if reason else outcome.value
