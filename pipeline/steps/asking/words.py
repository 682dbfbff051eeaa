"""Puts what was measured into as few words as it takes, for agents, who read everything that they are handed.

The records themselves stay with the run, in `evidence/`; hashes and lists of parametrised ids say nothing to a reader.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from pipeline.evidence.written_ids import forms
from pipeline.languages.projects.combined import projects_in
from pipeline.measure.words import in_sum, noticed_lines
from pipeline.reports.markdown import bullets, sections
from pipeline.reports.untrusted_text import one_line
from pipeline.steps.evidence.records import BASELINE, baseline_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipeline.evidence.observation import TestRecord
    from pipeline.evidence.red_tests import RedEntry, RedTests
    from pipeline.measure.task_evidence import GreenEvidence, TaskEvidence
    from pipeline.reports.tasks import Task
    from pipeline.reports.work import ShownCriterion
    from pipeline.steps.context import Context

_MOST_FAULTS: Final = 3
_ALIKE: Final = 3
"""From so many on tests that fail alike are one line."""
_TELLING: Final = 60
"""Characters by which messages are compared, values left out: long ones are cut somewhere."""
_VALUES: Final = re.compile(r"(?<!\w)'[^']*'?|\"[^\"]*\"?|\b\d[\w.]*")
_FORMS: Final = 8
"""Of ids, one each: nobody guesses how a suite calls its tests."""


def folded(ids: Iterable[str], functions: Mapping[str, str]) -> list[str]:
    """Return ids with the cases of one function as one entry, which a runner takes as it takes an id."""
    return [entries[0] if len(entries) == 1 else function for function, entries in _by_function(ids, functions)]


def counted_cases(ids: Iterable[str], functions: Mapping[str, str], most: int) -> list[str]:
    """Return the first test functions of ids, at most so many, each with the number of its cases where it has some."""
    return [
        entries[0] if len(entries) == 1 else f"{function} ({len(entries)} cases)"
        for function, entries in [*_by_function(ids, functions)][:most]
    ]


def _by_function(ids: Iterable[str], functions: Mapping[str, str]) -> Iterable[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for entry in ids:
        found.setdefault(functions.get(entry, entry), []).append(entry)
    return found.items()


def functions_of(records: Mapping[str, TestRecord]) -> dict[str, str]:
    """Return the function of each test."""
    return {entry: record.function for entry, record in records.items()}


def baseline_md(ctx: Context) -> str:
    """Return how the tests stood before the run."""
    known = json.loads(ctx.read(BASELINE))
    records = baseline_of(ctx).records
    functions = functions_of(records)
    projects = [one.place.marks for one in projects_in(ctx.toolchain) if one.folder]
    return "# The tests before the run\n" + sections(
        ("Outcomes", f"{in_sum(one.outcome for one in records.values())}. Command: `{' '.join(known['command'])}`"),
        (
            "Ids Look Like",
            bullets(f"`{entry}`" for entry in forms(known["outcomes"], projects)[: max(_FORMS, len(projects))]),
        ),
        ("Failing", bullets(folded(known["failing"], functions))),
        ("Varying", bullets(folded(known["flaky"], functions))),
    )


def red_md(ledger: RedTests, command: Iterable[str], notes: Iterable[str] = ()) -> str:
    """Return what must turn green, how it failed, and what @test says of it."""
    return f"# RED of task {ledger.task}\n" + sections(
        ("Command", f"`{' '.join(command)}`"),
        ("Must Turn Green", bullets(_failed(ledger.red))),
        ("Pass and Must Still Pass", bullets(ledger.guards)),
        ("What @test Says", bullets(notes)),
    )


_ONE: Final = (
    "one: who wrote the code wrote its tests, in one go. Whether they ask for the right thing nobody has judged."
)


def evidence_md(evidence: TaskEvidence, task: Task) -> str:
    """Return the evidence of one task for who reviews the result."""
    ledger = evidence.ledger
    named = {path for file in (*task.files, *task.test_files) for path in (file.path, file.origin)}
    named |= {test.id.partition("::")[0] for test in task.tests_to_change}
    why = evidence.not_testable or {}
    return f"# Evidence of task {evidence.task}\n" + sections(
        ("Writers", _ONE if evidence.writers is not None else ""),
        ("RED", _red(evidence) if ledger is not None else f"none: {why.get('reason', 'not testable')}"),
        ("Proof", f"its tests are what proves {evidence.proved_by}" if evidence.proved_by else ""),
        ("Guards", bullets(folded(ledger.guards, {})) if ledger is not None else ""),
        ("GREEN", bullets(_green(evidence.green)) if evidence.green is not None else ""),
        ("Criteria", bullets(_shown(one) for one in evidence.criteria)),
        (
            "Test Files That the Task Does Not Name",
            bullets(f"`{path}`" for path in evidence.test_paths if path not in named),
        ),
        ("Old Tests That Changed", bullets(evidence.changed_old)),
    )


def _red(evidence: TaskEvidence) -> str:
    """Return what was RED; of tests that passed before, what they notice, which stands in its place."""
    noticing = evidence.noticing
    if evidence.ledger is None or evidence.ledger.red or noticing is None:
        return bullets(_alike(evidence.ledger.red)) if evidence.ledger is not None else ""
    return f"none: the tests pass over the code as it was.\n\n{bullets(noticed_lines(noticing))}"


def _shown(criterion: ShownCriterion) -> str:
    tests = ", ".join(criterion.tests)
    return f"{criterion.id}: {tests or 'no test: ' + one_line(criterion.reason)}"


def _alike(red: Mapping[str, RedEntry]) -> Iterator[str]:
    """Yield how tests failed, for who reviews: once what many say with other values, with their count and ids."""
    groups: dict[str, list[str]] = {}
    for entry, one in red.items():
        groups.setdefault(f"{one.cls}: {_VALUES.sub('_', one_line(one.message))[:_TELLING]}", []).append(entry)
    for entries in groups.values():
        if len(entries) < _ALIKE:
            yield from _failed({entry: red[entry] for entry in entries})
            continue
        first = red[entries[0]]
        named = ", ".join(folded(entries, {entry: red[entry].function for entry in entries}))
        yield f"{len(entries)} tests fail alike: {named}: {first.cls}, such as {one_line(first.message)}"


def _failed(red: Mapping[str, RedEntry]) -> Iterator[str]:
    for function, entries in _by_function(red, {entry: one.function for entry, one in red.items()}):
        faults = list(dict.fromkeys(f"{red[entry].cls}: {one_line(red[entry].message)}" for entry in entries))
        more = len(faults) - _MOST_FAULTS
        said = "; ".join(faults[:_MOST_FAULTS]) + (f"; and {more} more" if more > 0 else "")
        yield f"{entries[0]}: {said}" if len(entries) == 1 else f"{function} ({len(entries)} cases): {said}"


def _green(green: GreenEvidence) -> Iterator[str]:
    yield f"{len(green.passed)} tests of the task pass; {green.kept} others are held against the baseline"
    yield from (f"came with production, and passes: {entry}" for entry in folded(green.new_ids, {}))
    yield from (f"flaky, not counted: {entry}" for entry in green.flaky)
    yield from (f"fails on stubs, as it has to: {entry}" for entry in folded(green.stub_failures, {}))
    yield from green.as_they_were or ()
    yield from green.controls
