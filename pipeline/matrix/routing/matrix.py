"""Holds the routing matrix and its bounds: every rule about what follows what, as two values.

Theory of operation. A *step* is one batch of dispatches, one measurement, one signal (matrix 1). A row names what
follows. Rows that go back are *paid*: they name a loop, and the loop's limit (`BOUNDS`) is finite within its scope, so
that every cycle of steps costs something that runs out. What happens when a limit is reached is the second half of the
bound, not a row, so the number and its consequence cannot drift apart. Tests prove totality, that the graph of unpaid
edges has no cycle, and that each step has an exit; `render` prints the same values into DESIGN.md.

Nothing here performs I/O. Everything that affects routing lives in this file, in `lookup`, `state_changes` and `advance`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.matrix.routing.actions import (
    Again,
    AskPerson,
    Forward,
    Given,
    Goto,
    LeaveOut,
    NextTask,
    Retry,
    Return,
    Row,
    Stop,
)
from pipeline.outcomes import Outcome, Reason
from pipeline.vocabulary import Loop, Question, Role, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.matrix.routing.actions import Action

P, S, L, Q = Step, Signal, Loop, Question
DIAGNOSE: Final = Goto(P.DIAGNOSE, Q.DIAGNOSE)
AMEND: Final = Goto(P.DIAGNOSE, Q.AMEND)
SIGN_OFF: Final = Goto(P.CHECK_TESTS, Q.NOT_TESTABLE)
JUDGE_TESTS: Final = Goto(P.CHECK_TESTS, Q.TESTS)


def _parked(reason: Reason) -> Stop:
    return Stop(Outcome.PARKED, reason)


def _rejected(reason: Reason | None = None) -> Stop:
    return Stop(Outcome.REJECTED, reason)


# fmt: off
MATRIX: Final[tuple[Row, ...]] = (
    Row(P.SANITY, S.OK, Goto(P.ISSUE), "harness", "all preconditions hold; the baseline is measured"),
    Row(P.SANITY, S.PRECONDITION, _rejected(), "harness", "bare repository, detached HEAD, branch is base, dirty tree ..."),
    Row(P.SANITY, S.BASELINE_IMPOSSIBLE, _rejected(Reason.BASELINE_IMPOSSIBLE), "harness", "the tests cannot be run at all"),

    Row(P.ISSUE, S.CLAIMED, Goto(P.PLAN), "@pm", "the issue was Todo; it is claimed, and a plan is wanted"),
    Row(P.ISSUE, S.CLAIMED, NextTask(), "@pm", "the issue was Todo; it is claimed, and one writer makes tests and code of it", Given.ONE_WRITER),
    Row(P.ISSUE, S.NOT_FOUND, _rejected(Reason.ISSUE_NOT_FOUND), "@pm", "no such issue"),
    Row(P.ISSUE, S.NOT_TODO, _rejected(Reason.ISSUE_NOT_TODO), "@pm", "status is not Todo"),
    Row(P.ISSUE, S.DEPENDENCY_UNMET, _rejected(Reason.DEPENDENCY_UNMET), "@pm", "an issue that it depends on is not Done"),
    Row(P.ISSUE, S.DEPENDENCY_MISSING, _rejected(Reason.DEPENDENCY_MISSING), "@pm", "an issue that it depends on does not exist"),
    Row(P.ISSUE, S.CLAIMED_ELSEWHERE, _rejected(Reason.CLAIMED_ELSEWHERE), "@pm", "another run holds the claim"),

    Row(P.PLAN, S.DRAFTED, Goto(P.REVIEW_PLAN), "orchestrator", "plan.md written"),
    Row(P.PLAN, S.HYGIENE, Retry(P.PLAN, L.HYGIENE), "harness", "the draft broke rules that a program checks: it is drafted again, with the list"),
    Row(P.PLAN, S.BASELINE_IMPOSSIBLE, Goto(P.FAILURE), "harness", "tests that it names cannot be loaded as they are"),
    Row(P.PLAN, S.QUESTION, AskPerson(L.QUESTIONS), "orchestrator", "a person is asked, where `[gates] questions` allows it"),

    Row(P.REVIEW_PLAN, S.ACCEPTABLE, Goto(P.SPLIT), "@check, @simplify", "nothing must be fixed"),
    Row(P.REVIEW_PLAN, S.CONVERGED, Goto(P.SPLIT), "@check, @simplify", "same findings twice: the reviews ended, blockers on record"),
    Row(P.REVIEW_PLAN, S.NEEDS_WORK, Retry(P.PLAN, L.PLAN_REVIEW), "@check, @simplify", "the plan needs work: it is revised and reviewed again"),
    Row(P.REVIEW_PLAN, S.BLOCK, Retry(P.PLAN, L.PLAN_REVIEW), "@check", "a finding blocks the plan: it is revised and reviewed again"),
    Row(P.REVIEW_PLAN, S.NOT_ASKED, Goto(P.SPLIT), "recipe", "the recipe asks nobody about the plan"),

    Row(P.SPLIT, S.DRAFTED, Goto(P.REVIEW_SPLIT), "orchestrator", "task files written"),
    Row(P.SPLIT, S.DRAFTED, NextTask(), "orchestrator", "fix tasks need no split review", Given.FIX_TASKS),
    Row(P.SPLIT, S.PROVED, NextTask(), "harness", "each fix task is the test that proves its finding: nobody drafts any"),
    Row(P.SPLIT, S.ONE_TASK, NextTask(), "harness", "the plan came with its task or tasks, reviewed with it"),
    Row(P.SPLIT, S.NOT_ASKED, NextTask(), "recipe", "the recipe has no split of its own: the plan came with its tasks"),
    Row(P.SPLIT, S.HYGIENE, Retry(P.SPLIT, L.HYGIENE), "harness", "the draft broke rules that a program checks: it is drafted again, with the list"),
    Row(P.SPLIT, S.BASELINE_IMPOSSIBLE, Goto(P.FAILURE), "harness", "tests that it names cannot be loaded as they are"),
    Row(P.SPLIT, S.QUESTION, AskPerson(L.QUESTIONS), "orchestrator", "a person is asked, where `[gates] questions` allows it"),

    Row(P.REVIEW_SPLIT, S.ACCEPTABLE, NextTask(), "@check", "nothing must be fixed"),
    Row(P.REVIEW_SPLIT, S.CONVERGED, NextTask(), "@check", "same findings twice: the reviews ended, blockers on record"),
    Row(P.REVIEW_SPLIT, S.NEEDS_WORK, Retry(P.SPLIT, L.SPLIT_REVIEW), "@check", "the split needs work: it is revised and reviewed again"),
    Row(P.REVIEW_SPLIT, S.BLOCK, Retry(P.PLAN, L.PLAN_REWORK), "@check", "the plan does not decompose: back to the plan"),
    Row(P.REVIEW_SPLIT, S.NOT_ASKED, NextTask(), "recipe", "the recipe asks nobody about the split"),

    Row(P.STUB, S.STUBBED, Goto(P.WRITE_TESTS), "@make", "stubs type-check"),
    Row(P.STUB, S.STUB_DIRTY, Retry(P.STUB, L.STUB_RETRY), "harness", "a body is more than the stub"),
    Row(P.STUB, S.NEEDS_FILE, AMEND, "@make", "asks for one more file"),
    Row(P.STUB, S.INCOMPLETE, DIAGNOSE, "@make", "stubs not finished"),
    Row(P.STUB, S.CANNOT_PROCEED, DIAGNOSE, "@make", "something is missing"),

    Row(P.WRITE_TESTS, S.RED, Goto(P.IMPLEMENT), "harness", "RED measured, each for a legal reason"),
    Row(P.WRITE_TESTS, S.DISPUTED, JUDGE_TESTS, "@test", "@test asks @check to look at the tests, or takes another's as its own"),
    Row(P.WRITE_TESTS, S.TESTS_KEPT, Goto(P.IMPLEMENT), "harness", "all it adds is tests: they pass over the code as it is, and notice faults put into it"),
    Row(P.WRITE_TESTS, S.TESTS_DOUBTFUL, JUDGE_TESTS, "harness", "they pass there, and one of them notices no fault, or none could be tried"),
    Row(P.WRITE_TESTS, S.UNNOTICED_FAULTS, Retry(P.WRITE_TESTS, L.TEST_REWRITE), "harness", "they pass there, and none of them notices any fault"),
    Row(P.WRITE_TESTS, S.NOT_TESTABLE, SIGN_OFF, "@test", "no test is possible, says @test: @check signs it off or does not"),
    Row(P.WRITE_TESTS, S.CHANGED_OLD_TEST, JUDGE_TESTS, "harness", "a test that existed was changed"),
    Row(P.WRITE_TESTS, S.MISSING_SEAM, Retry(P.SEAM, L.SEAM), "@test", "a test needs a seam: @make adds it, then @test again"),
    Row(P.WRITE_TESTS, S.ILLEGAL_RED, Retry(P.WRITE_TESTS, L.TEST_REWRITE), "harness", "no test was changed, or one of them shows no RED that counts"),
    Row(P.WRITE_TESTS, S.STRUCTURAL_ONLY, Retry(P.WRITE_TESTS, L.TEST_REWRITE), "harness", "tests never reach the behaviour"),
    Row(P.WRITE_TESTS, S.RED_UNSTABLE, Retry(P.WRITE_TESTS, L.TEST_REWRITE), "harness", "two runs disagree"),
    Row(P.WRITE_TESTS, S.PASSES_ALREADY, DIAGNOSE, "harness", "every new test passes already"),
    Row(P.WRITE_TESTS, S.PROOF_PASSES, NextTask(), "harness", "the test that proves the finding passes since another fix: nothing is left to do"),
    Row(P.WRITE_TESTS, S.NEEDS_FILE, AMEND, "@test", "asks for one more file"),
    Row(P.WRITE_TESTS, S.BLOCKED, DIAGNOSE, "@test", "cannot write the tests"),

    Row(P.CHECK_TESTS, S.ACCEPTABLE, Goto(P.IMPLEMENT), "@check", "the tests are accepted, or that there are none"),
    Row(P.CHECK_TESTS, S.ACCEPTABLE, NextTask(), "@check", "that there are no tests is accepted, and nothing is broken", Given.FROM_BUILD),
    Row(P.CHECK_TESTS, S.NEEDS_WORK, Retry(P.WRITE_TESTS, L.TEST_REWRITE), "@check", "the tests need work: @test mends them, then forward"),
    Row(P.CHECK_TESTS, S.NEEDS_WORK, Retry(P.BUILD, L.BUILD), "@check", "tests are possible", Given.FROM_BUILD),

    Row(P.SEAM, S.SEAM_DONE, Goto(P.WRITE_TESTS), "harness", "seam added, regression holds"),
    Row(P.SEAM, S.REGRESSION, SIGN_OFF, "harness", "the seam breaks a test"),
    Row(P.SEAM, S.NO_CHANGE, SIGN_OFF, "harness", "no seam was added"),
    Row(P.SEAM, S.INCOMPLETE, SIGN_OFF, "@make", "seam not finished"),
    Row(P.SEAM, S.CANNOT_PROCEED, SIGN_OFF, "@make", "something is missing"),
    Row(P.SEAM, S.NEEDS_FILE, AMEND, "@make", "asks for one more file"),

    Row(P.BUILD, S.GREEN, NextTask(), "harness", "its tests are RED over the code before, all is GREEN with its code"),
    Row(P.BUILD, S.GREEN_INCOMPLETE, NextTask(), "@make", "the same, and @make says what is missing: the final review is told"),
    Row(P.BUILD, S.ILLEGAL_RED, Retry(P.BUILD, L.BUILD), "harness", "there is no test, or one of them shows no RED that counts over the code before"),
    Row(P.BUILD, S.PASSES_ALREADY, Retry(P.BUILD, L.BUILD), "harness", "every new test passes over the code before"),
    Row(P.BUILD, S.STRUCTURAL_ONLY, Retry(P.BUILD, L.BUILD), "harness", "tests never reach the behaviour"),
    Row(P.BUILD, S.RED_UNSTABLE, Retry(P.BUILD, L.BUILD), "harness", "two runs over the code before disagree"),
    Row(P.BUILD, S.NOT_GREEN, Retry(P.BUILD, L.BUILD), "harness", "its tests do not pass with its code, or an old one cannot be run"),
    Row(P.BUILD, S.REGRESSION, Retry(P.BUILD, L.BUILD), "harness", "a test that passed fails now (2 of 2)"),
    Row(P.BUILD, S.HIDDEN_REGRESSION, Retry(P.BUILD, L.BUILD), "harness", "an old test passes as it is now, fails as it was (2 of 2), and is not in its `tests_to_change`"),
    Row(P.BUILD, S.GREEN_UNSTABLE, Retry(P.BUILD, L.BUILD), "harness", "runs of the same bytes disagree"),
    Row(P.BUILD, S.UNNOTICED_FAULTS, Retry(P.BUILD, L.UNNOTICED_FAULTS), "harness", "GREEN, and no test notices any fault put into a changed function"),
    Row(P.BUILD, S.NO_CHANGE, Retry(P.BUILD, L.BUILD), "harness", "nothing was changed"),
    Row(P.BUILD, S.INCOMPLETE, Retry(P.BUILD, L.BUILD), "@make", "it came to no end of it"),
    Row(P.BUILD, S.NOT_TESTABLE, SIGN_OFF, "@make", "no test is possible, says @make, and nothing is broken: @check signs it off or does not"),

    Row(P.IMPLEMENT, S.GREEN, NextTask(), "harness", "GREEN measured, nothing else broke"),
    Row(P.IMPLEMENT, S.GREEN_INCOMPLETE, NextTask(), "@make", "GREEN measured, and @make says what is missing: the final review is told"),
    Row(P.IMPLEMENT, S.NEEDS_FILE, AMEND, "@make", "asks for one more file"),
    Row(P.IMPLEMENT, S.ENTRY_FLAG, DIAGNOSE, "@make", "doubts the tests at entry"),
    Row(P.IMPLEMENT, S.TEST_DESIGN, DIAGNOSE, "@make", "escalate: test_design"),
    Row(P.IMPLEMENT, S.SPLIT_NEEDED, DIAGNOSE, "@make", "escalate: split_needed"),
    Row(P.IMPLEMENT, S.REGRESSION, DIAGNOSE, "harness", "a test that passed fails now (2 of 2)"),
    Row(P.IMPLEMENT, S.HIDDEN_REGRESSION, DIAGNOSE, "harness", "an old test passes as it is now, and fails as it was (2 of 2): it was changed to fit"),
    Row(P.IMPLEMENT, S.NO_CHANGE, DIAGNOSE, "harness", "nothing was changed"),
    Row(P.IMPLEMENT, S.NOT_GREEN, DIAGNOSE, "harness", "claimed complete, measured not GREEN"),
    Row(P.IMPLEMENT, S.INCOMPLETE, DIAGNOSE, "@make", "implementation incomplete, no flag"),
    Row(P.IMPLEMENT, S.CANNOT_PROCEED, DIAGNOSE, "@make", "something is missing"),
    Row(P.IMPLEMENT, S.STALE_XFAIL, Retry(P.WRITE_TESTS, L.TEST_REWRITE), "harness", "a strict xfail passes now: @test updates it"),
    Row(P.IMPLEMENT, S.GREEN_UNSTABLE, DIAGNOSE, "harness", "runs of the same bytes disagree: on the task's own tests, or on what passed each time before"),
    Row(P.IMPLEMENT, S.UNNOTICED_FAULTS, Retry(P.WRITE_TESTS, L.UNNOTICED_FAULTS), "harness", "GREEN, and no test notices any fault put into a changed function"),

    Row(P.DIAGNOSE, S.PRODUCTION_LOGIC, Retry(P.IMPLEMENT, L.MAKE_RETRY), "@check", "@make once more, with the notes"),
    Row(P.DIAGNOSE, S.PRODUCTION_LOGIC, Retry(P.WRITE_TESTS, L.TEST_REWRITE), "@check", "no RED yet: @test again", Given.FROM_WRITE_TESTS),
    Row(P.DIAGNOSE, S.PRODUCTION_LOGIC, Retry(P.STUB, L.STUB_RETRY), "@check", "the stub pass again", Given.FROM_STUB),
    Row(P.DIAGNOSE, S.PRODUCTION_LOGIC, Retry(P.SEAM, L.SEAM), "@check", "the seam again", Given.FROM_SEAM),
    Row(P.DIAGNOSE, S.PRODUCTION_LOGIC, Retry(P.BUILD, L.TEST_DESIGN), "@check", "tests and code once more, with the notes", Given.FROM_BUILD),
    Row(P.DIAGNOSE, S.TEST_DESIGN, Retry(P.WRITE_TESTS, L.TEST_DESIGN), "@check", "@test redesigns, fresh RED, fresh @make"),
    Row(P.DIAGNOSE, S.TEST_DESIGN, Retry(P.BUILD, L.TEST_DESIGN), "@check", "the same: its tests are wrong", Given.FROM_BUILD),
    Row(P.DIAGNOSE, S.WRONG_REPORT, Retry(P.WRITE_TESTS, L.TEST_DESIGN), "@check", "the tests are right, what @test reports of them is not: its report again"),
    Row(P.DIAGNOSE, S.AMENDED, Return(L.SCOPE_AMEND), "@check", "the file is added to the task; the asker continues"),
    Row(P.DIAGNOSE, S.REFUSED, Return(L.MAKE_RETRY), "@check", "refused: the asker continues with the note"),
    Row(P.DIAGNOSE, S.SPEC, Retry(P.SPLIT, L.SPLIT_REWORK), "@check", "the task is wrong: split again"),
    Row(P.DIAGNOSE, S.SPEC, Retry(P.PLAN, L.PLAN_REWORK), "@check", "the issue is not one task as it stands: it is planned", Given.FROM_BUILD),
    Row(P.DIAGNOSE, S.SPLIT_NEEDED, Retry(P.SPLIT, L.SPLIT_REWORK), "@check", "the task is too large: split again"),
    Row(P.DIAGNOSE, S.SPLIT_NEEDED, Retry(P.PLAN, L.PLAN_REWORK), "@check", "the issue is too large for one sitting: it is planned", Given.FROM_BUILD),
    Row(P.DIAGNOSE, S.PLAN, Retry(P.PLAN, L.PLAN_REWORK), "@check", "the plan is wrong: back to the plan"),
    Row(P.DIAGNOSE, S.TESTS_KEPT, Goto(P.IMPLEMENT), "@check", "the behaviour exists, and its tests notice faults put into it: they are kept"),
    Row(P.DIAGNOSE, S.ALREADY_DONE, NextTask(), "@check", "the behaviour exists: its tests are dropped, and named at the end"),
    Row(P.DIAGNOSE, S.QUESTION, AskPerson(L.QUESTIONS), "@check", "a person is asked, where `[gates] questions` allows it"),
    Row(P.DIAGNOSE, S.ENVIRONMENT, _parked(Reason.ENVIRONMENT), "@check", "the environment is at fault"),

    Row(P.INTEGRATE, S.ACCEPTED, NextTask(), "harness", "GREEN together with all that was accepted before it"),
    Row(P.INTEGRATE, S.CONFLICT, Retry(P.IMPLEMENT, L.TASK_REDO), "harness", "a task that was accepted meanwhile changed one of its files"),
    Row(P.INTEGRATE, S.TEST_CONFLICT, Retry(P.WRITE_TESTS, L.TASK_REDO), "harness", "a task that was accepted meanwhile changed a file of its tests, or one beside them"),
    Row(P.INTEGRATE, S.NOT_GREEN, Retry(P.IMPLEMENT, L.TASK_REDO), "harness", "not GREEN over what was accepted meanwhile"),
    Row(P.INTEGRATE, S.REGRESSION, Retry(P.IMPLEMENT, L.TASK_REDO), "harness", "a test that passes over what was accepted meanwhile fails with it"),
    Row(P.INTEGRATE, S.HIDDEN_REGRESSION, DIAGNOSE, "harness", "an old test fails as it is over what was accepted meanwhile (2 of 2): it was changed to fit"),
    Row(P.INTEGRATE, S.RED_GONE, DIAGNOSE, "harness", "its tests are not RED over what was accepted meanwhile"),

    Row(P.FINAL_REVIEW, S.ACCEPTABLE, Goto(P.PUBLISH), "@check, @simplify", "nothing must be fixed"),
    Row(P.FINAL_REVIEW, S.CONVERGED, Goto(P.PUBLISH), "@check, @simplify", "same findings twice: the reviews ended, blockers on record"),
    Row(P.FINAL_REVIEW, S.FIX, Retry(P.SPLIT, L.FINAL_REVIEW), "@check", "production and test findings become fix tasks"),
    Row(P.FINAL_REVIEW, S.PROVED, Retry(P.SPLIT, L.FINAL_REVIEW), "harness", "all that must be fixed is proved by tests that fail: these are the fix tasks"),
    Row(P.FINAL_REVIEW, S.FIX, Retry(P.BUILD, L.FINAL_REVIEW), "@check", "the writer mends what was found, tests and code", Given.ONE_WRITER),
    Row(P.FINAL_REVIEW, S.PROVED, Retry(P.BUILD, L.FINAL_REVIEW), "harness", "all that must be fixed is proved: the writer mends it, tests and code", Given.ONE_WRITER),
    Row(P.FINAL_REVIEW, S.COSMETIC, Retry(P.FINAL_REVIEW, L.COSMETIC), "@check", "our code applies an edit that keeps the syntax tree"),
    Row(P.FINAL_REVIEW, S.PLAN, Retry(P.PLAN, L.PLAN_REWORK), "@check", "a plan or split finding: back to the plan"),
    Row(P.FINAL_REVIEW, S.WRITTEN, Retry(P.FINAL_REVIEW, L.OWN_STEPS), "@make", "a step of the recipe's own has written: the next one, then the review"),
    Row(P.FINAL_REVIEW, S.NOT_WRITTEN, _parked(Reason.AGENT_UNUSABLE), "@make", "a step of the recipe's own came to nothing, or breaks a test"),

    Row(P.PUBLISH, S.PUBLISHED, Stop(Outcome.COMPLETED, Reason.DONE), "@pm", "code, tracker and follow-ups committed; issue Done"),
    Row(P.PUBLISH, S.PUBLISHED, Stop(Outcome.COMPLETED_WITH_BLOCKERS, Reason.BLOCKERS), "@pm", "the same; blockers filed", Given.BLOCKERS),
    Row(P.PUBLISH, S.PUBLISHED, Stop(Outcome.COMPLETED, Reason.NOTHING_TO_DO), "@pm", "tracker only", Given.NOTHING_CHANGED),
    Row(P.PUBLISH, S.REGRESSION, _parked(Reason.REGRESSION), "harness", "a test that passed does not pass over the result: published never"),
    Row(P.PUBLISH, S.BRANCH_MOVED, _parked(Reason.BRANCH_MOVED), "harness", "the result does not go on the branch as it is now: files meet, or what is claimed does not hold there"),
    Row(P.PUBLISH, S.TIP_MOVED, Retry(P.PUBLISH, L.TIP_MOVED), "harness", "the branch moved between the look at its tip and the publication: look again"),
    Row(P.PUBLISH, S.WORKTREE_CHANGED, _parked(Reason.WORKTREE_CHANGED), "harness", "the user edited a file that the run touches"),
    Row(P.PUBLISH, S.SIGNING_FAILED, _parked(Reason.SIGNING), "harness", "the commit could not be signed"),

    Row(P.FAILURE, S.HANDLED, Stop(Outcome.FAILED), "@pm", "issue back to Todo with a comment; the work is kept"),
    Row(P.FAILURE, S.HANDLER_FAILED, Stop(Outcome.FAILED, Reason.CLEANUP_NEEDED), "@pm", "what is left to clean up is listed"),

    Row(P.GATE, S.APPROVED, Forward(), "a person", "it is approved"),
    Row(P.GATE, S.REJECTED_TO_PLAN, Retry(P.PLAN, L.HUMAN), "a person", "back to the plan with the feedback"),
    Row(P.GATE, S.REJECTED_TO_SPLIT, Retry(P.SPLIT, L.HUMAN), "a person", "back to the split with the feedback"),
    Row(P.GATE, S.REJECTED_TO_FIX, Retry(P.SPLIT, L.HUMAN), "a person", "the feedback becomes fix tasks"),
    Row(P.GATE, S.REJECTED_TO_FIX, Retry(P.BUILD, L.HUMAN), "a person", "the writer mends what the feedback says", Given.ONE_WRITER),

    Row(None, S.MALFORMED, Again(L.REASK), "any dispatch", "no report, or one that breaks its schema"),
    Row(None, S.VIOLATION, Again(L.REASK), "any dispatch", "a change outside the role's policy: restored, told, asked again"),
    Row(None, S.TIMED_OUT, Again(L.REASK), "any dispatch", "the agent did not end in time"),
    Row(None, S.UNAVAILABLE, _parked(Reason.AGENT_UNAVAILABLE), "any dispatch", "the agent cannot be reached"),
    Row(None, S.BUDGET, _parked(Reason.BUDGET), "any dispatch", "the budget is used up"),
    Row(None, S.ESCAPE, Goto(P.FAILURE), "any dispatch, any measurement", "refs, config, hooks or the private checkout changed"),
    Row(None, S.CANCELLED, Stop(Outcome.CANCELLED, Reason.INTERRUPTED), "any dispatch", "the user stopped the run"),
    Row(None, S.ENV_BROKEN, _parked(Reason.ENVIRONMENT), "any measurement, any box", "the test environment or the box does not work"),
)
# fmt: on


@dataclass(frozen=True)
class Bound:
    """A loop's limit: how often its edges may be taken within `scope`, and what happens then.

    `reviews` marks the loops that are configured as a number of reviews (3 reviews = 2 retries; matrix 2).
    `by_role` overrides `exhausted` for some roles. A limit of None is unbounded: each turn costs a person's act.
    """

    limit: int | None
    scope: str
    exhausted: Action
    reviews: bool = False
    by_role: Mapping[Role, Action] = field(default_factory=dict[Role, "Action"])


BOUNDS: Final[dict[Loop, Bound]] = {
    L.PLAN_REVIEW: Bound(3, "plan revision", Goto(P.SPLIT), reviews=True),
    L.SPLIT_REVIEW: Bound(2, "split revision", NextTask(), reviews=True),
    L.FINAL_REVIEW: Bound(3, "plan revision", Goto(P.PUBLISH), reviews=True),
    L.HYGIENE: Bound(2, "draft", Goto(P.FAILURE)),
    L.PLAN_REWORK: Bound(2, "run", Goto(P.FAILURE)),
    L.SPLIT_REWORK: Bound(2, "plan revision", Retry(P.PLAN, L.PLAN_REWORK)),
    L.STUB_RETRY: Bound(2, "task", Retry(P.DIAGNOSE, L.TEST_DIAGNOSIS, Q.DIAGNOSE)),
    L.TEST_REWRITE: Bound(2, "task", Retry(P.DIAGNOSE, L.TEST_DIAGNOSIS, Q.DIAGNOSE)),
    L.TEST_DIAGNOSIS: Bound(1, "task", Retry(P.PLAN, L.PLAN_REWORK)),
    L.TEST_DESIGN: Bound(2, "task", Retry(P.PLAN, L.PLAN_REWORK)),
    L.MAKE_RETRY: Bound(1, "task and red tree", Retry(P.WRITE_TESTS, L.TEST_DESIGN)),
    L.SCOPE_AMEND: Bound(2, "task", Retry(P.SPLIT, L.SPLIT_REWORK)),
    L.SEAM: Bound(1, "task", SIGN_OFF),
    L.UNNOTICED_FAULTS: Bound(1, "task", NextTask()),
    L.BUILD: Bound(2, "task", Retry(P.DIAGNOSE, L.TEST_DIAGNOSIS, Q.DIAGNOSE)),
    L.TASK_REDO: Bound(1, "task", DIAGNOSE),
    L.COSMETIC: Bound(1, "run", Goto(P.PUBLISH)),
    L.OWN_STEPS: Bound(10, "split revision", _parked(Reason.AGENT_UNUSABLE)),
    L.TIP_MOVED: Bound(5, "run", _parked(Reason.BRANCH_MOVED)),
    L.REASK: Bound(
        1,
        "slot",
        _parked(Reason.AGENT_UNUSABLE),
        by_role={Role.MAKE: DIAGNOSE, Role.TEST: DIAGNOSE, Role.SIMPLIFY: LeaveOut()},
    ),
    L.UNUSABLE: Bound(3, "row of a role", _parked(Reason.AGENT_UNUSABLE), by_role={Role.SIMPLIFY: LeaveOut()}),
    L.QUESTIONS: Bound(0, "run", Again(L.REASK)),
    L.DISPATCHES: Bound(30, "run", _parked(Reason.BUDGET)),
    L.HUMAN: Bound(None, "-", Forward()),
}

DISPATCHES_PER_TASK: Final = 10
"""DISPATCHES is 30 plus this for each task of the present split (matrix 2)."""

MAX_TASKS: Final = 12
MAX_FIX_TASKS: Final = 4

ASKS: Final[Mapping[Step, tuple[Role, ...]]] = {
    P.PLAN: (Role.ORCHESTRATOR,),
    P.REVIEW_PLAN: (Role.CHECK, Role.SIMPLIFY),
    P.SPLIT: (Role.ORCHESTRATOR,),
    P.REVIEW_SPLIT: (Role.CHECK,),
    P.STUB: (Role.MAKE,),
    P.WRITE_TESTS: (Role.TEST,),
    P.CHECK_TESTS: (Role.CHECK,),
    P.SEAM: (Role.MAKE,),
    P.IMPLEMENT: (Role.MAKE,),
    P.BUILD: (Role.MAKE,),
    P.DIAGNOSE: (Role.CHECK,),
    P.FINAL_REVIEW: (Role.CHECK, Role.SIMPLIFY),
}
"""Whose slots a step has; the rows of "any dispatch" hold in these. @pm has none: a model behind it only finds words."""

MEASURING: Final[frozenset[Step]] = frozenset(
    {P.SANITY, P.STUB, P.WRITE_TESTS, P.SEAM, P.IMPLEMENT, P.BUILD, P.INTEGRATE, P.FINAL_REVIEW, P.PUBLISH}
)
"""The steps in which tests or checks are run; ENV_BROKEN and ESCAPE hold in these, and wherever an agent is asked."""

GATES: Final[Mapping[str, tuple[Signal, ...]]] = {
    "plan": (S.APPROVED, S.REJECTED_TO_PLAN),
    "split": (S.APPROVED, S.REJECTED_TO_PLAN, S.REJECTED_TO_SPLIT),
    "commit": (S.APPROVED, S.REJECTED_TO_PLAN, S.REJECTED_TO_SPLIT, S.REJECTED_TO_FIX),
}
"""What a person may answer at a gate: nothing can be sent back to where it has not been yet."""


def steps_of(row: Row) -> frozenset[Step]:
    """Return the steps in which *row* holds."""
    if row.step is not None:
        return frozenset({row.step})
    if row.signal in {Signal.ENV_BROKEN, Signal.ESCAPE}:  # @pm has no slot in PUBLISH, but its agent is an agent
        return frozenset(ASKS) | MEASURING
    if row.signal is Signal.CANCELLED:  # SIGINT may come while the harness itself measures or publishes
        return frozenset(ASKS) | MEASURING | {Step.ISSUE}
    return frozenset(ASKS)


def _emits() -> dict[Step, frozenset[Signal]]:
    found: dict[Step, set[Signal]] = {step: set() for step in Step}
    for row in MATRIX:
        for step in steps_of(row):
            found[step].add(row.signal)
    return {step: frozenset(signals) for step, signals in found.items()}


EMITS: Final[dict[Step, frozenset[Signal]]] = _emits()
"""The signals that a step may report."""
