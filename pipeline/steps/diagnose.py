"""DIAGNOSE (phase 7): @check says what is at fault; our code carries out what it grants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from pipeline.measure import kept_runs
from pipeline.reports import reduce
from pipeline.reports.decode import Malformed
from pipeline.reports.fields import Need
from pipeline.reports.reviews import Acceptance, Diagnosis
from pipeline.reports.taskfile import task_md
from pipeline.reports.tasks import amend_task, amend_tests
from pipeline.reports.untrusted_text import block, fenced
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Question, Role, Signal, Step
from pipeline.runs.drafts import task_file, write_draft
from pipeline.steps.asking import questions
from pipeline.steps.asking.judgements import already_name, asker_result, judge, judgement_md
from pipeline.steps.evidence.records import baseline_of, by_their_names, files_of, read_evidence

if TYPE_CHECKING:
    from pipeline.reports.fields import Report
    from pipeline.steps.context import Context

_NEEDS = TypeAdapter(tuple[Need, ...])


async def run(ctx: Context) -> Event:
    """Return the diagnosis as a signal, or whether the files asked for are granted."""
    if ctx.lane.ask is Question.AMEND:
        return await _amend(ctx)
    after_passes = ctx.lane.after in {Signal.PASSES_ALREADY, Signal.RED_GONE}
    of_tests = ctx.lane.origin is Step.WRITE_TESTS
    answer = await judge(
        ctx, Question.DIAGNOSE, accept=lambda report: _refused(report, after_passes=after_passes, of_tests=of_tests)
    )
    if isinstance(answer, Event):
        return answer
    if questions.is_question(answer.report):
        return questions.asked(ctx, Role.CHECK, answer)
    report = answer.report
    if not isinstance(report, Diagnosis):
        raise TypeError(f"question diagnose was answered by {type(report).__name__}")
    signal = reduce.diagnosis(report, after_passes_already=after_passes, of_tests=of_tests, notices=_notices(ctx))
    if isinstance(signal, Malformed):
        raise TypeError(f"an accepted diagnosis is malformed: {signal.sentence}")
    if report.tests_to_change:
        tests = by_their_names(ctx, report.tests_to_change)
        task = amend_tests(ctx.task(), tests, files_of(ctx, [test.id for test in tests]))
        write_draft(ctx.run, task_file(task.id), task_md(task))
    name = judgement_md(ctx, "diagnosis", block(f"{report.diagnosis}: {report.notes}"))
    if signal is Signal.ENVIRONMENT:
        # the run parks for a person to mend it: what was seen in that environment says nothing of the bytes
        for tree in filter(None, (ctx.lane.in_question, _red_tree(ctx))):
            kept_runs.forget(ctx.checkout.root, tree)
    if signal is Signal.ALREADY_DONE:
        _keep_for_review(ctx, report.notes)
    carried = tuple(ctx.handed_words())
    note = f"{report.diagnosis}" + (f": {report.notes}" if report.notes else "")
    return Event(signal=signal, note=note, evidence=(name, *carried))


def _red_tree(ctx: Context) -> str:
    evidence = read_evidence(ctx, ctx.state.task.id)
    return evidence.red_tree if evidence is not None else ""


def _notices(ctx: Context) -> bool:
    """Return whether the tests in question pass over the code as it is, and were measured to notice faults in it."""
    task = ctx.state.task
    asked = ctx.lane.after is Signal.PASSES_ALREADY and ctx.lane.origin is not Step.BUILD
    evidence = read_evidence(ctx, task.id) if asked else None
    found = evidence.noticing if evidence is not None and evidence.tests_tree == task.tests else None
    return found is not None and found.notices


def _keep_for_review(ctx: Context, notes: str) -> None:
    """Write down the tests that are dropped: whether they ask for what the task wants is all there is to review."""
    task = ctx.state.task
    patch = ctx.repository.patch(task.start or ctx.state.head, task.tests or ctx.state.head)
    head = f"# Task {task.id}: nothing was changed\n\n@check: {block(notes)}\n\nThese tests pass on the code as it is."
    text = fenced(patch, "diff")
    ctx.write(already_name(task.id), f"{head} They are dropped.\n\n{text}\n")


def _refused(report: Report, *, after_passes: bool, of_tests: bool) -> Malformed | None:
    if not isinstance(report, Diagnosis) or questions.is_question(report):
        return None
    found = reduce.diagnosis(report, after_passes_already=after_passes, of_tests=of_tests)
    return found if isinstance(found, Malformed) else None


async def _amend(ctx: Context) -> Event:
    asked = asker_result(ctx)
    needs = _NEEDS.validate_python((asked.report or {}).get("needs", [])) if asked is not None else ()
    answer = await judge(ctx, Question.AMEND)
    if isinstance(answer, Event):
        return answer
    report = answer.report
    if not isinstance(report, Acceptance):
        raise TypeError(f"question amend was answered by {type(report).__name__}")
    signal = reduce.amend(report)
    if signal is Signal.AMENDED:
        layout = baseline_of(ctx).layout
        task = ctx.task()
        named = {(change.path, str(change.action)) for change in (*task.files, *task.test_files)}
        missing = [need for need in needs if (need.path, need.action) not in named]  # a crash may have come in between
        task = amend_task(task, missing, report.notes, is_test=layout.is_test_side)
        write_draft(ctx.run, task_file(task.id), task_md(task))
    wanted = ", ".join(need.path for need in needs)
    name = judgement_md(ctx, "amendment", block(f"{signal}: {wanted}. {report.notes}"))
    return Event(signal=signal, note=f"{wanted}: {report.notes}", evidence=(name, answer.evidence))
