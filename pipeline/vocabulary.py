"""Defines the words of an issue's run: steps, roles, signals, loops. Closed enums, no I/O.

Spelling follows the founding document where that has a word; the steps inside its phases are ours.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Step(StrEnum):
    """One batch of dispatches, one measurement, one signal."""

    SANITY = "sanity"
    ISSUE = "issue"
    PLAN = "plan"
    REVIEW_PLAN = "review-plan"
    SPLIT = "split"
    REVIEW_SPLIT = "review-split"
    STUB = "stub"
    WRITE_TESTS = "write-tests"
    CHECK_TESTS = "check-tests"
    SEAM = "seam"
    BUILD = "build"
    IMPLEMENT = "implement"
    DIAGNOSE = "diagnose"
    INTEGRATE = "integrate"
    FINAL_REVIEW = "final-review"
    PUBLISH = "publish"
    FAILURE = "failure"
    GATE = "gate"

    @property
    def phase(self) -> str:
        """Return the number of the phase; a gate and the failure handler have none."""
        return _PHASES[self]


_PHASES: Final[dict[Step, str]] = {
    Step.SANITY: "1",
    Step.ISSUE: "2",
    Step.PLAN: "3",
    Step.REVIEW_PLAN: "4",
    Step.SPLIT: "5",
    Step.REVIEW_SPLIT: "5.5",
    Step.STUB: "6",
    Step.WRITE_TESTS: "6",
    Step.CHECK_TESTS: "6",
    Step.SEAM: "6",
    Step.IMPLEMENT: "7",
    Step.BUILD: "6+7",
    Step.DIAGNOSE: "7",
    Step.INTEGRATE: "7",
    Step.FINAL_REVIEW: "8",
    Step.PUBLISH: "9",
    Step.FAILURE: "-",
    Step.GATE: "-",
}


class Role(StrEnum):
    """Who is asked. The orchestrator is code; as a role it drafts plan and split. Only recipes ask @explore."""

    ORCHESTRATOR = "orchestrator"
    CHECK = "check"
    SIMPLIFY = "simplify"
    TEST = "test"
    MAKE = "make"
    PM = "pm"
    EXPLORE = "explore"


ISSUE_ROLES: Final = tuple(role for role in Role if role is not Role.EXPLORE)
"""Who is asked on the way of an issue."""


class Signal(StrEnum):
    """What a step reports after measuring; the only thing that the matrix routes on."""

    OK = "OK"
    PRECONDITION = "PRECONDITION"
    BASELINE_IMPOSSIBLE = "BASELINE_IMPOSSIBLE"

    CLAIMED = "CLAIMED"
    NOT_FOUND = "NOT_FOUND"
    NOT_TODO = "NOT_TODO"
    DEPENDENCY_UNMET = "DEPENDENCY_UNMET"
    DEPENDENCY_MISSING = "DEPENDENCY_MISSING"
    CLAIMED_ELSEWHERE = "CLAIMED_ELSEWHERE"

    DRAFTED = "DRAFTED"
    ONE_TASK = "ONE_TASK"
    NOT_ASKED = "NOT_ASKED"
    HYGIENE = "HYGIENE"
    QUESTION = "QUESTION"

    ACCEPTABLE = "ACCEPTABLE"
    CONVERGED = "CONVERGED"
    NEEDS_WORK = "NEEDS_WORK"
    BLOCK = "BLOCK"

    STUBBED = "STUBBED"
    STUB_DIRTY = "STUB_DIRTY"

    RED = "RED"
    DISPUTED = "DISPUTED"
    NOT_TESTABLE = "NOT_TESTABLE"
    CHANGED_OLD_TEST = "CHANGED_OLD_TEST"
    MISSING_SEAM = "MISSING_SEAM"
    ILLEGAL_RED = "ILLEGAL_RED"
    STRUCTURAL_ONLY = "STRUCTURAL_ONLY"
    RED_UNSTABLE = "RED_UNSTABLE"
    PASSES_ALREADY = "PASSES_ALREADY"
    TESTS_KEPT = "TESTS_KEPT"
    TESTS_DOUBTFUL = "TESTS_DOUBTFUL"
    PROOF_PASSES = "PROOF_PASSES"
    BLOCKED = "BLOCKED"

    SEAM_DONE = "SEAM_DONE"

    GREEN = "GREEN"
    GREEN_INCOMPLETE = "GREEN_INCOMPLETE"
    NEEDS_FILE = "NEEDS_FILE"
    ENTRY_FLAG = "ENTRY_FLAG"
    REGRESSION = "REGRESSION"
    HIDDEN_REGRESSION = "HIDDEN_REGRESSION"
    NO_CHANGE = "NO_CHANGE"
    NOT_GREEN = "NOT_GREEN"
    INCOMPLETE = "INCOMPLETE"
    CANNOT_PROCEED = "CANNOT_PROCEED"
    STALE_XFAIL = "STALE_XFAIL"
    GREEN_UNSTABLE = "GREEN_UNSTABLE"
    UNNOTICED_FAULTS = "UNNOTICED_FAULTS"

    ACCEPTED = "ACCEPTED"
    CONFLICT = "CONFLICT"
    TEST_CONFLICT = "TEST_CONFLICT"
    RED_GONE = "RED_GONE"

    PRODUCTION_LOGIC = "PRODUCTION_LOGIC"
    TEST_DESIGN = "TEST_DESIGN"
    AMENDED = "AMENDED"
    REFUSED = "REFUSED"
    SPEC = "SPEC"
    SPLIT_NEEDED = "SPLIT_NEEDED"
    PLAN = "PLAN"
    WRONG_REPORT = "WRONG_REPORT"
    ALREADY_DONE = "ALREADY_DONE"
    ENVIRONMENT = "ENVIRONMENT"

    FIX = "FIX"
    PROVED = "PROVED"
    COSMETIC = "COSMETIC"
    WRITTEN = "WRITTEN"
    NOT_WRITTEN = "NOT_WRITTEN"

    PUBLISHED = "PUBLISHED"
    BRANCH_MOVED = "BRANCH_MOVED"
    TIP_MOVED = "TIP_MOVED"
    WORKTREE_CHANGED = "WORKTREE_CHANGED"
    SIGNING_FAILED = "SIGNING_FAILED"

    HANDLED = "HANDLED"
    HANDLER_FAILED = "HANDLER_FAILED"

    MALFORMED = "MALFORMED"
    VIOLATION = "VIOLATION"
    TIMED_OUT = "TIMED_OUT"
    UNAVAILABLE = "UNAVAILABLE"
    BUDGET = "BUDGET"
    ESCAPE = "ESCAPE"
    CANCELLED = "CANCELLED"

    ENV_BROKEN = "ENV_BROKEN"

    APPROVED = "APPROVED"
    REJECTED_TO_PLAN = "REJECTED_TO_PLAN"
    REJECTED_TO_SPLIT = "REJECTED_TO_SPLIT"
    REJECTED_TO_FIX = "REJECTED_TO_FIX"


MEASURED_GREEN: Final = frozenset({Signal.GREEN, Signal.GREEN_INCOMPLETE})
"""The candidate was measured, and it is GREEN; whether @make calls it complete or not."""


class Loop(StrEnum):
    """What counts a way back. Limits and scopes are in `matrix.BOUNDS`."""

    PLAN_REVIEW = "plan_review"
    SPLIT_REVIEW = "split_review"
    FINAL_REVIEW = "final_review"
    HYGIENE = "hygiene"
    PLAN_REWORK = "plan_rework"
    SPLIT_REWORK = "split_rework"
    STUB_RETRY = "stub_retry"
    TEST_REWRITE = "test_rewrite"
    TEST_DIAGNOSIS = "test_diagnosis"
    TEST_DESIGN = "test_design"
    MAKE_RETRY = "make_retry"
    SCOPE_AMEND = "scope_amend"
    SEAM = "seam"
    UNNOTICED_FAULTS = "unnoticed_faults"
    BUILD = "build"
    TASK_REDO = "task_redo"
    COSMETIC = "cosmetic"
    OWN_STEPS = "own_steps"
    TIP_MOVED = "tip_moved"
    REASK = "reask"
    UNUSABLE = "unusable"
    QUESTIONS = "questions"
    DISPATCHES = "dispatches"
    HUMAN = "human"


class Question(StrEnum):
    """What a `judge` dispatch of @check is asked."""

    TESTS = "tests"
    NOT_TESTABLE = "not_testable"
    DIAGNOSE = "diagnose"
    AMEND = "amend"
