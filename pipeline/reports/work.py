"""Reports of @test and @make on their work. Each is a claim; `reduce.py` gives measured facts precedence."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipeline.reports.fields import HonouredSeam, Line, Need, Prose, RelPath, Report, StrictModel, Texts

NotTestableReason = Literal["config-only", "external-system", "non-deterministic", "pure-wiring", "missing-seam"]
Escalation = Literal["entry_validation", "test_design", "split_needed"]


class NamedTest(StrictModel):
    """A note on one test; the ids that count are measured (matrix 5)."""

    id: Line
    expected: Literal["RED", "GUARD"] = "RED"
    origin: Literal["new", "changed", "removed"] = "new"
    reason: str = ""


class ShownCriterion(StrictModel):
    """The tests that show an acceptance criterion, or why none does."""

    id: Annotated[Line, Field(description="its id in the task's file: C1, C2 and so on")]
    tests: tuple[Line, ...] = ()
    reason: str = ""


class ReadyTests(Report):
    """Kind `write-tests`: the tests are written, and fail as they should."""

    verdict: Literal["TESTS_READY"]
    tests: tuple[NamedTest, ...] = ()
    criteria: tuple[ShownCriterion, ...] = ()
    escalate_to_check: bool = False
    escalation_reason: str = ""
    notes: str = ""


class NotTestable(Report):
    """Kind `write-tests`: no test is possible, for one of the allowed reasons."""

    verdict: Literal["NOT_TESTABLE"]
    reason: NotTestableReason
    attempted: str = ""
    future_seam: str = ""
    seam_files: tuple[RelPath, ...] = ()


class Blocked(Report):
    """Kind `write-tests`: something outside the task prevents the work."""

    verdict: Literal["BLOCKED"]
    problem: Prose
    attempted: str = ""
    suggested_fix: str = ""
    needs: tuple[Need, ...] = ()


class Complete(Report):
    """Kinds `stub`, `seam`, `implement`: done, by the agent's own account."""

    result: Literal["COMPLETE"]
    summary: str = ""
    assumptions: Texts = ()
    notes: str = ""


class Changed(Complete):
    """Kind `change`: done, as a step of a recipe."""

    seams: tuple[HonouredSeam, ...] = ()


class Incomplete(Report):
    """Kinds `stub`, `seam`, `implement`: tried, and stopped."""

    result: Literal["INCOMPLETE"]
    blocking_issue: Prose
    attempts: Texts = ()
    escalate: Escalation | None = None
    needs: tuple[Need, ...] = ()


class CannotProceed(Report):
    """Kinds `stub`, `seam`, `implement`: the task lacks something, so nothing was tried."""

    result: Literal["CANNOT_PROCEED"]
    missing: Prose
    why: str = ""
    suggestion: str = ""
    needs: tuple[Need, ...] = ()


WriteTestsReport = ReadyTests | NotTestable | Blocked
MakeReport = Complete | Incomplete | CannotProceed
