"""Reports of @test and @make on their work. Each is a claim; `signal_of_report.py` gives measured facts precedence."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipeline.judge.reports.fields import HonouredSeam, Line, Need, OldTest, Prose, RelPath, Report, StrictModel, Texts

NotTestableReason = Literal["config-only", "external-system", "non-deterministic", "pure-wiring", "missing-seam"]
UntestedReason = Literal["config-only", "external-system", "non-deterministic", "pure-wiring"]
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


class BuiltTest(StrictModel):
    """A test that one writer names: a guard, or a failing old one that the issue is about."""

    id: Line
    expected: Literal["RED", "GUARD"] = "RED"
    reason: str = ""


class Built(Complete):
    """Kind `build`: tests and code are written, in one go."""

    tests: tuple[BuiltTest, ...] = ()
    criteria: tuple[ShownCriterion, ...] = ()
    tests_to_change: Annotated[
        tuple[OldTest, ...], Field(description="tests that were there before and are changed or gone, each with why")
    ] = ()

    @property
    def on_tests(self) -> ReadyTests:
        """Return what it says of its tests, as @test would."""
        tests = tuple(NamedTest(id=one.id, expected=one.expected, reason=one.reason) for one in self.tests)
        return ReadyTests(verdict="TESTS_READY", tests=tests, criteria=self.criteria, notes=self.notes)


class Unbuilt(Report):
    """Kind `build`: tried, and stopped."""

    result: Literal["INCOMPLETE"]
    blocking_issue: Prose
    attempts: Texts = ()


class BuiltUntested(Report):
    """Kind `build`: the code is written, and no test is possible, for one of the allowed reasons."""

    result: Literal["NOT_TESTABLE"]
    reason: UntestedReason
    attempted: str = ""
    summary: str = ""


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
BuildReport = Built | Unbuilt | BuiltUntested
