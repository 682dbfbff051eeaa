"""BUILD (phases 6 and 7): one writer makes tests and code; we part them by side, and measure RED and GREEN of each.

The tests are put over the code as it was before, where each must fail for a legal reason, in two runs; the whole must
be GREEN, and its probes are tried as ever. One dispatch is one candidate: what is wrong with it comes back measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.agents.dispatch.request import Request
from pipeline.judge.policy.rights import Action, TestScope
from pipeline.judge.reports import signal_of_report
from pipeline.judge.reports.fields import FileChange, Report, Symbol
from pipeline.judge.reports.taskfile import task_md
from pipeline.judge.reports.tasks import Task, task_as_done
from pipeline.judge.reports.untrusted_text import block
from pipeline.judge.reports.work_reports import BuildReport, Built, BuiltUntested, Unbuilt
from pipeline.matrix.routing.state import Event, Trees
from pipeline.matrix.scheduling.patterns import parsed
from pipeline.run.drafts import task_file, write_draft
from pipeline.steps import write_tests
from pipeline.steps.asking import criteria
from pipeline.steps.asking.artifacts import baseline_md
from pipeline.steps.asking.dispatches import Answer, ask
from pipeline.steps.asking.grants import scope_without_task
from pipeline.steps.evidence import green
from pipeline.steps.evidence.red import look, wrong_ids
from pipeline.steps.evidence_records import baseline_of, by_their_names, read_evidence, write_evidence
from pipeline.testing.measure import project_checks
from pipeline.testing.measure.composed_trees import compose, shares_file, with_other_code
from pipeline.testing.measure.measuring import UnmeasurableError, changed_paths
from pipeline.testing.measure.project_tools import tools_for
from pipeline.testing.measure.red import texts, with_own_signatures
from pipeline.testing.measure.task_evidence import TaskEvidence
from pipeline.vocabulary import Loop, Role, Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.reports.decode import Malformed
    from pipeline.steps.context import Context


_KEPT: Final = frozenset({Signal.TESTS_KEPT, Signal.TESTS_DOUBTFUL})
"""Tests that are all that was made, and pass over the code as it is: what they notice stands in the place of RED."""
_NAMES: Final = {Loop.HUMAN: "feedback", Loop.FINAL_REVIEW: "findings"}
"""What the reason for asking again is called, by the loop; else it is what was measured."""


@dataclass(frozen=True)
class Parted:
    """A candidate by its sides.

    Args:
        tree: All of it.
        tests: Its tests over the code as it was before.
        code: The production files that it changes.
        suite: The files that it changes for its tests' sake; one that holds both is among these and `code`.
        stubs: That code with the candidate's signatures, where the tests do not compile over it as it is.
    """

    tree: str
    tests: str
    code: tuple[str, ...]
    suite: tuple[str, ...]
    stubs: str | None = None


async def run(ctx: Context) -> Event:
    """Return the measured signal of what one writer made."""
    task, start = ctx.task(), _start(ctx)
    answer = await ask(ctx, await _request(ctx, task, start))
    if isinstance(answer, Event):
        return answer
    report = answer.form(Built, Unbuilt, BuiltUntested)
    tree, layout = answer.result.tree or start, baseline_of(ctx).layout
    tree = await project_checks.fixed(ctx, start, tree, changed_paths(ctx, start, tree), layout)
    return await _measured(ctx, task, report, answer, await _compiled(ctx, parted(ctx, start, tree)))


def _start(ctx: Context) -> str:
    return ctx.state.task.start or ctx.state.head


async def _request(ctx: Context, task: Task, start: str) -> Request:
    artifacts: dict[str, list[Path]] = {
        "issue": [ctx.path("issue.md")],
        "task": [ctx.path(task_file(task.id))],
        **ctx.artifact("baseline", "evidence/baseline.md", baseline_md(ctx)),
    }
    if ctx.lane.via is not None:
        artifacts[_NAMES.get(ctx.lane.via, "measured")] = [ctx.path(name) for name in ctx.handed_words()]
    return Request(
        Role.MAKE,
        "build",
        ctx.state.task.candidate or start,
        artifacts=artifacts,
        area=tuple(map(parsed, ctx.config.solo.area)),
        tests=_scope(ctx),
        tools=await tools_for(ctx, ()),
        accept=lambda report: criteria.unshown(task, report.on_tests) if isinstance(report, Built) else None,
        verify=partial(_wrong_ids, ctx, start),
    )


def _scope(ctx: Context) -> TestScope:
    """Return what counts as a test, all of which may be changed."""
    tree = [entry.path for entry in ctx.repository.entries(ctx.run.info.start_tree)]
    return replace(scope_without_task(baseline_of(ctx), tree, ctx.toolchain.sources), writable=True)


async def _wrong_ids(ctx: Context, start: str, report: Report, tree: str) -> Malformed | None:
    if not isinstance(report, Built) or tree == start:
        return None
    sides = parted(ctx, start, tree)
    _as_done(ctx, ctx.task(), report, start, sides)
    try:
        sides = await _compiled(ctx, sides)
    except UnmeasurableError:  # the step finds it, too, and says so
        return None
    return await wrong_ids(_supposing(ctx, sides), report.on_tests, sides.tests)


def parted(ctx: Context, start: str, tree: str) -> Parted:
    """Return the sides of a candidate over what the task began with."""
    layout, scope = baseline_of(ctx).layout, _scope(ctx)
    changed = changed_paths(ctx, start, tree)
    suite = tuple(
        path for path in changed if shares_file(path, layout) or layout.is_test_side(path) or scope.takes(path)
    )
    tests = compose(ctx, tree, start, suite, layout).tree
    return Parted(tree, tests, with_other_code(ctx, tests, tree, suite, layout), suite)


async def _compiled(ctx: Context, sides: Parted) -> Parted:
    """Return the candidate with its tests over stubs that its own signatures make, where they need these to compile.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    if not sides.suite or await _loads(ctx, sides):
        return sides
    start, layout = _start(ctx), baseline_of(ctx).layout
    for kept in (True, False):  # an old body need not compile with what is new around it
        stubs = with_own_signatures(ctx, start, sides.tree, sides.suite, layout, kept=kept)
        if stubs is None:
            break
        tests = compose(ctx, sides.tree, stubs, sides.suite, layout).tree
        over = replace(sides, tests=tests, stubs=stubs)
        if await _loads(ctx, over):
            return over
    return sides


