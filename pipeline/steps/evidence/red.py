"""Measures RED of the tests that @test handed in: twice, over production without the behaviour (matrix 5).

Of tests that pass over the code as it is, faults that they notice stand in the place of RED.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.judge.evidence import red_classes
from pipeline.judge.evidence.observation import PASSING, Observation
from pipeline.judge.evidence.red import RedFacts, derive_new_ids, judge_red, may_change, with_other_ids
from pipeline.judge.evidence.renamed_tests import carried, moved
from pipeline.judge.reports.fields import Evidence, Report
from pipeline.judge.reports.tasks import Task, adds_tests, taken_away
from pipeline.judge.reports.work_reports import ReadyTests
from pipeline.steps.asking import criteria
from pipeline.steps.asking.drafts import planned_files
from pipeline.steps.asking.proofs import edits_in_question
from pipeline.steps.context import Composed, Context
from pipeline.steps.evidence_records import baseline_of
from pipeline.steps.wanted_stubs import scaffolds, symbols_of
from pipeline.testing.languages import names
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.measure.composed_trees import compose
from pipeline.testing.measure.measuring import UnmeasurableError, changed_paths, measure
from pipeline.testing.measure.noticing import Passing, noticing_probe
from pipeline.testing.measure.old_tests import renamed
from pipeline.testing.measure.red import (
    claimed_by,
    is_borrowed,
    named_by,
    newly_failing,
    spelled_out,
    with_stand_ins,
    with_stubs,
    with_undeclared,
    with_varied,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pipeline.judge.evidence.red_tests import RedEntry
    from pipeline.judge.reports.decode import Malformed
    from pipeline.testing.measure.task_evidence import NoticingEvidence


def tests_start(ctx: Context) -> str:
    """Return what the tests of the task were written over."""
    task = ctx.state.task
    return task.stubs or task.start or ctx.state.head


@dataclass(frozen=True)
class MeasuredRed:
    """What the tests show over production without the behaviour."""

    verdict: RedFacts
    after: Observation
    traced: Observation
    tree: str
    production: str
    test_paths: tuple[str, ...]
    missing: tuple[str, ...]
    borrowed: bool


@dataclass(frozen=True)
class Added:
    """Tests that all pass over the code as it is, as they were measured there, and what they notice.

    `before_run` are those of a fix of tests alone that are RED over the start of the run: they need not notice a fault.
    """

    found: MeasuredRed
    noticing: NoticingEvidence
    before_run: Mapping[str, RedEntry]


async def measure_red(ctx: Context, task: Task, report: ReadyTests, tree: str) -> MeasuredRed:
    """Return what the tests show over production without the behaviour.

    A fix of the tests alone cannot be RED over the result: the behaviour is there already (matrix 4). It is measured
    over the start of the run; where that lacks what the tests are compiled with, over the result with stubs in the
    place of all that the run brought. Where an old file of tests imports what is new, over production with a
    stand-in for that.
    """
    start = tests_start(ctx)
    if ctx.state.task.spec.red_base != "start":
        over_production = await _red_over(ctx, [task], report, tree, start)
        verdict, errors = over_production.verdict, over_production.after.collection_errors
        hiding = {one.id for one in verdict.illegal if one.cls is red_classes.RedClass.IMPORT_HIDES_TESTS}
        hidden = [error for error in errors if error.path in hiding]
        standing = with_stand_ins(ctx, [task], start, hidden) if hidden else None
        return over_production if standing is None else await _red_over(ctx, [task], report, tree, start, standing)
    # over the start, what the tasks before the fix introduced is missing too
    tasks = [task, *(ctx.task(done.id) for done in ctx.state.done_tasks)]
    over_start = await _red_over(ctx, tasks, report, tree, ctx.state.start)
    refused = {refusal.id for refusal in over_start.verdict.illegal}
    if all(error.path not in refused for error in over_start.after.collection_errors):
        return over_start
    bare = with_stubs(ctx, tasks, tree, ctx.state.start, baseline_of(ctx).layout)
    return over_start if bare is None else await _red_over(ctx, tasks, report, tree, bare)


async def measure_added(ctx: Context, task: Task, report: ReadyTests, tree: str, found: MeasuredRed) -> Added | None:
    """Return what tests show that pass over the code as it is; None where they do not, or are RED as they are.

    RED of a fix of tests alone was measured over the start of the run. Where it is none there, since the fix is about
    what was there before, it may be right over what the run has made.

    Args:
        ctx: The run.
        task: The task.
        report: What @test said of its tests.
        tree: The tests, over the code before.
        found: How they stand as RED.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    verdict = found.verdict
    over_start = ctx.state.task.spec.red_base == "start"
    if verdict.env_broken or verdict.legal or not (over_start or verdict.all_new_pass):
        return None
    here = await _red_over(ctx, [task], report, tree, tests_start(ctx)) if over_start else found
    if not here.verdict.all_new_pass:
        return None
    records = here.after.records
    red: Mapping[str, RedEntry] = verdict.ledger.red if over_start else {}
    tests = {entry: records[entry].function for entry in here.verdict.new_ids if entry in records}
    about = {change.path for change in task.files} | planned_files(ctx)
    traced = here.traced if here.tree == tree else None
    passing = Passing(tree, tests, about, here.after.layout, traced, edits_in_question(ctx))
    noticing = await noticing_probe(ctx, ctx.config.probes, passing)
    if over_start and not (noticing.notices or verdict.all_new_pass):
        return None  # what is wrong with them over the start tells more
    shown = {one.function for one in red.values()}
    counts = {function: count for function, count in noticing.tests.items() if count or function not in shown}
    return Added(here, noticing.model_copy(update={"tests": counts}), red)


