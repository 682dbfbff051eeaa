"""SEAM (phase 6): @make opens a seam so that @test can work; nothing may break, and no test is written here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.dispatch.request import Request
from pipeline.evidence.compare import judge_green
from pipeline.policy.scope import Action, Grant
from pipeline.reports import reduce
from pipeline.reports.work import CannotProceed, Complete, Incomplete
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Role, Signal
from pipeline.steps.asking import ask
from pipeline.steps.evidence_files import read_evidence
from pipeline.steps.grants import production_grants, test_scope
from pipeline.steps.measuring import UnmeasurableError, measure
from pipeline.steps.regression import confirm, kept_tests
from pipeline.steps.tools import project_tools

if TYPE_CHECKING:
    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return SEAM_DONE when the seam is there and every test is kept, or why not."""
    task = ctx.task()
    start = ctx.state.task.stubs or ctx.state.task.start or ctx.state.head
    report_names = [name for name in ctx.handover() if name.endswith(".json")]
    artifacts = {
        "task": [ctx.path(f"task-{task.id}.md")],
        "plan": [ctx.path("plan.md")],
        "report": [ctx.path(name) for name in report_names],
    }
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
    request = Request(Role.MAKE, "seam", start, artifacts=artifacts, grants=grants, tests=scope, tools=tools)
    answer = await ask(ctx, request)
    if isinstance(answer, Event):
        return answer
    report = answer.report
    if not isinstance(report, Complete | Incomplete | CannotProceed):
        raise TypeError(f"kind seam was answered by {type(report).__name__}")
    tree = answer.result.tree or start
    regressions: tuple[str, ...] = ()
    if tree != start:
        try:
            after = await measure(ctx, tree)
            verdict = judge_green(None, after, kept_tests(ctx))
            suspects = await confirm(ctx, verdict.regressions, tree, start, after)
        except UnmeasurableError as error:
            return error.event
        regressions = (*suspects.regressions, *verdict.missing)
    facts = reduce.SeamFacts(changed=tree != start, regression=bool(regressions))
    signal = reduce.seam(report, facts)
    note = f"breaks {', '.join(regressions[:3])}" if signal is Signal.REGRESSION else ""
    return Event(signal=signal, tree=tree, note=note, evidence=(answer.evidence,))


def _seam_files(ctx: Context) -> tuple[str, ...]:
    """Return the files that @test named for the seam; our code has checked that they are the plan's."""
    evidence = read_evidence(ctx, ctx.state.task.id)
    files = (evidence.not_testable or {}).get("seam_files", ()) if evidence is not None else ()
    return tuple(str(path) for path in files) if isinstance(files, list | tuple) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  JSON
