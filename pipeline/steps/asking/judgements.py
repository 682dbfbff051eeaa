"""Collects what every `judge` of @check is handed: the task, the patches, the report and the test output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.request import Request
from pipeline.reports.markdown import bullets
from pipeline.routing.vocabulary import Question, Role
from pipeline.runs.files import to_json
from pipeline.steps.asking import questions
from pipeline.steps.asking.dispatches import Answer, ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.reports.decode import Malformed
    from pipeline.reports.fields import Report
    from pipeline.routing.state import Event
    from pipeline.runs.info import DispatchResult
    from pipeline.steps.context import Context


def asker_result(ctx: Context) -> DispatchResult | None:
    """Return the result of the dispatch that the judgement is about: the last of the step that asked."""
    origin = ctx.lane.origin.value if ctx.lane.origin else ""
    found = [r for r in ctx.run.records.values() if r.step == origin and r.task == ctx.state.current]
    finished = [record for record in found if record.dispatch in ctx.run.results]
    return ctx.run.results[finished[-1].dispatch] if finished else None


def refusals_md(ctx: Context) -> str:
    """Return what of the step that asked was refused, and why, in words; empty where nothing was."""
    origin = ctx.lane.origin.value if ctx.lane.origin else ""
    found = [r.dispatch for r in ctx.run.records.values() if r.step == origin and r.task == ctx.state.current]
    results = [ctx.run.results[name] for name in found if name in ctx.run.results]
    return bullets(f"{r.dispatch}: {r.signal}: {r.complaint}" for r in results if r.signal is not None)


async def judge(
    ctx: Context, question: Question, *, accept: Callable[[Report], Malformed | None] | None = None
) -> Answer | Event:
    """Ask @check to judge; the view is the candidate in question, read-only (matrix 4)."""
    task = ctx.state.task
    start = task.start or ctx.state.head
    artifacts: dict[str, list[Path]] = {"task": [ctx.path(f"task-{task.id}.md")]}
    if question is Question.DIAGNOSE:  # it may find that these are wrong
        artifacts |= {"issue": [ctx.path("issue.md")], **questions.answers(ctx)}
    if question in {Question.DIAGNOSE, Question.TESTS} and not ctx.state.one_writer:
        artifacts["plan"] = [ctx.path("plan.md")]
    visit = ctx.lane.visit
    if task.tests and task.tests != start:
        name = ctx.write(f"judgements/{visit:03}-tests.patch", ctx.repository.patch(start, task.tests))
        artifacts["tests_diff"] = [ctx.path(name)]
    base = task.red or start
    if task.candidate and task.candidate != base:
        name = ctx.write(f"judgements/{visit:03}-candidate.patch", ctx.repository.patch(base, task.candidate))
        artifacts["candidate_patch"] = [ctx.path(name)]
    asked = asker_result(ctx)
    if asked is not None and asked.report is not None:
        name = ctx.write(f"judgements/{visit:03}-report.json", to_json(asked.report))
        artifacts["report"] = [ctx.path(name)]
    refused = refusals_md(ctx)
    if refused:
        artifacts["refusals"] = [ctx.path(ctx.write(f"judgements/{visit:03}-refusals.md", refused))]
    # a task that begins with the question was drafted before, and nothing of it measured
    output = [ctx.path(name) for name in ctx.handed_words()] if ctx.lane.origin is not None else []
    if output:
        artifacts["test_output"] = output
    tree = ctx.lane.in_question or task.tests or start
    may_ask = questions.told(ctx, Role.CHECK) if question is Question.DIAGNOSE else questions.NONE
    request = Request(
        Role.CHECK,
        "judge",
        tree,
        question=question,
        artifacts=artifacts,
        accept=accept,
        extra=may_ask.words.strip(),
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
