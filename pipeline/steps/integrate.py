"""INTEGRATE (phase 7): a task that was worked on beside others is measured over what was accepted meanwhile.

What is accepted was measured as it is accepted: RED is shown over the head, and GREEN with the task's work over it, so
that the evidence of each commit fits its parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.judge.reports.markdown import bullets
from pipeline.judge.reports.untrusted_text import fenced
from pipeline.judge.reports.work_reports import ReadyTests
from pipeline.matrix.routing.state import Event, TaskState, Trees
from pipeline.progress import few
from pipeline.repo import Repository, TreeChange
from pipeline.run.summary_facts import task_words
from pipeline.steps import stub, write_tests
from pipeline.steps.asking.dispatches import last_answer
from pipeline.steps.asking.proofs import proof_of_task, report_of
from pipeline.steps.evidence.green import measure_candidate, not_green_md, not_green_note, record_green
from pipeline.steps.evidence.in_lane import InLane, red_over_head, still_holds
from pipeline.steps.evidence_records import baseline_of, read_evidence, write_evidence
from pipeline.steps.publication.trees import put_on
from pipeline.steps.wanted_stubs import waiting_name
from pipeline.testing.measure import kept_runs
from pipeline.vocabulary import Role, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.judge.evidence.observation import Layout
    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context
    from pipeline.testing.measure.task_evidence import TaskEvidence


@dataclass(frozen=True)
class OverHead:
    """The trees of a task over the head, without the files that were changed there too, by tests and by production."""

    trees: Trees
    tests_in_the_way: tuple[str, ...] = ()
    code_in_the_way: tuple[str, ...] = ()


def over_head(repository: Repository, task: TaskState, head: str, layout: Layout) -> OverHead:
    """Return the task's work over *head*; a file that both changed is the head's.

    Two changes of one file are not merged: what comes of that nobody wrote.
    """
    start = task.start or head
    stubs, _ = _put(repository, head, start, task.stubs)
    red, in_tests = _put(repository, head, start, task.red)
    code, in_code = _put(repository, head, start, task.candidate)
    tests = tuple(path for path in in_tests if layout.is_test_side(path))
    trees = Trees(start=head, stubs=stubs, tests=red, red=None if tests else red, candidate=code)
    return OverHead(trees, tests, tuple(path for path in dict.fromkeys((*in_tests, *in_code)) if path not in tests))


def _put(repository: Repository, head: str, start: str, tree: str | None) -> tuple[str | None, tuple[str, ...]]:
    if tree is None:
        return None, ()
    put = put_on(repository, head, start, tree)
    met = (*put.conflicts, *put.merged)
    return (_as_in(repository, put.tree, head, put.merged) if put.merged else put.tree), met


def _as_in(repository: Repository, tree: str, other: str, paths: Iterable[str]) -> str:
    """Return a tree in which these files are those of another."""
    names = tuple(paths)
    there = {entry.path: entry for entry in repository.entries(other, *names)}
    return repository.build_tree(tree, [TreeChange(path, there.get(path)) for path in names])


_SHOWN: Final = 30_000
"""Characters of a change that is left out: more of it helps nobody to make it again."""
_RED: Final = frozenset(
    {Signal.RED, Signal.DISPUTED, Signal.CHANGED_OLD_TEST, Signal.TESTS_KEPT, Signal.TESTS_DOUBTFUL}
)
"""What tests over the head may come to: whether they are the right ones was judged when they were written."""


async def run(ctx: Context) -> Event:
    """Return whether the task can be accepted over the head, or what is in its way there."""
    state, head = ctx.state.task, ctx.state.head
    if state.start == head:
        return Event(signal=Signal.ACCEPTED, tree=state.candidate, note="over what it began with")
    task, put = ctx.task(), over_head(ctx.repository, state, head, baseline_of(ctx).layout)
    others = [id_ for id_ in ctx.state.accepted if id_ not in (state.over or ())]
    beside = ", ".join(task_words(ctx.state, id_) for id_ in others)
    if put.tests_in_the_way:
        return _in_the_way(ctx, Signal.TEST_CONFLICT, put, put.tests_in_the_way, beside)
    there = ctx.supposing(ctx.state.with_task(state.put_over(put.trees, ctx.state.accepted)))
    if put.trees.stubs is not None:
        over = await stub.check(there, task, head, put.trees.stubs)
        there.write_json(waiting_name(task.id), [*over.waiting, *over.sentences])
    evidence, reached = read_evidence(ctx, task.id), kept_runs.reach(ctx.checkout.root)
    gone = await _red(there, task, put.trees, state)
    if gone is not None:
        return gone
    if put.code_in_the_way:
        return _in_the_way(ctx, Signal.CONFLICT, put, put.code_in_the_way, beside)
    in_lane = still_holds(there, state, evidence, reached) if evidence is not None else None
    return await _green(there, task, put.trees, beside, in_lane)


def _in_the_way(ctx: Context, signal: Signal, put: OverHead, paths: tuple[str, ...], beside: str) -> Event:
    """Return that files of the task were changed by a task that was accepted meanwhile; its own change is told."""
    task = ctx.state.task
    patch = ctx.repository.patch(task.start or put.trees.start, task.candidate or put.trees.start, *paths)
    lines = bullets(f"{path}: changed by {beside}, too" for path in paths)
    words = (
        f"# Task {task.id} over what was accepted meanwhile: {signal}\n\n{lines}\n\n"
        f"These files are as they were accepted; the rest of your work is in place. What you had changed in them:\n\n"
        f"{fenced(patch[:_SHOWN], 'diff')}\n"
    )
    name = ctx.write(f"judgements/{ctx.lane.visit:03}-integrate.md", words)
    note = f"{few(paths)}: {beside} changed it, too"
    return Event(signal=signal, trees=put.trees, note=note, evidence=(name,))


async def _red(ctx: Context, task: Task, trees: Trees, was: TaskState) -> Event | None:
    """Measure RED over the head, and keep it as the task's evidence; return the event of a RED that is gone."""
    evidence = read_evidence(ctx, task.id)
    answer, proof = last_answer(ctx, Step.WRITE_TESTS, Role.TEST, "write-tests"), proof_of_task(ctx)
    report = answer.report if answer is not None else None
    if answer is None and proof is not None:
        report = report_of(proof[0], task)
    if evidence is None or not ctx.state.task.testable or not isinstance(report, ReadyTests):
        return None
    known = await red_over_head(ctx, task, was, evidence)
    if known is not None:
        write_evidence(ctx, known)
        return None
    named = answer.evidence if answer is not None else None
    words = f"evidence/red-{ctx.lane.visit:03}-integrate.md"
    event = await write_tests.measured(ctx, task, report, trees.red or trees.start, words, named)
    found = read_evidence(ctx, task.id)
    # what @check agreed to is in the task by now: an old test changed without leave over the head is another one
    if found is not None and not found.changed_old and (event.signal in _RED or _still_kept(evidence, found)):
        kept = {name: getattr(evidence, name) for name in ("judged_by", "changed_old")}
        write_evidence(ctx, found.model_copy(update=kept))
        return None
    without = trees.model_copy(update={"red": None})
    note = f"over what was accepted meanwhile: {event.signal}: {event.note}"
    return Event(signal=Signal.RED_GONE, trees=without, note=note, evidence=event.evidence)


