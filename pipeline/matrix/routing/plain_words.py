"""Words for what the matrix has: actions and bounds, phases and steps, and what agents do wrong there. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from pipeline.matrix.routing.actions import Again, AskPerson, Forward, Goto, LeaveOut, NextTask, Retry, Return, Stop
from pipeline.matrix.routing.matrix import BOUNDS, DISPATCHES_PER_TASK, MATRIX, Bound
from pipeline.vocabulary import Loop, Question, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.matrix.routing.actions import Action
    from pipeline.outcomes import Outcome, Reason


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
    what = limited_words(action, at)
    if not isinstance(action, Retry | Return | Again | AskPerson):
        return what
    bound = BOUNDS[action.loop]
    what = action_words(action, at)
    if bound.limit is None:
        return f"{what}, as often as a person asks"
    return f"{what}, at most {limit_words(action.loop)}, then {exhausted_words(bound)}"


def limited_words(action: Action, at: Step | None = None) -> str:
    """Return the action with the name of its limit: `back to PLAN (3), limit plan_rework`."""
    what = action_words(action, at)
    match action:
        case NextTask():
            beside = f"; of tasks side by side first {step_words(Step.INTEGRATE)}" if at is Step.IMPLEMENT else ""
            return f"{what}, after the last {step_words(Step.FINAL_REVIEW)}{beside}"
        case Retry(_, loop) | Return(loop) | Again(loop) | AskPerson(loop):
            return f"{what}, limit {loop.value}"
        case _:
            return what


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


@dataclass(frozen=True)
class Phase:
    """A phase of the way of an issue: its number, its steps, and its name, which is that of the step it is for."""

    number: str
    name: str
    steps: tuple[Step, ...]

    @property
    def words(self) -> str:
        """Return number and name: `7 Implement`."""
        return f"{self.number} {self.name}"


PHASES: Final = (
    Phase("1", "Sanity", (Step.SANITY,)),
    Phase("2", "Issue", (Step.ISSUE,)),
    Phase("3", "Plan", (Step.PLAN,)),
    Phase("4", "Review plan", (Step.REVIEW_PLAN,)),
    Phase("5", "Split", (Step.SPLIT,)),
    Phase("5.5", "Review split", (Step.REVIEW_SPLIT,)),
    Phase("6", "Write tests", (Step.STUB, Step.WRITE_TESTS, Step.CHECK_TESTS, Step.SEAM)),
    Phase("7", "Implement", (Step.IMPLEMENT, Step.BUILD, Step.DIAGNOSE, Step.INTEGRATE)),
    Phase("8", "Final review", (Step.FINAL_REVIEW,)),
    Phase("9", "Publish", (Step.PUBLISH,)),
)
"""The phases in their order; a gate and the failure handler belong to none."""

TOLD: Final[Mapping[Step, str]] = {
    Step.SANITY: "All tests are run once, before any agent is asked: what passes now must pass at the end.",
    Step.ISSUE: "The issue is claimed, so that no other run takes it, and set to In Progress.",
    Step.PLAN: "An agent drafts the plan: which files change, why, and what the tests must show.",
    Step.REVIEW_PLAN: "Two other agents review the plan, before there is any code: is it right, and is it simple?",
    Step.SPLIT: "The plan is cut into tasks. Each has its own files, criteria and tests.",
    Step.REVIEW_SPLIT: "A reviewer looks at the tasks: do they cover the plan, and does each do one thing?",
    Step.STUB: "Empty functions are put in place, so that the new tests can call them and fail for the right reason.",
    Step.WRITE_TESTS: (
        "An agent writes tests for the task. They are run over the old code, twice, and each must fail there (RED). "
        "The reason must be that the behaviour is missing, and no mistake in the test. Where tests are all that is "
        "wanted, they must pass, and fail over small faults that are put into the code."
    ),
    Step.CHECK_TESTS: "Something about the tests was unusual, so a reviewer judges them before any code is written.",
    Step.SEAM: "The code offers no place where the behaviour can be tested; one is added first.",
    Step.IMPLEMENT: (
        "An agent writes the code. The tests are frozen and run by redfirst itself: those of the task must pass now, "
        "and so must all that passed before (GREEN)."
    ),
    Step.BUILD: (
        "An agent writes tests and code in one go. redfirst parts them. Over the old code each new test must fail "
        "(RED), because the behaviour is missing. With the new code all must pass (GREEN)."
    ),
    Step.DIAGNOSE: "It did not work out. A reviewer says what is at fault: the code, the tests, the task or the plan.",
    Step.INTEGRATE: "Tasks were worked on side by side; this one is put over the others, and measured again.",
    Step.FINAL_REVIEW: "The whole result is reviewed. Each thing to fix becomes a task of its own, tests first.",
    Step.PUBLISH: "Everything is measured once more, and the commits are put on the branch, all at once.",
    Step.FAILURE: "The goal cannot be reached: the issue goes back to Todo and says why; the work stays as a patch.",
    Step.GATE: "You asked to be asked here. Nothing goes on before you have answered.",
}
"""What happens in a step."""

WRONG: Final[Mapping[Signal, str]] = {
    Signal.HYGIENE: "wrote a draft that names what is not there, or leaves something out",
    Signal.STUB_DIRTY: "put more than empty functions in place",
    Signal.ILLEGAL_RED: "wrote no test, or one that fails because of a mistake in it",
    Signal.STRUCTURAL_ONLY: "wrote tests that never reach the behaviour",
    Signal.RED_UNSTABLE: "wrote tests that fail the one time and not the other",
    Signal.PASSES_ALREADY: "wrote tests that pass on the old code already",
    Signal.NOT_GREEN: "said that the code is done, but tests of the task fail",
    Signal.REGRESSION: "broke a test that passed before",
    Signal.HIDDEN_REGRESSION: "broke what an old test held, and the test was changed to fit",
    Signal.NO_CHANGE: "changed nothing",
    Signal.INCOMPLETE: "came to no end of it",
    Signal.GREEN_UNSTABLE: "left tests that pass the one time and not the other",
    Signal.UNNOTICED_FAULTS: "left tests that notice no fault which is put into the code",
    Signal.MALFORMED: "gave no answer that can be read",
    Signal.VIOLATION: "changed what it may not change; that was put back",
    Signal.TIMED_OUT: "did not end in time",
    Signal.ESCAPE: "changed refs, configuration or hooks of git",
}
"""What an agent did wrong, behind its name."""

GATE_BEHIND: Final[Mapping[str, str]] = {"plan": "4", "split": "5.5", "commit": "8"}
"""The phase that each gate stands behind."""


def phase_with(step: Step) -> Phase | None:
    """Return the phase that a step belongs to."""
    return next((phase for phase in PHASES if step in phase.steps), None)


def usual_next(step: Step) -> str:
    """Return what follows a step where all goes well: its first row, in words."""
    action = next(row.action for row in MATRIX if row.step is step)
    match action:
        case Goto(to) | Retry(to):
            phase = phase_with(to)
            return phase.words if phase is not None else to.value
        case NextTask():
            return "the next task, after the last one the final review"
        case Forward():
            return "on from where it waits"
        case Stop():
            return "the run is over"
        case _:
            return "back to who asked"
