"""Finds failing old tests that a task makes its own, by naming them or by @test's report, instead of new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.named_tests import asked_for, claimed_tests
from pipeline.evidence.red import failing_since
from pipeline.evidence.written_ids import meant

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.evidence.observation import Observation
    from pipeline.reports.tasks import Task
    from pipeline.reports.work import ReadyTests


def spelled_out(report: ReadyTests, seen: Observation) -> ReadyTests:
    """Return the report with its ids as the suite has them, where they are an end of one alone.

    That is how runners print a test, and people name it; what two functions end in stays as it is.
    """

    def whole(name: str) -> str:
        found = meant(name, seen.records)
        return found[0] if len(found) == 1 else name

    tests = tuple(named.model_copy(update={"id": whole(named.id)}) for named in report.tests)
    criteria = tuple(shown.model_copy(update={"tests": tuple(map(whole, shown.tests))}) for shown in report.criteria)
    return report.model_copy(update={"tests": tests, "criteria": criteria})


def named_by(task: Task, seen: Observation) -> frozenset[str]:
    """Return the failing tests that the task names in its title, its criteria or its tests to change."""
    return asked_for((task.title, *task.acceptance_criteria), [test.id for test in task.tests_to_change], seen)


def claimed_by(task: Task, report: ReadyTests, changed: Collection[str], seen: Observation) -> frozenset[str]:
    """Return the failing tests, and uncollectable files, that @test claims as the task's own."""
    named = [test.id for test in report.tests if test.expected == "RED"]
    return claimed_tests(named, changed, [file.path for file in task.test_files], seen)


def newly_failing(report: ReadyTests, before: Observation, after: Observation) -> frozenset[str]:
    """Return the tests that @test reports as RED and that passed before and fail now.

    That is a row in a table beside the test, or a file of cases: the source of the test is what it was.
    """
    named = {test.id for test in report.tests if test.expected == "RED"}
    since = failing_since(before, after)
    return frozenset(entry for entry in since if not {entry, after.records[entry].function}.isdisjoint(named))


def is_borrowed(task: Task, entries: Collection[str], seen: Observation) -> bool:
    """Return whether one of these tests is neither named by the task nor in a file of its own tests."""
    own = {file.path for file in task.test_files}
    known = named_by(task, seen)
    paths = {entry: seen.records[entry].path if entry in seen.records else entry for entry in entries}
    return any(entry not in known and path not in own for entry, path in paths.items())
