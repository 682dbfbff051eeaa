"""WRITE_TESTS (phase 6): @test writes failing tests; RED is measured by us, twice, never believed (matrix 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pipeline.dispatch.request import Request
from pipeline.evidence import classify
from pipeline.evidence.ledger import RedVerdict, derive_new_ids, judge_red, may_change
from pipeline.evidence.moves import carried, moved
from pipeline.evidence.observation import PASSING
from pipeline.languages.protocol import Selection
from pipeline.measure.absent import with_absent
from pipeline.measure.around_tests import changed_without_a_change
from pipeline.measure.asked_tests import fed_otherwise, is_borrowed, named_by, taken_up_by
from pipeline.measure.composing import compose, shares_file
from pipeline.measure.measuring import UnmeasurableError, changed_paths, measure
from pipeline.measure.moving import as_if_renamed, renamed
from pipeline.measure.provisional import laid_bare
from pipeline.measure.stand_ins import with_stand_ins
from pipeline.reports import reduce
from pipeline.reports.fields import Evidence
from pipeline.reports.foreign import block
from pipeline.reports.markdown import bullets
from pipeline.reports.work import Blocked, NotTestable, ReadyTests
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Role, Signal
from pipeline.steps import criteria
from pipeline.steps.asking import Answer, ask
from pipeline.steps.evidence_files import TaskEvidence, write_evidence
from pipeline.steps.facts import baseline_md
from pipeline.steps.grants import test_scope
from pipeline.steps.handing import handed_on
from pipeline.steps.loosening import cases_from_production
from pipeline.steps.plan import planned
from pipeline.steps.reworking import loosened_or_reworked
from pipeline.steps.sanity import baseline_of
from pipeline.steps.stub import scaffolds, symbols_of
from pipeline.steps.tools import project_tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.evidence.observation import Observation
    from pipeline.policy.scope import TestScope
    from pipeline.reports.tasks import Task
    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return the measured signal of @test's work."""
    task = ctx.task()
    scope = test_scope(ctx, task)
    base = _base(ctx, scope)
    artifacts = {
        "task": [ctx.path(f"task-{task.id}.md")],
        "plan": [ctx.path("plan.md")],
        "baseline": [ctx.path(ctx.write("evidence/baseline.md", baseline_md(ctx)))],
    }
    artifacts |= handed_on(ctx)
    came_back = [ctx.path(name) for name in ctx.handed_words()] if ctx.lane.via else []
    if came_back:
        artifacts["findings"] = came_back
    try:
        tools = await project_tools(ctx)
    except UnmeasurableError as error:
        return error.event
    request = Request(
        Role.TEST,
        "write-tests",
        base,
        artifacts=artifacts,
        grants=scope.files,
        tests=scope,
        tools=tools,
        accept=partial(criteria.unshown, task),
    )
    answer = await ask(ctx, request)
    if isinstance(answer, Event):
        return answer
    tree = answer.result.tree or base
    match answer.report:
        case Blocked(needs=needs):
            if needs:
                wanted = ", ".join(need.path for need in needs)
                return Event(
                    signal=Signal.NEEDS_FILE, tree=tree, note=f"asks for {wanted}", evidence=(answer.evidence,)
                )
            return Event(signal=Signal.BLOCKED, tree=tree, note=answer.report.problem, evidence=(answer.evidence,))
        case NotTestable() as report:
            return _not_testable(ctx, report, answer, tree)
        case ReadyTests() as report:
            try:
                return await _measured(ctx, task, report, answer, tree)
            except UnmeasurableError as error:
                return error.event.model_copy(update={"tree": tree})
        case _:
            raise TypeError(f"kind write-tests was answered by {type(answer.report).__name__}")


def _base(ctx: Context, scope: TestScope) -> str:
    """Return what @test starts from: task_start (with stubs), its own last tests over it (matrix 4)."""
    task = ctx.state.task
    start = _start(ctx)
    if task.tests is None:
        return start
    # a seam may have been added since: only the test side of the last tests is theirs
    paths = changed_paths(ctx, start, task.tests)
    layout = baseline_of(ctx).layout
    side = [path for path in paths if scope.covers(path) or shares_file(path, layout)]
    return compose(ctx, task.tests, start, side, layout).tree


def _start(ctx: Context) -> str:
    task = ctx.state.task
    return task.stubs or task.start or ctx.state.head


def _not_testable(ctx: Context, report: NotTestable, answer: Answer, tree: str) -> Event:
    """Return NOT_TESTABLE, or MISSING_SEAM when the seam lies in files of the plan (matrix 6)."""
    files = {file.path for file in planned(ctx).files}
    signal = reduce.write_tests(report, reduce.WriteTestsFacts(), plan_files=files)
    evidence = TaskEvidence(
        task=ctx.state.task.id,
        tests_tree=ctx.state.task.start or ctx.state.head,
        production=ctx.state.task.start or ctx.state.head,
        test_paths=(),
        command=(),
        not_testable=report.model_dump(mode="json", include={"reason", "attempted", "future_seam", "seam_files"}),
    )
    name = write_evidence(ctx, evidence)
    return Event(signal=signal, tree=tree, note=report.reason, evidence=(answer.evidence, name))


