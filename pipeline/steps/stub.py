"""STUB and SEAM (phase 6): @make scaffolds what is new, so that tests compile, or opens a seam, so that @test can work.

What is no stub is read, not believed (ADR-7); nothing may break, and no test is written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pipeline.agents.dispatch.request import Request
from pipeline.judge.evidence.compare import judge_green
from pipeline.judge.evidence.red import may_change
from pipeline.judge.policy.rights import Action, Grant
from pipeline.judge.reports import signal_of_report
from pipeline.judge.reports.markdown import bullets
from pipeline.judge.reports.untrusted_text import block
from pipeline.judge.reports.work_reports import CannotProceed, Complete, Incomplete, MakeReport
from pipeline.matrix.routing.state import Event
from pipeline.progress import few
from pipeline.run.files import to_json
from pipeline.steps.asking.artifacts import came_back_tree, claim_of, handed_on
from pipeline.steps.asking.dispatches import ask
from pipeline.steps.asking.grants import production_grants, project_tools, test_scope
from pipeline.steps.evidence_records import baseline_of, kept_tests, read_evidence
from pipeline.steps.wanted_stubs import stub_of, symbols_of, waiting_name
from pipeline.testing.languages.projects.combined import for_files
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.measuring import changed_paths, measure, measure_types
from pipeline.testing.measure.red import texts
from pipeline.testing.measure.regression import confirm
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.judge.evidence.observation import CollectionError
    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context
    from pipeline.testing.measure.measuring import MeasurementContext


_SHOWN: Final = 3


@dataclass(frozen=True)
class Checked:
    """What is wrong with a stub pass, in sentences: with the stubs, with the types, with the tests that were there."""

    faults: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    """Tests that the task may change and that do not hold over the stubs: a signature is another one."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return what @make has to mend, each in words."""
        return (
            *self.faults,
            *(f"does not compile: {line}" for line in self.errors),
            *(f"breaks {test}" for test in self.broken),
        )


async def make_stubs(ctx: Context) -> Event:
    """Return STUBBED when every new symbol is there and is a stub, all compiles, and what passed still passes."""
    task = ctx.task()
    start = ctx.state.task.start or ctx.state.head
    artifacts = {
        "task": [ctx.path(f"task-{task.id}.md")],
        **handed_on(ctx),
        "diagnosis": [ctx.path(name) for name in ctx.handed_words()] if ctx.lane.via else [],
    }
    base = came_back_tree(ctx) or start
    request = Request(
        Role.MAKE,
        "stub",
        base,
        artifacts=artifacts,
        grants=production_grants(task),
        tests=test_scope(ctx, task),
        tools=await project_tools(ctx),
        extra=f"The body of each stub is exactly {stub_of(ctx, task)}.",
    )
    answer = await ask(ctx, request)
    if isinstance(answer, Event):
        return answer
    report = answer.form(Complete, Incomplete, CannotProceed)
    tree = answer.result.tree or base
    checked = await check(ctx, task, start, tree)
    dirty = bool(checked.faults or checked.broken)
    signal = signal_of_report.stub(report, complete=not checked.errors, dirty=dirty)
    text = bullets(checked.sentences) if checked.sentences else "every new symbol is a stub, and everything compiles"
    ctx.write_json(waiting_name(task.id), list(checked.waiting))  # with any, they are no commit of their own
    name = ctx.write(
        f"evidence/stub-{answer.result.dispatch[:3]}.md", f"# Stubs of task {task.id}: {signal}\n\n{text}\n"
    )
    return Event(signal=signal, tree=tree, note=_note(signal, report, checked), evidence=(name, answer.evidence))


async def check(ctx: Context, task: Task, start: str, tree: str) -> Checked:
    """Return what is wrong with the stubs of *tree*, made over *start*.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    faults = _faults(ctx, task, start, tree)
    if faults:  # what is no stub is not run
        return Checked(faults=faults)
    kept, allowed = kept_tests(ctx), frozenset(test.id for test in task.tests_to_change)
    theirs = frozenset(record.path for record in kept.values() if may_change(record, allowed))
    errors = await new_errors(ctx, start, tree)
    others = tuple(error for error in errors if not _is_of_tests(error, theirs, ctx))
    if others:
        return Checked(errors=tuple(block(f"{one.path}: {one.fault.raised.message}") for one in others))
    after = await measure(ctx, tree, what="the whole suite over the stubs, must pass as before")
    verdict = judge_green(None, after, kept, seen_failing=kept_runs.seen_failing(ctx.checkout.root, tree))
    suspects = await confirm(ctx, verdict.regressions, tree, start, after, start=ctx.state.start)
    # tests that do not compile beside one that has to change are measured at GREEN
    lost = () if errors else verdict.missing
    broken = {*suspects.broken, *lost}
    waiting = {test for test in broken if may_change(kept[test], allowed)}
    return Checked(
        broken=tuple(sorted(broken - waiting)),
        waiting=tuple(sorted({*waiting, *(verdict.missing if errors else ())})),
    )


async def new_errors(ctx: MeasurementContext, start: str, tree: str) -> tuple[CollectionError, ...]:
    """Return what does not compile in files that did before the pass: what tests can load is another question.

    Args:
        ctx: The run, or what measures without one.
        start: The tree that the pass began with.
        tree: The tree that it made.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    found = (await measure_types(ctx, tree)).collection_errors
    known = (await measure_types(ctx, start)).unread if found else frozenset[str]()
    return tuple(error for error in found if error.path not in known)


