"""Puts into as few words as it takes what agents are handed: what was measured, said, remarked on, or is to be doubted.

The records themselves stay with the run, in `evidence/`; hashes and lists of parametrised ids say nothing to a reader.
Nothing here decides: a claim of being done is measured, and a doubt is read by whoever reviews.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Final, cast

from pydantic import BeforeValidator, TypeAdapter

from pipeline.characters import hidden_places, visible
from pipeline.judge.evidence.red_classes import red_words
from pipeline.judge.evidence.written_ids import forms
from pipeline.judge.reports.markdown import bullets, sections
from pipeline.judge.reports.untrusted_text import one_line
from pipeline.judge.reports.work_reports import CannotProceed, Complete, Incomplete, MakeReport, ShownCriterion
from pipeline.matrix.engine.journal_kinds import DecisionMade
from pipeline.matrix.routing.state import TaskStatus
from pipeline.progress import few
from pipeline.steps.asking.reviews import remarks
from pipeline.steps.evidence_records import BASELINE, baseline_of, read_evidence
from pipeline.testing.languages import readers
from pipeline.testing.languages.projects.combined import projects_in
from pipeline.testing.measure.composed_trees import both
from pipeline.testing.measure.measuring import changed_paths
from pipeline.testing.measure.outcome_words import in_sum, noticed_lines
from pipeline.testing.measure.suspicions import added_lines_by_side, means_of_forgery
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pipeline.judge.evidence.observation import TestRecord
    from pipeline.judge.evidence.red_tests import RedEntry, RedTests
    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context
    from pipeline.testing.measure.task_evidence import GreenEvidence, TaskEvidence


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


def counted_cases(ids: Iterable[str], functions: Mapping[str, str], most: int | None = None) -> list[str]:
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


def red_md(ctx: Context, ledger: RedTests, notes: Iterable[str], functions: Mapping[str, str]) -> str:
    """Return what must turn green, how it failed, and what @test says of it; *functions* are those of tests, by id."""
    return f"# RED of task {ledger.task}\n" + sections(
        ("Command", f"`{' '.join(json.loads(ctx.read(BASELINE))['command'])}`, with ids from below"),
        ("Must Turn Green", bullets(_failed(ledger.red))),
        ("Pass and Must Still Pass", bullets(counted_cases(ledger.guards, functions))),
        ("What @test Says", bullets(notes)),
    )


_ONE: Final = (
    "one: who wrote the code wrote its tests, in one go. Whether they ask for the right thing nobody has judged."
)


def evidence_md(evidence: TaskEvidence, task: Task, functions: Mapping[str, str]) -> str:
    """Return the evidence of one task for who reviews the result; *functions* are those of the tests, by id."""
    ledger = evidence.ledger
    named = {path for file in (*task.files, *task.test_files) for path in (file.path, file.origin)}
    named |= {test.id.partition("::")[0] for test in task.tests_to_change}
    why = evidence.not_testable or {}
    return f"# Evidence of task {evidence.task}\n" + sections(
        ("Writers", _ONE if evidence.writers is not None else ""),
        ("RED", _red(evidence) if ledger is not None else f"none: {why.get('reason', 'not testable')}"),
        ("Proof", f"its tests are what proves {evidence.proved_by}" if evidence.proved_by else ""),
        ("Guards", bullets(counted_cases(ledger.guards, functions)) if ledger is not None else ""),
        ("GREEN", bullets(_green(evidence.green, functions)) if evidence.green is not None else ""),
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
    return f"none: the tests pass over the code that the task began with.\n\n{bullets(noticed_lines(noticing))}"


def _shown(criterion: ShownCriterion) -> str:
    tests, reason = ", ".join(criterion.tests), one_line(criterion.reason)
    return f"{criterion.id}: {tests or 'no test: ' + reason}{f' ({reason})' if tests and reason else ''}"


def _alike(red: Mapping[str, RedEntry]) -> Iterator[str]:
    """Yield how tests failed, for who reviews: once what many say with other values, with their count and ids."""
    groups: dict[str, list[str]] = {}
    for entry, one in red.items():
        said = f"{red_words(one.cls)}: {_VALUES.sub('_', one_line(one.message))[:_TELLING]}"
        groups.setdefault(said, []).append(entry)
    for entries in groups.values():
        if len(entries) < _ALIKE:
            yield from _failed({entry: red[entry] for entry in entries})
            continue
        first = red[entries[0]]
        named = ", ".join(counted_cases(entries, {entry: red[entry].function for entry in entries}))
        yield f"{len(entries)} tests fail alike: {named}: {red_words(first.cls)}, such as {one_line(first.message)}"


def _failed(red: Mapping[str, RedEntry]) -> Iterator[str]:
    for function, entries in _by_function(red, {entry: one.function for entry, one in red.items()}):
        faults = dict.fromkeys(f"{red_words(red[entry].cls)}: {one_line(red[entry].message)}" for entry in entries)
        said = few(faults, _MOST_FAULTS, "; ")
        yield f"{entries[0]}: {said}" if len(entries) == 1 else f"{function} ({len(entries)} cases): {said}"


def _green(green: GreenEvidence, functions: Mapping[str, str]) -> Iterator[str]:
    yield f"tests of the task that pass: {len(green.passed)}; others that still pass: {green.kept}"
    yield from (f"came with production, and passes: {entry}" for entry in counted_cases(green.new_ids, functions))
    yield from (f"flaky, not counted: {entry}" for entry in green.flaky)
    yield from (f"fails on stubs, as it has to: {entry}" for entry in counted_cases(green.stub_failures, functions))
    yield from green.as_they_were or ()
    yield from green.controls


_TEXTS: Final = TypeAdapter(
    Annotated[tuple[str, ...], BeforeValidator(lambda one: (one,) if isinstance(one, str) else one)]
)
_KINDS: Final = frozenset({"write-tests", "stub", "seam", "implement", "build"})
_SAID: Final[Mapping[str, str]] = {
    "assumptions": "assumes",
    "notes": "notes",
    "blocking_issue": "says that this is in the way",
    "attempts": "tried",
    "missing": "says that this is missing",
    "why": "because",
    "suggestion": "suggests",
    "escalation_reason": "wants a second look",
}
"""Fields of reports that nothing else reads once the work is measured, in words."""
_STOPPED_BY: Final = frozenset({"blocking_issue", "attempts", "missing", "why", "suggestion", "escalation_reason"})
"""What @make says of the tests that it could not make pass."""


def work_notes(ctx: Context) -> tuple[str, ...]:
    """Return one line for each thing that the last answer of each kind says of a task, tasks in order."""
    last: dict[tuple[str, str], Mapping[str, object]] = {}
    for _, record in sorted(ctx.run.records.items()):
        result = ctx.run.results.get(record.dispatch)
        if record.kind in _KINDS and record.task is not None and result is not None and result.report is not None:
            last[record.task, record.kind] = result.report
            if record.kind == "write-tests" and (made := last.get((record.task, "implement"))):  # other tests are there
                last[record.task, "implement"] = {name: made[name] for name in made.keys() - _STOPPED_BY}
    dropped = {task.id for task in ctx.state.tasks.values() if task.status is TaskStatus.DROPPED}
    return tuple(
        f"task {task}, @{'test' if kind == 'write-tests' else 'make'} ({kind}) {line}"
        for (task, kind), report in last.items()
        if task in ctx.state.tasks and task not in dropped
        for line in _said(report)
    )


def claim_of(report: MakeReport) -> str:
    """Return what @make says of its work, in short."""
    match report:
        case Complete():
            return report.summary
        case Incomplete():
            return report.blocking_issue
        case CannotProceed():
            return report.missing


def notes_of_tests(ctx: Context, task: str) -> tuple[str, ...]:
    """Return what the last answer of @test says of its tests of a task: whoever makes them pass is to know it."""
    asked = [r.dispatch for _, r in sorted(ctx.run.records.items()) if r.kind == "write-tests" and r.task == task]
    found = [result.report for name in asked if (result := ctx.run.results.get(name)) is not None and result.report]
    return tuple(_said(found[-1])) if found else ()


def work_notes_md(ctx: Context) -> str:
    """Return the document for the final review, empty where nobody said anything."""
    lines = work_notes(ctx)
    return f"# What @test and @make say of their own work\n\n{bullets(lines)}\n" if lines else ""


def _said(report: Mapping[str, object]) -> Iterator[str]:
    for name, words in _SAID.items():
        yield from (
            f"{words}: {one_line(text)}" for text in _TEXTS.validate_python(report.get(name) or ()) if text.strip()
        )
    for bug in cast("list[dict[str, str]]", report.get("out_of_scope") or []):
        yield f"reports a bug that was there before, and that is filed: {one_line(bug['title'])}"


_CUT_AGAIN: Final = frozenset({"diagnose/SPEC", "diagnose/SPLIT_NEEDED"})


def handed_on(ctx: Context, *, judged: bool = False) -> dict[str, list[Path]]:
    """Return the artifact with what @check remarked on plan and split, and with `judged` on the task's tests, too.

    Fix tasks are about the findings of the final review: they get these instead.
    """
    found = remarks(ctx, *((Step.FINAL_REVIEW,) if ctx.state.fixing else (Step.REVIEW_PLAN, Step.REVIEW_SPLIT)))
    overruled = _overruling(ctx)
    if overruled:
        found = {"remarks": [*found.get("remarks", []), *map(ctx.path, overruled)]}
    evidence = read_evidence(ctx, ctx.state.task.id) if judged else None
    if evidence is None or evidence.judged_by is None:
        return found
    return {"remarks": [*found.get("remarks", []), ctx.path(evidence.judged_by)]}


def _overruling(ctx: Context) -> list[str]:
    """Return the diagnoses that had the tasks of the present plan cut again: plan.md still says what they refute."""
    lines = ctx.run.journal.of(DecisionMade)
    planned = max((number for number, line in enumerate(lines) if line.data.row == "plan/DRAFTED"), default=0)
    cut = [line for line in lines[planned:] if line.data.row in _CUT_AGAIN]
    return [name for line in cut for name in line.data.evidence[:1] if name.endswith(".md")]


def came_back_tree(ctx: Context) -> str | None:
    """Return what this step handed in when it was asked last, None where it begins or where that was nothing.

    The tree is the one in question only while the step itself is: another one has had its turn since otherwise.
    """
    line = ctx.arrival()
    step = ctx.lane.step
    by = line.data.step if line is not None else ""
    asked_before = by == step.value or (by == Step.DIAGNOSE.value and ctx.lane.origin is step)
    return ctx.lane.in_question if asked_before else None


_MOST_PLACES: Final = 5
_BULLET: Final = "- "


def suspicions_md(ctx: Context) -> str:
    """Return the document for the final review, empty where there is nothing to say."""
    lines = suspicions(ctx, ctx.state.start, ctx.state.head)
    head = (
        "# Suspicions\n\nLines of the change that can recognise or forge tests, or hide what a text says. Behaviour "
        "that tests show by one example only, or not at all. Examples that were tests and are gone. Honest code has "
        "reasons for some of these."
    )
    return f"{head}\n\n{bullets(lines)}\n" if lines else ""


def suspicions_told(ctx: Context) -> tuple[str, ...]:
    """Return what the last final review was told, line by line; empty where there was none, or nothing to say."""
    last = ctx.reviews_before(Step.FINAL_REVIEW.value)
    path = ctx.path(f"reviews/suspicions-{last}.md")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return tuple(line.removeprefix(_BULLET) for line in text.split("\n") if line.startswith(_BULLET))


def suspicions(ctx: Context, old: str, new: str) -> tuple[str, ...]:
    """Return one sentence each, of production files that differ between two trees."""
    layout = baseline_of(ctx).layout
    texts = both(ctx, old, new, changed_paths(ctx, old, new))
    production: dict[str, tuple[tuple[int, str], ...]] = {}
    tests: list[str] = []
    known = [*map(ctx.read, _words(ctx)), *(was.decode("utf-8", "replace") for _, was, _ in texts if was is not None)]
    for path, before, after in texts:
        if after is None:
            continue
        code, test = added_lines_by_side(path, before or b"", after, layout)
        tests += (line for _, line in test)
        if code:
            production[path] = code
    run = {record.path for record in baseline_of(ctx).records.values()}
    return (
        *means_of_forgery(ctx, old, new, layout),
        *_hidden(texts),
        *readers.answers_known(production, tests, known),
        *readers.unused_values(_criteria(ctx), tests),
        *readers.examples_lost([one for one in texts if not layout.is_test_side(one[0])], run),
    )


def _hidden(texts: Iterable[tuple[str, bytes | None, bytes | None]]) -> Iterator[str]:
    """Yield a sentence for each file that gets characters that are not seen, or that turn the text around them."""
    for path, before, after in texts:
        if after is None or b"\0" in after:
            continue
        places = hidden_places((before or b"").decode("utf-8", "replace"), after.decode("utf-8", "replace"))
        if places:
            listed = few(places, _MOST_PLACES)
            yield f"{visible(path)} gets characters that are not seen or turn the text around them: {listed}"


def _criteria(ctx: Context) -> dict[str, str]:
    tasks = [ctx.task(task.id) for task in ctx.state.done_tasks if task.testable]
    return {f"{task.id} {criterion.id}": criterion.text for task in tasks for criterion in task.criteria}


def _words(ctx: Context) -> Iterator[str]:
    names = ("issue.md", "plan.md", *(f"task-{task}.md" for task in ctx.state.tasks))
    return (name for name in names if ctx.path(name).exists())