@dataclass(frozen=True)
class _Measured:
    verdict: RedVerdict
    after: Observation
    production: str
    test_paths: tuple[str, ...]
    missing: tuple[str, ...]
    borrowed: bool


async def _measured(ctx: Context, task: Task, report: ReadyTests, answer: Answer, tree: str) -> Event:
    measured = await _measure_red(ctx, task, report, tree)
    verdict = measured.verdict
    lines, reworked = loosened_or_reworked(ctx, as_if_renamed(ctx, _start(ctx), verdict.ledger.renames), tree)
    made = {change.path for change in task.files} - {change.path for change in task.test_files}
    told = tuple(dict.fromkeys((*lines, *cases_from_production(ctx, made, tree, measured.test_paths))))
    facts = reduce.WriteTestsFacts(
        env_broken=verdict.env_broken is not None,
        any_change=bool(measured.test_paths or verdict.ledger.red),
        borrowed=measured.borrowed,
        all_new_pass=verdict.all_new_pass,
        structural_only=verdict.structural_only,
        illegal_red=bool(verdict.illegal or measured.missing),
        red_unstable=bool(verdict.unstable),
        changed_old_test=bool(verdict.changed_old or verdict.removed_old),
    )
    signal = reduce.write_tests(report, facts, plan_files=())
    evidence = TaskEvidence(
        task=task.id,
        tests_tree=tree,
        production=measured.production,
        test_paths=measured.test_paths,
        command=measured.after.command,
        ledger=None if verdict.only_removed and not verdict.only_moved else verdict.ledger,
        not_testable={"reason": "tests are removed"} if verdict.only_removed else None,
        changed_old=(*verdict.changed_old, *verdict.removed_old),
        loosened=told,
        criteria=report.criteria,
        reworked=reworked,
    )
    names = [answer.evidence, write_evidence(ctx, evidence)]
    words = _red_md(task, signal, measured, report, told, reworked)
    names.append(ctx.write(f"evidence/red-{answer.result.dispatch[:3]}.md", words))
    return Event(signal=signal, tree=tree, note=_note(signal, measured, report), evidence=tuple(names))


async def _measure_red(ctx: Context, task: Task, report: ReadyTests, tree: str) -> _Measured:
    """Return what the tests show over production without the behaviour.

    A fix of the tests alone cannot be RED over the result: the behaviour is there already (matrix 4). It is measured
    over the start of the run; where that lacks what the tests are compiled with, over the result with stubs in the
    place of all that the run brought (ADR-R82). Where an old file of tests imports what is new, over production with a
    stand-in for that (ADR-R106).
    """
    start = _start(ctx)
    if ctx.state.task.spec.red_base != "start":
        found = await _red_over(ctx, [task], report, tree, start)
        hiding = {one.id for one in found.verdict.illegal if one.cls is classify.RedClass.IMPORT_HIDES_TESTS}
        errors = [error for error in found.after.collection_errors if error.path in hiding]
        standing = with_stand_ins(ctx, [task], start, errors) if errors else None
        return found if standing is None else await _red_over(ctx, [task], report, tree, start, standing)
    # over the start, what the tasks before the fix introduced is missing too
    tasks = [task, *(ctx.task(done.id) for done in ctx.state.done_tasks)]
    found = await _red_over(ctx, tasks, report, tree, ctx.state.start)
    refused = {refusal.id for refusal in found.verdict.illegal}
    if all(error.path not in refused for error in found.after.collection_errors):
        return found
    bare = laid_bare(ctx, tasks, tree, ctx.state.start, baseline_of(ctx).layout)
    return found if bare is None else await _red_over(ctx, tasks, report, tree, bare)


