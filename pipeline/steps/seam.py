"""SEAM (phase 6): @make opens a seam so that @test can work; nothing may break, and no test is written here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.request import Request
from pipeline.evidence.compare import judge_green
from pipeline.measure import kept_runs
from pipeline.measure.measuring import UnmeasurableError, measure
from pipeline.measure.regression import confirm
from pipeline.policy.scope import Action, Grant
from pipeline.reports import reduce
from pipeline.reports.measured_facts import SeamFacts
from pipeline.reports.work import CannotProceed, Complete, Incomplete
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Role, Signal
from pipeline.steps.asking.dispatches import ask
from pipeline.steps.asking.grants import production_grants, project_tools, test_scope
from pipeline.steps.asking.words import came_back_tree
from pipeline.steps.evidence.records import baseline_of, kept_tests, read_evidence

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return SEAM_DONE when the seam is there and every test is kept, or why not."""
    task = ctx.task()
    start = ctx.state.task.stubs or ctx.state.task.start or ctx.state.head
    base = came_back_tree(ctx) or start
    artifacts = {"task": [ctx.path(f"task-{task.id}.md")], "plan": [ctx.path("plan.md")]}
    wanted = _asked_for(ctx)
    if wanted is not None:
        artifacts["report"] = [wanted]
    came_back = [ctx.path(name) for name in ctx.handed_words()]
    if came_back:
        artifacts["diagnosis"] = came_back
    named = {grant.path for grant in production_grants(task)}
    grants = (
        *production_grants(task),
        *(Grant(path, Action.MODIFY) for path in _seam_files(ctx) if path not in named),
    )
    try:
        tools = await project_tools(ctx)
    except UnmeasurableError as error:
        return error.event
    scope = test_scope(ctx, task)
    request = Request(Role.MAKE, "seam", base, artifacts=artifacts, grants=grants, tests=scope, tools=tools)
    answer = await ask(ctx, request)
    if isinstance(answer, Event):
        return answer
    report = answer.report
    if not isinstance(report, Complete | Incomplete | CannotProceed):
        raise TypeError(f"kind seam was answered by {type(report).__name__}")
    tree = answer.result.tree or base
    regressions: tuple[str, ...] = ()
    if tree != start:
        try:
            after = await measure(ctx, tree, what="the whole suite over the seam, must pass as before")
            unread, failed = baseline_of(ctx).unread, kept_runs.seen_failing(ctx.checkout.root, tree)
            verdict = judge_green(None, after, kept_tests(ctx), unread_before=unread, seen_failing=failed)
            suspects = await confirm(ctx, verdict.regressions, tree, start, after, start=ctx.state.start)
        except UnmeasurableError as error:
            return error.event
        regressions = (*suspects.broken, *verdict.missing, *verdict.uncollected)
    facts = SeamFacts(changed=tree != start, regression=bool(regressions))
    signal = reduce.seam(report, facts)
    note = f"breaks {', '.join(regressions[:3])}" if signal is Signal.REGRESSION else ""
    return Event(signal=signal, tree=tree, note=note, evidence=(answer.evidence,))


def _asked_for(ctx: Context) -> Path | None:
    """Return what @test says of the seam: it is the reason for this step, whoever was asked since."""
    evidence = read_evidence(ctx, ctx.state.task.id)
    said = evidence.not_testable if evidence is not None else None
    return ctx.path(ctx.write_json(f"evidence/seam-{ctx.state.task.id}.json", said)) if said else None


def _seam_files(ctx: Context) -> tuple[str, ...]:
    """Return the files that @test named for the seam; our code has checked that they are the plan's."""
    evidence = read_evidence(ctx, ctx.state.task.id)
    files = (evidence.not_testable or {}).get("seam_files", ()) if evidence is not None else ()
    return tuple(str(path) for path in files) if isinstance(files, list | tuple) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  JSON