async def _red_over(
    ctx: Context, tasks: Sequence[Task], report: ReadyTests, tree: str, production: str, standing: str | None = None
) -> MeasuredRed:
    """Return what the tests show over *production*; over *standing*, if given, which is that with stand-ins."""
    task, start = tasks[0], tests_start(ctx)
    over = composed_red(ctx, tree, production, standing)
    paths, side, composed = over.paths, over.side, over.tree
    # before the stubs: with them, tests that have to change need not compile
    bare = start if start != ctx.state.task.stubs else ctx.state.task.start or start
    first = await measure(ctx, bare, what="the old tests over the old code, to compare with")
    after = await _first_look(ctx, over)
    # examples in production that is another one here are no tests of the task
    first = _with_files_of(first, after, {*changed_paths(ctx, start, production)}.difference(side))
    report = spelled_out(report, after)
    allowed = frozenset(test.id for test in task.tests_to_change)
    asked = named_by(task, first) | claimed_by(task, spelled_out(report, first), paths, first)
    renames = renamed(ctx, task, start, tree)
    before = carried(first, after, moved(first.records, after.records, renames))
    fed = newly_failing(report, before, after)
    asked |= fed
    # cases from a helper outside the changed files; old tests that compare with one of them
    wanted = {*derive_new_ids(before, after), *(r.id for r in after.records.values() if may_change(r, allowed))}
    wanted |= asked & after.records.keys()
    if any(not after.records[entry].ran for entry in wanted):
        ran = {record.id for record in after.records.values() if record.ran}
        after = await measure(
            ctx,
            composed,
            Selection(ids=frozenset(wanted | ran)),
            what="tests with all cases over the old code, new ones must fail",
        )
    new = frozenset(derive_new_ids(before, after, allowed)) | (asked & after.records.keys())
    after = with_undeclared(ctx, after, composed, production, side)
    traced = await measure(ctx, composed, Selection(ids=new), trace=True, what=_words(ctx, over)[1]) if new else after
    seen = {entry: traced.records[entry] for entry in new if entry in traced.records}
    merged = after.model_copy(update={"records": {**after.records, **seen}})
    symbols = tuple(symbol for one in tasks for symbol in symbols_of(one))
    # of one writer a test may show a function that was there, with its old body: it need not reach a stub
    mixed = ctx.state.one_writer and any(not symbol.new for symbol in symbols)
    has_stubs = ctx.state.task.stubs is not None and production == start and not mixed
    is_bare = production not in {start, ctx.state.start}
    unread = set(filter(after.layout.is_test, before.unread))
    context = red_classes.Context(
        symbols=symbols,
        # a file that could not be read before hides no test
        existing=frozenset(entry.path for entry in ctx.repository.entries(production)) - unread,
        layout=after.layout,
        names=names,
        task_files=frozenset(change.path for one in tasks for change in one.files),
        removed=taken_away(tasks),
        symptom=task.symptom.value if task.symptom else None,
        expected=_expected(report, merged, may_fail=production != start),
        stubbed=has_stubs or (is_bare and bool(symbols)),
        scaffolds=scaffolds(ctx, task),
    )
    again = after if new else None
    verdict = judge_red(
        first,
        merged,
        again,
        context,
        task=task.id,
        tree=tree,
        tests_to_change=allowed,
        asked=asked,
        may_only_remove=task.evidence is Evidence.REGRESSION,
        renames=renames,
    )
    verdict = with_varied(ctx.checkout.root, composed, verdict, merged)
    verdict = with_other_ids(verdict, first, after, traced, allowed)
    more = [e for e in fed if e in after.records and not may_change(before.records[e], allowed)]
    if verdict.only_removed and not _only_deletes(ctx, task, set(paths) - {*renames, *renames.values()}, composed):
        # leave to change is no leave to remove, and beside a removal nothing else may change: @check looks at it
        more += verdict.only_removed
    verdict = verdict.model_copy(update={"changed_old": tuple(dict.fromkeys((*verdict.changed_old, *more)))})
    borrowed = is_borrowed(task, asked & verdict.ledger.red.keys(), before)
    return MeasuredRed(
        verdict, after, traced, composed, standing or production, paths, criteria.missing_tests(report, after), borrowed
    )


