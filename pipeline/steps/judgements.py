"""Asks @check to judge disputed or absent tests (CHECK_TESTS, phase 6), and what is at fault (DIAGNOSE, phase 7).

What @check grants our code carries out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from pipeline.agents.dispatch.request import Request
from pipeline.judge.reports import signal_of_report
from pipeline.judge.reports.artifacts import counted_as, findings_md
from pipeline.judge.reports.fields import AGREED, Need, OldTest, Report
from pipeline.judge.reports.findings import Stage, StageFindings, apply_review
from pipeline.judge.reports.markdown import bullets
from pipeline.judge.reports.reviews import Acceptance, Diagnosis, SuiteJudgement
from pipeline.judge.reports.taskfile import task_md
from pipeline.judge.reports.tasks import amend_task, amend_tests
from pipeline.judge.reports.untrusted_text import block, fenced
from pipeline.matrix.routing.state import Event
from pipeline.run.drafts import task_file, write_draft
from pipeline.run.files import to_json
from pipeline.steps.asking import questions
from pipeline.steps.asking.dispatches import Answer, ask
from pipeline.steps.asking.proofs import proved, work_of_tests
from pipeline.steps.asking.reviews import last_review, review_of_tasks
from pipeline.steps.evidence_records import baseline_of, by_their_names, files_of, read_evidence, write_evidence
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.task_evidence import TaskEvidence
from pipeline.vocabulary import Question, Role, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipeline.judge.reports.decode import Malformed
    from pipeline.run.info import DispatchResult
    from pipeline.steps.context import Context


def _results_of_asker(ctx: Context) -> list[DispatchResult]:
    """Return the results of the step that asked, of the current task: the judgement is about the last."""
    origin = ctx.lane.origin.value if ctx.lane.origin else ""
    found = [r.dispatch for r in ctx.run.records.values() if r.step == origin and r.task == ctx.state.current]
    return [ctx.run.results[name] for name in found if name in ctx.run.results]


_RESUMED: Final = """\
Your diagnosis `environment` parked the run here, and a person has resumed it since. If that is mended, answer
`production_logic`: who was stuck is asked again, with your notes."""


async def judge(
    ctx: Context, question: Question, *, accept: Callable[[Report], Malformed | None] | None = None, extra: str = ""
) -> Answer | Event:
    """Ask @check to judge, with *extra* words; the view is the candidate in question, read-only (matrix 4)."""
    task = ctx.state.task
    start = task.start or ctx.state.head
    artifacts: dict[str, list[Path]] = {"task": [ctx.path(f"task-{task.id}.md")]}
    if question is Question.DIAGNOSE:  # it may find that these are wrong
        artifacts |= {"issue": [ctx.path("issue.md")], **questions.answers(ctx)}
    if question in {Question.DIAGNOSE, Question.TESTS} and not ctx.state.one_writer:
        artifacts["plan"] = [ctx.path("plan.md")]
    visit = ctx.lane.visit
    if task.tests and task.tests != start:
        patch = ctx.repository.patch(start, task.tests)
        artifacts |= ctx.artifact("tests_diff", f"judgements/{visit:03}-tests.patch", patch)
    base = task.red or start
    if task.candidate and task.candidate != base:
        patch = ctx.repository.patch(base, task.candidate)
        artifacts |= ctx.artifact("candidate_patch", f"judgements/{visit:03}-candidate.patch", patch)
    results = _results_of_asker(ctx)
    if results and results[-1].report is not None:
        artifacts |= ctx.artifact("report", f"judgements/{visit:03}-report.json", to_json(results[-1].report))
    refused = bullets(f"{r.dispatch}: {r.signal}: {r.complaint}" for r in results if r.signal is not None)
    artifacts |= ctx.artifact("refusals", f"judgements/{visit:03}-refusals.md", refused)
    # a task that begins with the question was drafted before, and nothing of it measured
    if ctx.lane.origin is not None:
        artifacts["test_output"] = [ctx.path(name) for name in ctx.handed_words()]
    tree = ctx.lane.in_question or task.tests or start
    was_asked = ctx.path(f"judgements/{visit:03}-diagnosis.md").exists()
    may_ask = questions.told(ctx, Role.CHECK) if question is Question.DIAGNOSE else questions.NONE
    request = Request(
        Role.CHECK,
        "judge",
        tree,
        question=question,
        artifacts=artifacts,
        accept=accept,
        extra="\n".join(filter(None, (may_ask.words.strip(), extra, _RESUMED if was_asked else ""))),
        asks=may_ask.asks,
    )
    return await ask(ctx, request)


def judgement_md(ctx: Context, what: str, text: str) -> str:
    """Write a judgement in words for the agent that goes on with it; return the artifact's name.

    Args:
        ctx: The run.
        what: Its kind.
        text: Rendered Markdown: what @check itself said went through `untrusted_text.block`.
    """
    return ctx.write(f"judgements/{ctx.lane.visit:03}-{what}.md", f"# {what} by @check\n\n{text}\n")


def already_name(task: str) -> str:
    """Return the artifact with the tests that showed nothing to do, for the final review."""
    return f"judgements/already-{task}.md"


async def check_tests(ctx: Context) -> Event:
    """Return ACCEPTABLE or NEEDS_WORK, with @check's words as evidence."""
    question = ctx.lane.ask or Question.TESTS
    if question is Question.NOT_TESTABLE and _is_accepted_by_split(ctx):
        name = judgement_md(ctx, "judgement-not-testable", "accepted with the split: `evidence: regression`")
        _record_sign_off(ctx, question, name)
        return Event(signal=Signal.ACCEPTABLE, note="accepted with the split: evidence regression", evidence=(name,))
    answer = await judge(ctx, question)
    if isinstance(answer, Event):
        return answer
    report = answer.form(SuiteJudgement, Acceptance)
    if isinstance(report, SuiteJudgement):
        report = await proved(ctx, report, work_of_tests(ctx))
    signal, overruled = signal_of_report.check_tests(report)
    if isinstance(report, Acceptance):
        text = block(f"{'accepted' if report.accepted else 'not accepted'}: {report.notes}")
    else:
        ledger, _ = apply_review(StageFindings(stage=Stage.TESTS), 1, report)
        found = ledger.open or ledger.refuted
        left = f"\n\n{findings_md(ledger.open, ledger.refuted)}" if found else ", without findings"
        text = f"{counted_as(report.verdict, signal)}{left}"
    name = judgement_md(ctx, f"judgement-{question.value.replace('_', '-')}", text)
    if signal is Signal.ACCEPTABLE:
        _record_sign_off(ctx, question, name)
    note = "; ".join(overruled) or (report.notes if isinstance(report, Acceptance) else str(report.verdict))
    return Event(signal=signal, note=note, evidence=(name, answer.evidence))