def _is_of_tests(error: CollectionError, paths: frozenset[str], ctx: Context) -> bool:
    """Return whether what does not compile are tests, in a file of which the task may change some."""
    frame = error.fault.last_own_frame
    return error.path in paths and frame is not None and baseline_of(ctx).layout.is_test_side(frame.path)


def _faults(ctx: Context, task: Task, start: str, tree: str) -> tuple[str, ...]:
    """Return what the syntax says against the pass, and what changed that is no source."""
    changed = changed_paths(ctx, start, tree)  # the gate has refused every change of a test
    sources = [p for p in changed if p.endswith(ctx.toolchain.sources) and for_files(ctx.toolchain, [p])]
    others = [path for path in changed if path not in sources and not ctx.toolchain.is_control_path(path)]
    found = ctx.toolchain.stub_faults(texts(ctx, start, sources), texts(ctx, tree, sources), symbols_of(task))
    return (*map(str, found), *(f"{path} is no source: leave it to the implementation" for path in others))


def _note(signal: Signal, report: MakeReport, checked: Checked) -> str:
    if signal is Signal.STUBBED:
        return "stubs compile, and nothing else changed"
    if checked.sentences:
        return few(checked.sentences, _SHOWN, "; ")
    return claim_of(report)


async def make_seam(ctx: Context) -> Event:
    """Return SEAM_DONE when the seam is there and every test is kept, or why not."""
    task = ctx.task()
    start = ctx.state.task.stubs or ctx.state.task.start or ctx.state.head
    base = came_back_tree(ctx) or start
    said = _said_of_seam(ctx)
    artifacts = {
        "task": [ctx.path(f"task-{task.id}.md")],
        "plan": [ctx.path("plan.md")],
        **ctx.artifact("report", f"evidence/seam-{task.id}.json", to_json(said) if said else ""),
        "diagnosis": [ctx.path(name) for name in ctx.handed_words()],
    }
    # the files that @test named for the seam; our code has checked that they are the plan's
    files = cast("list[object]", said.get("seam_files") or [])
    named = {grant.path for grant in production_grants(task)}
    grants = (
        *production_grants(task),
        *(Grant(path, Action.MODIFY) for path in map(str, files) if path not in named),
    )
    scope, tools = test_scope(ctx, task), await project_tools(ctx)
    request = Request(Role.MAKE, "seam", base, artifacts=artifacts, grants=grants, tests=scope, tools=tools)
    answer = await ask(ctx, request)
    if isinstance(answer, Event):
        return answer
    report = answer.form(Complete, Incomplete, CannotProceed)
    tree = answer.result.tree or base
    regressions: tuple[str, ...] = ()
    if tree != start:
        after = await measure(ctx, tree, what="the whole suite over the seam, must pass as before")
        unread, failed = baseline_of(ctx).unread, kept_runs.seen_failing(ctx.checkout.root, tree)
        verdict = judge_green(None, after, kept_tests(ctx), unread_before=unread, seen_failing=failed)
        suspects = await confirm(ctx, verdict.regressions, tree, start, after, start=ctx.state.start)
        regressions = (*suspects.broken, *verdict.missing, *verdict.uncollected)
    signal = signal_of_report.seam(report, changed=tree != start, regression=bool(regressions))
    note = f"breaks {few(regressions)}" if signal is Signal.REGRESSION else ""
    return Event(signal=signal, tree=tree, note=note, evidence=(answer.evidence,))


def _said_of_seam(ctx: Context) -> Mapping[str, object]:
    """Return what @test says of the seam: it is the reason for this step, whoever was asked since."""
    evidence = read_evidence(ctx, ctx.state.task.id)
    return (evidence.not_testable or {}) if evidence is not None else {}
