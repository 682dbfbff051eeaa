"""Reports of the reviewers: @check's reviews and judgements, @simplify's advice."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from pipeline.judge.reports.fields import Concern, Line, OldTest, Prose, Report, Severity, StrictModel, Verdict
from pipeline.judge.reports.proofs import Edit, Proof  # noqa: TC001  (pydantic reads it)

FAULTS: Final = "faults"
"""The id under which the final review answers for functions of which no test notices anything."""


class ReviewFinding(StrictModel):
    """A finding in @check's report; `findings.Finding` adds our id and status.

    `edit` is applied by our code only when the syntax tree stays the same (matrix 3).
    """

    severity: Severity = Severity.MEDIUM
    title: str = ""
    location: str = ""
    problem: str = ""
    risk: str = ""
    suggestion: str = ""
    evidence: str = ""
    concern: Concern | None = None
    confidence: str = ""
    edit: Edit | None = None

    @model_validator(mode="after")
    def _says_something(self) -> ReviewFinding:
        if not self.title.strip() and not self.problem.strip():
            raise PydanticCustomError("empty_finding", 'a finding needs at least a "title" or a "problem"')
        return self

    @property
    def headline(self) -> str:
        """Return the title, or the first line of the problem when there is none."""
        return self.title.strip() or self.problem.strip().splitlines()[0]


class WorkFinding(ReviewFinding):
    """A finding on work that can be run, so that it can be proved."""

    proof: Proof | None = None


class PriorAnswer(StrictModel):
    """An answer to a finding of an earlier review: whether it is resolved."""

    id: Line
    status: Literal["resolved", "open", "withdrawn"]
    note: str = ""


class CheckReview(Report):
    """The fields of every review by @check."""

    verdict: Verdict
    summary: str = ""
    findings: tuple[ReviewFinding, ...] = ()
    prior: tuple[PriorAnswer, ...] = ()


class MetCriterion(StrictModel):
    """Whether the result meets one acceptance criterion of a task."""

    task: Annotated[Line, BeforeValidator(lambda one: str(one) if isinstance(one, int) else one)]
    id: Annotated[Line, Field(description="its id in the task's file: C1, C2 and so on; or `faults`")]
    met: bool
    note: str = ""


class ToAnswer(StrictModel):
    """What a final review answers in `criteria`: a criterion of a task; `faults` for functions without a telling test.

    The request names each of these, the form begins with them, and without one of them a report is refused.
    """

    task: str
    id: str
    text: str


class StepReview(CheckReview):
    """Kind `review-step` by @check."""

    findings: tuple[WorkFinding, ...] = ()  # pyright: ignore[reportIncompatibleVariableOverride]  (it is frozen)


class ResultReview(CheckReview):
    """Kind `review-result` by @check."""

    findings: tuple[WorkFinding, ...] = ()  # pyright: ignore[reportIncompatibleVariableOverride]  (it is frozen)
    criteria: tuple[MetCriterion, ...] = ()


class SplitAnswers(StrictModel):
    """The six questions of a review of tasks (ADR-9, ADR-R2); yes, no, or a sentence.

    What each asks is said to whoever has the field: the description goes into the prompt.
    """

    coverage: Annotated[bool | str, Field(description="does every criterion of the issue land in a task?")] = ""
    overlap: Annotated[
        bool | str,
        Field(description="is no work and no file in two tasks, except where one depends on the other?"),
    ] = ""
    single_purpose: Annotated[
        bool | str,
        Field(
            description="is each task one coherent change, or some small ones in a file, that leaves the suite sound?",
        ),
    ] = ""
    contracts: Annotated[
        bool | str,
        Field(
            description="is what one task relies on written in both tasks, in the same words, with the same signatures?"
        ),
    ] = ""
    testable: Annotated[
        bool | str,
        Field(
            description="can each acceptance criterion be seen to fail, or, where it says what stays as it is, be held "
            "by a guard? One about a document needs neither."
        ),
    ] = ""
    test_approach: Annotated[
        bool | str,
        Field(
            description="will the test files named, with the symbols listed, exercise the behaviour rather than its "
            "structure; is `evidence: regression` only where no behaviour changes?"
        ),
    ] = ""


class SplitReview(CheckReview):
    """Kind `review-split`, and kind `review-plan` by @check: a plan may come with its one task."""

    answers: SplitAnswers = SplitAnswers()


class SimplifyFinding(StrictModel):
    """An advice of @simplify, which never blocks."""

    title: str = ""
    category: str = ""
    location: str = ""
    current: str = ""
    simpler: str = ""
    payoff: str = ""
    effort: str = ""
    risk: str = ""
    check_conflict: bool | str = ""

    @model_validator(mode="after")
    def _says_something(self) -> SimplifyFinding:
        if not any(text.strip() for text in (self.title, self.current, self.simpler)):
            raise PydanticCustomError("empty_finding", 'a finding needs at least a "title", "current" or "simpler"')
        return self


class SimplifyReview(Report):
    """Kinds `review-plan`, `review-result` and `review-step` by @simplify."""

    verdict: Literal["NEEDS SIMPLIFICATION", "MOSTLY APPROPRIATE", "JUSTIFIED COMPLEXITY"]
    summary: str = ""
    findings: tuple[SimplifyFinding, ...] = ()


class SuiteJudgement(Report):
    """Kind `judge`, question `tests`."""

    verdict: Verdict
    findings: tuple[WorkFinding, ...] = ()


class Acceptance(Report):
    """Kind `judge`, questions `not_testable` and `amend`."""

    accepted: bool
    notes: str = ""


class Diagnosis(Report):
    """Kind `judge`, question `diagnose`."""

    diagnosis: Literal[
        "production_logic",
        "test_design",
        "wrong_report",
        "split_needed",
        "spec",
        "plan",
        "environment",
        "already_done",
    ]
    notes: str = ""
    tests_to_change: tuple[OldTest, ...] = ()
    question: str = ""


class FollowUp(StrictModel):
    """How one item is to be filed; `duplicate_of` names an existing issue instead."""

    item: int | Prose
    title: Line
    body: str = ""
    labels: tuple[Line, ...] = ()
    duplicate_of: Line | None = None


class FollowUps(Report):
    """Kind `follow-ups`, by a pm with a model."""

    issues: tuple[FollowUp, ...]