async def _red_over(
    ctx: Context, tasks: Sequence[Task], report: ReadyTests, tree: str, production: str, standing: str | None = None
) -> _Measured:
    """Return what the tests show over *production*; over *standing*, if given, which is that with stand-ins."""
    task, start = tasks[0], _start(ctx)
    paths = changed_paths(ctx, start, tree)
    side = _test_side(ctx, tree) if production == ctx.state.start else paths
    composed = compose(ctx, tree, standing or production, side, baseline_of(ctx).layout).tree
    # before the stubs: with them, tests that have to change need not compile
    bare = start if start != ctx.state.task.stubs else ctx.state.task.start or start
    first = await measure(ctx, bare, what="RED, all tests before")
    after = await measure(ctx, composed, Selection(files=frozenset(paths)), what="RED, 1 of 2")
    allowed = frozenset(test.id for test in task.tests_to_change)
    asked = named_by(task, first) | taken_up_by(task, report, paths, first)
    renames = renamed(ctx, task, start, tree)
    before = carried(first, after, moved(first.records, after.records, renames))
    fed = fed_otherwise(report, before, after)
    asked |= fed
    # cases from a helper outside the changed files; old tests that compare with one of them
    wanted = {*derive_new_ids(before, after), *(r.id for r in after.records.values() if may_change(r, allowed))}
    wanted |= asked & after.records.keys()
    if any(not after.records[entry].ran for entry in wanted):
        ran = {record.id for record in after.records.values() if record.ran}
        after = await measure(ctx, composed, Selection(ids=frozenset(wanted | ran)), what="RED, 1 of 2 with cases")
    new = frozenset(derive_new_ids(before, after, allowed)) | (asked & after.records.keys())
    after = with_absent(ctx, after, composed, production, side)
    traced = await measure(ctx, composed, Selection(ids=new), trace=True, what="RED, 2 of 2, traced") if new else after
    seen = {entry: traced.records[entry] for entry in new if entry in traced.records}
    merged = after.model_copy(update={"records": {**after.records, **seen}})
    symbols = tuple(symbol for one in tasks for symbol in symbols_of(one))
    has_stubs = ctx.state.task.stubs is not None and production == start
    is_bare = production not in {start, ctx.state.start}
    unread = set(filter(after.layout.is_test, before.unread))
    context = classify.Context(
        symbols=symbols,
        # a file that could not be read before hides no test
        existing=frozenset(entry.path for entry in ctx.repository.entries(production)) - unread,
        layout=after.layout,
        task_files=frozenset(change.path for one in tasks for change in one.files),
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
    around = changed_without_a_change(ctx, after.layout, before.records, as_if_renamed(ctx, start, renames), tree)
    more = [e for e in (*around, *fed) if e in after.records and not may_change(before.records[e], allowed)]
    if verdict.only_removed and not _only_deletes(ctx, task, set(paths) - {*renames, *renames.values()}, composed):
        # leave to change is no leave to remove, and beside a removal nothing else may change: @check looks at it
        more += verdict.only_removed
    verdict = verdict.model_copy(update={"changed_old": tuple(dict.fromkeys((*verdict.changed_old, *more)))})
    borrowed = is_borrowed(task, asked & verdict.ledger.red.keys(), before)
    return _Measured(verdict, after, standing or production, paths, criteria.missing_tests(report, after), borrowed)


def _expected(report: ReadyTests, seen: Observation, *, may_fail: bool) -> dict[str, classify.Expected]:
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
    paths.update(changed_paths(ctx, _start(ctx), tree))
    return tuple(sorted(paths))


def _note(signal: Signal, measured: _Measured, report: ReadyTests) -> str:
    verdict = measured.verdict
    match signal:
        case Signal.ENV_BROKEN:
            return verdict.env_broken or ""
        case Signal.ILLEGAL_RED | Signal.STRUCTURAL_ONLY:
            why = [*(refusal.message for refusal in verdict.illegal[:3]), *measured.missing[:3]]
            return "; ".join(why) or "no test was changed"
        case Signal.RED_UNSTABLE:
            return f"two runs disagree on {', '.join(verdict.unstable[:3])}"
        case Signal.CHANGED_OLD_TEST:
            return f"changed or removed: {', '.join((*verdict.changed_old, *verdict.removed_old)[:3])}"
        case Signal.DISPUTED:
            return report.escalation_reason or (
                "a failing test that the task does not name is taken as its own"
                if measured.borrowed
                else "@test asks @check to look"
            )
        case _:
            if verdict.only_removed:
                return f"{len(verdict.only_removed)} test(s) removed"
            if verdict.only_moved:
                return f"{len(verdict.ledger.guards)} test(s) moved"
            red = len(verdict.ledger.red)
            return f"{red} test(s) RED" + (f", {len(verdict.ledger.guards)} guard(s)" if verdict.ledger.guards else "")


def _red_md(
    task: Task,
    signal: Signal,
    measured: _Measured,
    report: ReadyTests,
    told: Sequence[str],
    reworked: Sequence[str],
) -> str:
    """Return what was measured, in words for the next agent: @test when it goes back, @check when it is judged."""
    verdict = measured.verdict
    head = f"# RED measurement of task {task.id}: {signal}\n\nCommand: `{' '.join(measured.after.command)}`"
    said = [f"refused: {refusal.cls or 'no RED'}: {refusal.message}" for refusal in verdict.illegal]
    said += [f"refused: {line}" for line in measured.missing]
    said += [f"unstable: {entry}" for entry in verdict.unstable]
    said += [f"existing test changed without leave: {entry}" for entry in verdict.changed_old]
    said += [f"existing test removed without leave: {entry}" for entry in verdict.removed_old]
    said += [f"loosened: {line}" for line in told]
    said += [f"rewritten on order: {line}" for line in reworked]
    said += [f"{entry}: {red.cls}: {red.message}" for entry, red in sorted(verdict.ledger.red.items())]
    said += [f"{entry}: passes (guard)" for entry in sorted(verdict.ledger.guards)]
    if verdict.all_new_pass:
        said.append("every new test passes on the code as it is")
    elif verdict.structural_only and not verdict.illegal:
        said.append("every new test passes on stubs: none of them looks at what the new code does")
    asks = f"@test asks: {block(report.escalation_reason)}" if report.escalation_reason.strip() else ""
    return "\n\n".join(part for part in (head, bullets(said), asks) if part) + "\n"