async def _loads(ctx: Context, sides: Parted) -> bool:
    return (await look(_supposing(ctx, sides), sides.tests)).unread <= baseline_of(ctx).unread


def _supposing(ctx: Context, sides: Parted) -> Context:
    """Return the same ports over a state in which the tests are accepted, and the code is the candidate."""
    state = ctx.state
    task = replace(
        state.task, stubs=sides.stubs, tests=sides.tests, red=sides.tests, candidate=sides.tree, testable=True
    )
    return ctx.supposing(state.with_task(task))


def _as_done(ctx: Context, task: Task, report: BuildReport, start: str, sides: Parted) -> Task:
    """Return the task with what the candidate makes of it, and write it down: what judges it reads its file."""
    there = {entry.path for entry in ctx.repository.entries(start)}
    left = {entry.path for entry in ctx.repository.entries(sides.tree)}

    def change(path: str) -> FileChange:
        action = Action.CREATE if path not in there else Action.MODIFY if path in left else Action.DELETE
        return FileChange(path=path, action=action)

    layout = baseline_of(ctx).layout
    sources = [path for path in sides.code if path.endswith(ctx.toolchain.sources)]
    before, after = texts(ctx, start, sources), texts(ctx, sides.tree, sources)
    named = (*ctx.toolchain.introduced(before, after), *ctx.toolchain.with_old_bodies(before, after, kept=True).changed)
    only_tests = [path for path in sides.suite if not shares_file(path, layout)]
    changed = by_their_names(ctx, report.tests_to_change) if isinstance(report, Built) else ()
    found = task_as_done(
        task,
        tuple(map(change, sides.code)),
        tuple(map(change, only_tests)),
        tuple(Symbol(name=one.name, path=one.path or None, new=one.new) for one in named),
        changed,
    )
    write_draft(ctx.run, task_file(task.id), task_md(found))
    return found