def _still_kept(before: TaskEvidence, now: TaskEvidence) -> bool:
    """Return whether tests that @check kept, since they passed and noticed faults, do so over the head as well."""
    kept = before.ledger is not None and not before.ledger.red and before.noticing is not None
    return kept and now.noticing is not None and now.noticing.notices


async def _green(ctx: Context, task: Task, trees: Trees, beside: str, in_lane: InLane | None) -> Event:
    """Measure the task's work over the head, and keep it as the task's evidence where it is GREEN."""
    measured = await measure_candidate(ctx, task, trees.candidate or trees.start, in_lane)
    if measured.green:
        found = await record_green(ctx, task, measured)
        match found.signal:
            case Signal.GREEN | Signal.UNNOTICED_FAULTS:  # @test was asked about these as often as it may be
                note = f"over {beside}: {found.note}"
                return Event(
                    signal=Signal.ACCEPTED, tree=trees.candidate, trees=trees, note=note, evidence=found.evidence
                )
            case Signal.TEST_DESIGN:
                without = trees.model_copy(update={"red": None})
                return Event(signal=Signal.RED_GONE, trees=without, note=found.note, evidence=found.evidence)
            case _:
                return Event(signal=Signal.NOT_GREEN, trees=trees, note=found.note, evidence=found.evidence)
    if measured.hidden and not measured.broken:
        signal = Signal.HIDDEN_REGRESSION
    else:
        signal = Signal.REGRESSION if measured.broken else Signal.NOT_GREEN
    words = not_green_md(task, signal, measured)
    name = ctx.write(f"judgements/{ctx.lane.visit:03}-integrate.md", words)
    what = few(measured.broken or measured.in_the_way or measured.verdict.stale_xfail)
    what = not_green_note(signal, measured) if signal is Signal.HIDDEN_REGRESSION else what
    return Event(signal=signal, trees=trees, note=f"over {beside}: {what}", evidence=(name,))
