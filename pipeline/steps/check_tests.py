"""CHECK_TESTS (phase 6): @check judges tests that are disputed, or signs off that there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.measure.task_evidence import TaskEvidence
from pipeline.reports import reduce
from pipeline.reports.artifacts import findings_md
from pipeline.reports.fields import AGREED, OldTest
from pipeline.reports.findings import Stage, StageFindings, apply_review
from pipeline.reports.reviews import Acceptance, SuiteJudgement
from pipeline.reports.taskfile import task_md
from pipeline.reports.tasks import amend_tests
from pipeline.reports.untrusted_text import block
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Question, Signal
from pipeline.runs.drafts import task_file, write_draft
from pipeline.steps.asking.judgements import judge, judgement_md
from pipeline.steps.asking.proofs import proved, work_of_tests
from pipeline.steps.asking.reviews import last_review, review_of_tasks
from pipeline.steps.evidence.records import files_of, read_evidence, write_evidence

if TYPE_CHECKING:
    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return ACCEPTABLE or NEEDS_WORK, with @check's words as evidence."""
    question = ctx.lane.ask or Question.TESTS
    if question is Question.NOT_TESTABLE and _is_accepted_by_split(ctx):
        name = judgement_md(ctx, "judgement-not-testable", "accepted with the split: `evidence: regression`")
        _record(ctx, question, name)
        return Event(signal=Signal.ACCEPTABLE, note="accepted with the split: evidence regression", evidence=(name,))
    answer = await judge(ctx, question)
    if isinstance(answer, Event):
        return answer
    report = answer.report
    if not isinstance(report, SuiteJudgement | Acceptance):
        raise TypeError(f"question {question} was answered by {type(report).__name__}")
    if isinstance(report, SuiteJudgement):
        report = await proved(ctx, report, work_of_tests(ctx))
    reduced = reduce.check_tests(report)
    if isinstance(report, Acceptance):
        text = block(f"{'accepted' if report.accepted else 'not accepted'}: {report.notes}")
    else:
        ledger, _ = apply_review(StageFindings(stage=Stage.TESTS), 1, report)
        found = ledger.open or ledger.refuted
        left = f"\n\n{findings_md(ledger.open, ledger.refuted)}" if found else ", without findings"
        text = f"{report.verdict}, counted as {reduced.signal}{left}"
    name = judgement_md(ctx, f"judgement-{question.value.replace('_', '-')}", text)
    if reduced.signal == "ACCEPTABLE":
        _record(ctx, question, name)
    note = "; ".join(reduced.notes) or (report.notes if isinstance(report, Acceptance) else str(report.verdict))
    return Event(signal=reduced.signal, note=note, evidence=(name, answer.evidence))


def _is_accepted_by_split(ctx: Context) -> bool:
    """Return whether the review of the tasks answered already that this task needs no tests of its own.

    That is a question of it (`test_approach`). Fix tasks have no such review, and one that ended with open findings
    accepted nothing; of a task that @test was asked for, the answer of @test is judged.
    """
    task, review = ctx.state.task, last_review(ctx, review_of_tasks(ctx))
    reviewed = review is not None and review.signal is Signal.ACCEPTABLE and not task.fix
    return reviewed and ctx.lane.origin is None and task.spec.evidence == "regression"


def _record(ctx: Context, question: Question, judgement: str) -> None:
    """Put the sign-off beside the evidence: who accepted what (the manifest of the final review is made from it)."""
    task = ctx.state.task
    evidence = read_evidence(ctx, task.id)
    start = task.start or ctx.state.head
    if evidence is None or question is Question.NOT_TESTABLE:
        known = evidence.not_testable if evidence is not None else None
        why = known or {"reason": "regression" if task.spec.evidence == "regression" else "no seam"}
        evidence = TaskEvidence(
            task=task.id, tests_tree=start, production=start, test_paths=(), command=(), not_testable=why
        )
    elif evidence.changed_old:
        _allow(ctx, evidence.changed_old)
    write_evidence(ctx, evidence.model_copy(update={"judged_by": judgement}))


def _allow(ctx: Context, changed: tuple[str, ...]) -> None:
    """Add the old tests whose change @check agreed to to the task: what GREEN must keep goes by it (matrix 5)."""
    tests = [OldTest(id=entry, reason=AGREED) for entry in changed]
    task = amend_tests(ctx.task(), tests, files_of(ctx, changed))
    write_draft(ctx.run, task_file(task.id), task_md(task))