def composed_red(ctx: Context, tree: str, production: str, standing: str | None = None) -> Composed:
    """Return the tests of *tree* over *production*; where they were just looked at, that is not made again."""
    of, looked = (tree, production, standing), ctx.learnt.looked
    if looked is not None and looked[0].of == of:
        return looked[0]
    paths = changed_paths(ctx, tests_start(ctx), tree)
    side = _test_side(ctx, tree) if production == ctx.state.start else paths
    return Composed(of, paths, side, compose(ctx, tree, standing or production, side, baseline_of(ctx).layout).tree)


def _with_files_of(first: Observation, after: Observation, paths: Collection[str]) -> Observation:
    records = {entry: one for entry, one in first.records.items() if one.path not in paths}
    records |= {entry: one for entry, one in after.records.items() if one.path in paths}
    return first.model_copy(update={"records": records})


async def _first_look(ctx: Context, over: Composed) -> Observation:
    """Return the tests over the old code; what the report's own check has measured is not measured again."""
    looked, ctx.learnt.looked = ctx.learnt.looked, None
    if looked is not None and looked[0].tree == over.tree:
        return looked[1]
    return await measure(ctx, over.tree, Selection(files=frozenset(over.paths)), what=_words(ctx, over)[0])


def _words(ctx: Context, over: Composed) -> tuple[str, str]:
    """Return what is measured, of both runs, in words: tests that a task adds to code as it is are to pass there."""
    if ctx.state.task.spec.red_base == "start" and over.of[1] == ctx.state.start:
        return "tests over the code before the run", "new tests over the code before the run again, traced"
    if adds_tests(ctx.task()):
        return "tests over the code as it is, those that are added too", "the added tests over it again, traced"
    return "tests over the old code, new ones must fail", "new tests over the old code again, traced, must fail"


async def look(ctx: Context, tree: str) -> Observation:
    """Return the tests of *tree* over the code that they were written over; it is kept for whoever judges them.

    With an error for each file that is not loaded.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    production = tests_start(ctx)
    over = composed_red(ctx, tree, production)
    ctx.learnt.looked = over, await _first_look(ctx, over)
    return with_undeclared(ctx, ctx.learnt.looked[1], over.tree, production, over.side)


async def wrong_ids(ctx: Context, report: Report, tree: str) -> Malformed | None:
    """Return what is wrong with the ids in @test's report, before its tests are judged; the first look is kept."""
    if not isinstance(report, ReadyTests):
        return None
    is_of_start = ctx.state.task.spec.red_base == "start"
    over = composed_red(ctx, tree, ctx.state.start if is_of_start else tests_start(ctx))
    try:
        after = await _first_look(ctx, over)
    except UnmeasurableError:  # the step finds it, too, and says so
        return None
    ctx.learnt.looked = over, after
    return criteria.wrong_ids(report, after, is_changed=tree != tests_start(ctx))


async def passes_already(ctx: Context, tree: str, path: str) -> bool:
    """Return whether all tests of a new file pass over the code before; the look at it is kept for who judges them.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    over = composed_red(ctx, tree, tests_start(ctx))
    after = await _first_look(ctx, over)
    ctx.learnt.looked = over, after
    mine = [record for record in after.records.values() if record.path == path]
    return bool(mine) and path not in after.unread and all(record.outcome in PASSING for record in mine)


def _expected(report: ReadyTests, seen: Observation, *, may_fail: bool) -> dict[str, red_classes.Expected]:
    """Return what @test announced; not of failing tests where production lacks more than this task brings."""
    records = seen.records.values() if may_fail else ()
    failing = {name for r in records if r.ran and r.outcome not in PASSING for name in (r.id, r.function)}
    return {named.id: named.expected for named in report.tests if named.id not in failing}


def _only_deletes(ctx: Context, task: Task, paths: Iterable[str], tree: str) -> bool:
    """Return whether all that was changed are files that the task deletes, and they are gone."""
    deleted = {file.path for file in task.test_files if file.action == "delete"}
    left = {entry.path for entry in ctx.repository.entries(tree)}
    return all(path in deleted and path not in left for path in paths)


def _test_side(ctx: Context, tree: str) -> tuple[str, ...]:
    """Return every path that @test changed in this run so far, this task included."""
    paths: set[str] = set()
    for task in ctx.state.tasks.values():
        if task.start and task.red and task.id != ctx.state.task.id:
            paths.update(changed_paths(ctx, task.stubs or task.start, task.red))
    paths.update(changed_paths(ctx, tests_start(ctx), tree))
    return tuple(sorted(paths))