async def _measured(ctx: Context, task: Task, report: BuildReport, answer: Answer, sides: Parted) -> Event:
    """Return the signal of a candidate: what its tests show over the code before, then what all show over its code."""
    start, number = _start(ctx), answer.result.dispatch[:3]
    if sides.tree == start:
        return _event(ctx, Signal.NO_CHANGE, None, "nothing was changed", answer.evidence)
    task = _as_done(ctx, task, report, start, sides)
    there = _supposing(ctx, sides)
    if isinstance(report, BuiltUntested):
        return await _untested(ctx, task, report, answer, sides)
    tests = report.on_tests if isinstance(report, Built) else Built(result="COMPLETE").on_tests
    red = await write_tests.measured(there, task, tests, sides.tests, f"evidence/red-{number}.md", answer.evidence)
    refused = signal_of_report.red_of_build(report, red.signal)
    if refused is not None:
        return _event(ctx, refused, sides, red.note, *reversed(red.evidence))
    return await _green(there, task, report, answer, sides, kept=red.signal in _KEPT)


async def _green(
    ctx: Context, task: Task, report: Built | Unbuilt, answer: Answer, sides: Parted, *, kept: bool
) -> Event:
    """Return GREEN with the evidence kept, or what is in the way of it; the tests were accepted, or *kept*."""
    found = read_evidence(ctx, task.id)
    if found is not None:
        write_evidence(ctx, found.model_copy(update={"writers": "one"}))
    measured = await green.measure_candidate(ctx, task, sides.tree)
    shown = kept or (measured.ledger is not None and bool(measured.ledger.red))
    signal = signal_of_report.build(report, measured.facts, shown=shown, structural=bool(measured.structural))
    if signal in {Signal.GREEN, Signal.GREEN_INCOMPLETE}:
        made = await green.record_green(ctx, task, measured, answer.evidence)
        signal = signal_of_report.green_of_build(signal, made.signal)
        return _event(ctx, signal, sides, made.note, *made.evidence)
    if signal is Signal.GREEN_UNSTABLE:
        made = green.unstable(ctx, task, measured, measured.unstable, answer.evidence)
        return _event(ctx, signal, sides, made.note, *made.evidence)
    words = green.not_green_md(task, signal, measured)
    name = ctx.write(f"evidence/green-{answer.result.dispatch[:3]}.md", words)
    return _event(ctx, signal, sides, _note(signal, report, measured), name, answer.evidence)


async def _untested(ctx: Context, task: Task, report: BuiltUntested, answer: Answer, sides: Parted) -> Event:
    """Return NOT_TESTABLE where nothing is broken: whether there really is no test is for @check to say."""
    why = report.model_dump(mode="json", include={"reason", "attempted"})
    start = _start(ctx)
    evidence = TaskEvidence(
        task=task.id,
        tests_tree=start,
        production=start,
        test_paths=(),
        command=(),
        not_testable=why,
        writers="one",
    )
    name = write_evidence(ctx, evidence)
    state = ctx.state
    bare = replace(state.task, tests=None, red=None, candidate=sides.tree, testable=False)
    there = ctx.supposing(state.with_task(bare))
    measured = await green.measure_candidate(there, task, sides.tree)
    if measured.green:
        await green.record_green(there, task, measured)
        told = ctx.write(
            f"evidence/untested-{ctx.lane.visit:03}.md", f"# No test is possible\n\n{block(report.attempted)}\n"
        )
        return _event(ctx, Signal.NOT_TESTABLE, replace(sides, tests=""), report.reason, told, name, answer.evidence)
    signal = signal_of_report.build(report, measured.facts, shown=True, structural=False)
    words = ctx.write(f"evidence/green-{answer.result.dispatch[:3]}.md", green.not_green_md(task, signal, measured))
    return _event(ctx, signal, sides, _note(signal, report, measured), words, answer.evidence)


def _event(ctx: Context, signal: Signal, sides: Parted | None, note: str, *evidence: str) -> Event:
    if sides is None:
        return Event(signal=signal, note=note, evidence=evidence)
    tests = sides.tests or None
    trees = Trees(start=_start(ctx), stubs=sides.stubs, tests=tests, red=tests, candidate=sides.tree)
    return Event(signal=signal, tree=sides.tree, trees=trees, note=note, evidence=evidence)


def _note(signal: Signal, report: BuildReport, measured: green.Measured) -> str:
    if signal is Signal.ILLEGAL_RED:
        return "no test is RED over the code before"
    if signal is Signal.INCOMPLETE:
        return report.blocking_issue if isinstance(report, Unbuilt) else report.summary
    return green.not_green_note(signal, measured)
