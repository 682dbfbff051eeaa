"""Tells what happens in each step, and what agents do wrong there, for somebody who sees a run first. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.routing.actions import Forward, Goto, NextTask, Retry, Stop
from pipeline.routing.matrix import MATRIX
from pipeline.routing.vocabulary import Signal, Step

if TYPE_CHECKING:
    from collections.abc import Mapping


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