def _is_accepted_by_split(ctx: Context) -> bool:
    """Return whether the review of the tasks answered already that this task needs no tests of its own.

    That is a question of it (`test_approach`). Fix tasks have no such review, and one that ended with open findings
    accepted nothing; of a task that @test was asked for, the answer of @test is judged.
    """
    task, review = ctx.state.task, last_review(ctx, review_of_tasks(ctx))
    reviewed = review is not None and review.signal is Signal.ACCEPTABLE and not task.fix
    return reviewed and ctx.lane.origin is None and task.spec.evidence == "regression"


def _record_sign_off(ctx: Context, question: Question, judgement: str) -> None:
    """Put the sign-off beside the evidence: who accepted what (the manifest of the final review is made from it)."""
    task = ctx.state.task
    evidence = read_evidence(ctx, task.id)
    start = task.start or ctx.state.head
    if evidence is None or question is Question.NOT_TESTABLE:
        why = (evidence and evidence.not_testable) or {
            "reason": "regression" if task.spec.evidence == "regression" else "no seam"
        }
        evidence = TaskEvidence(
            task=task.id, tests_tree=start, production=start, test_paths=(), command=(), not_testable=why
        )
    elif evidence.changed_old:  # what GREEN must keep goes by it (matrix 5)
        _allow(ctx, [OldTest(id=entry, reason=AGREED) for entry in evidence.changed_old])
    write_evidence(ctx, evidence.model_copy(update={"judged_by": judgement}))


def _allow(ctx: Context, tests: Sequence[OldTest]) -> None:
    """Add the old tests whose change @check agreed to to the task."""
    task = amend_tests(ctx.task(), tests, files_of(ctx, [test.id for test in tests]))
    write_draft(ctx.run, task_file(task.id), task_md(task))


_NEEDS = TypeAdapter(tuple[Need, ...])


async def diagnose(ctx: Context) -> Event:
    """Return the diagnosis as a signal, or whether the files asked for are granted."""
    if ctx.lane.ask is Question.AMEND:
        return await _amend(ctx)
    passed, of_tests = ctx.lane.after in {Signal.PASSES_ALREADY, Signal.RED_GONE}, ctx.lane.origin is Step.WRITE_TESTS
    unfit = signal_of_report.unfit_diagnoses(passed_already=passed, of_tests=of_tests)
    said = "; ".join(f"`{word}`: only {why}" for word, why in unfit.items())

    def accept(report: Report) -> Malformed | None:
        if not isinstance(report, Diagnosis) or questions.is_question(report):
            return None
        return signal_of_report.refusal_of_diagnosis(report, unfit)

    answer = await judge(ctx, Question.DIAGNOSE, accept=accept, extra=f"Not accepted here: {said}." if said else "")
    if isinstance(answer, Event):
        return answer
    if questions.is_question(answer.report):
        return questions.asked(ctx, Role.CHECK, answer)
    report = answer.form(Diagnosis)
    signal = signal_of_report.diagnosis(report, notices=_notices(ctx))
    if report.tests_to_change:
        _allow(ctx, by_their_names(ctx, report.tests_to_change))
    name = judgement_md(ctx, "diagnosis", block(f"{report.diagnosis}: {report.notes}"))
    if signal is Signal.ENVIRONMENT:
        # the run parks for a person to mend it: what was seen in that environment says nothing of the bytes
        evidence = read_evidence(ctx, ctx.state.task.id)
        for tree in filter(None, (ctx.lane.in_question, evidence.red_tree if evidence is not None else None)):
            kept_runs.forget(ctx.checkout.root, tree)
    if signal is Signal.ALREADY_DONE:
        _keep_for_review(ctx, report.notes)
    note = ": ".join(filter(None, (report.diagnosis, report.notes)))
    return Event(signal=signal, note=note, evidence=(name, *ctx.handed_words()))


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


async def _amend(ctx: Context) -> Event:
    reports = [result.report or {} for result in _results_of_asker(ctx)]
    needs = _NEEDS.validate_python(reports[-1].get("needs", [])) if reports else ()
    answer = await judge(ctx, Question.AMEND)
    if isinstance(answer, Event):
        return answer
    report = answer.form(Acceptance)
    signal = signal_of_report.amend(report)
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
