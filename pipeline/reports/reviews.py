"""Reports of the reviewers: @check's reviews and judgements, @simplify's advice."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from pipeline.reports.fields import Concern, Line, OldTest, Prose, RelPath, Report, Severity, StrictModel, Verdict


class Edit(StrictModel):
    """An exact replacement in one file; applied by our code only when the syntax tree stays the same (matrix 3)."""

    path: RelPath
    old: str = Field(min_length=1)
    new: str


class ReviewFinding(StrictModel):
    """A finding in @check's report; `findings.Finding` adds our id and status."""

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


class PriorAnswer(StrictModel):
    """An answer to a finding of an earlier review: whether it is resolved."""

    id: Line
    status: Literal["resolved", "open", "withdrawn"]
    note: str = ""


class CheckReview(Report):
    """Kind `review-step` by @check; its other reviews extend it."""

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


class ResultReview(CheckReview):
    """Kind `review-result` by @check."""

    criteria: tuple[MetCriterion, ...] = ()


class SplitAnswers(StrictModel):
    """The six questions of the split review (ADR-9, ADR-R2); yes, no, or a sentence."""

    coverage: bool | str = ""
    overlap: bool | str = ""
    single_purpose: bool | str = ""
    contracts: bool | str = ""
    testable: bool | str = ""
    test_approach: bool | str = ""


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
    findings: tuple[ReviewFinding, ...] = ()


class Acceptance(Report):
    """Kind `judge`, questions `not_testable` and `amend`."""

    accepted: bool
    notes: str = ""


class Diagnosis(Report):
    """Kind `judge`, question `diagnose`."""

    diagnosis: Literal["production_logic", "test_design", "split_needed", "spec", "plan", "environment", "already_done"]
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
