"""IMPLEMENT (phase 7): @make makes the tests pass; GREEN is measured by us, and so is all that must not break."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.agents.dispatch.request import Request
from pipeline.judge.reports import signal_of_report
from pipeline.judge.reports.markdown import bullets
from pipeline.judge.reports.untrusted_text import block
from pipeline.judge.reports.work_reports import CannotProceed, Complete, Incomplete, MakeReport
from pipeline.matrix.routing.state import Event
from pipeline.steps.asking.artifacts import claim_of, counted_cases, functions_of, handed_on, notes_of_tests, red_md
from pipeline.steps.asking.dispatches import ask
from pipeline.steps.asking.grants import production_grants, project_tools, test_scope
from pipeline.steps.evidence import green
from pipeline.steps.evidence.impact import HANDED, impacted_tests
from pipeline.steps.evidence_records import baseline_of, known_tests, read_evidence
from pipeline.testing.measure import project_checks
from pipeline.testing.measure.composed_trees import compose
from pipeline.testing.measure.measuring import changed_paths
from pipeline.vocabulary import MEASURED_GREEN, Role, Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context

_MEASURED: Final = frozenset(
    {Signal.NOT_GREEN, Signal.REGRESSION, Signal.HIDDEN_REGRESSION, Signal.STALE_XFAIL, Signal.TEST_DESIGN}
)
_NO_TESTS: Final = "This task has no tests of its own: criteria, the tests that exist and the project's checks decide."


async def run(ctx: Context) -> Event:
    """Return the measured signal of @make's work; GREEN without asking where the candidate is GREEN already."""
    task = ctx.task()
    base = _base(ctx)
    ready: green.Measured | None = None
    if _may_be_green(ctx, base):
        ready = await green.measure_candidate(ctx, task, base)
        if ready.green:
            return await green.record_green(ctx, task, ready)
    tools = await project_tools(ctx)
    answer = await ask(ctx, replace(_request(ctx, task, base, ready), tools=tools))
    if isinstance(answer, Event):
        return answer
    report = answer.form(Complete, Incomplete, CannotProceed)
    tree = answer.result.tree or base
    allowed = [grant.path for grant in production_grants(task)]
    tree = await project_checks.fixed(ctx, ctx.state.task.red or base, tree, allowed, baseline_of(ctx).layout)
    measured = await green.measure_candidate(ctx, task, tree)
    signal = _signal(ctx, report, measured, changed=answer.result.tree not in {None, ctx.state.task.red})
    if signal in MEASURED_GREEN:
        found = await green.record_green(ctx, task, measured, answer.evidence)
        missing = signal is Signal.GREEN_INCOMPLETE and found.signal in {Signal.GREEN, Signal.UNNOTICED_FAULTS}
        told = {"signal": signal, "note": f"{found.note}; @make: {claim_of(report)}"}
        return found.model_copy(update=told) if missing else found
    if signal is Signal.GREEN_UNSTABLE:
        return green.unstable(ctx, task, measured, measured.unstable, answer.evidence)
    words = _claim_md(report) + green.not_green_md(task, signal, measured)
    name = ctx.write(f"evidence/green-{answer.result.dispatch[:3]}.md", words)
    return Event(signal=signal, tree=tree, note=_note(signal, report, measured), evidence=(name, answer.evidence))


def _base(ctx: Context) -> str:
    """Return what @make starts from: red, its own candidate, or changed tests over that candidate (matrix 4)."""
    task = ctx.state.task
    red = task.red or ctx.state.head
    if task.candidate is None:
        return red
    composed = compose(
        ctx, red, task.candidate, changed_paths(ctx, task.stubs or task.start, red), baseline_of(ctx).layout
    )
    for line in composed.whole:  # the work in it is lost to the view; `candidate_patch` still has it
        ctx.say(f"    taken as the tests have it, without the candidate's code: {line}")
    return composed.tree


def _may_be_green(ctx: Context, base: str) -> bool:
    """Return whether measuring first can save a dispatch: there is a candidate, or the tests are all there is to do."""
    task = ctx.state.task
    no_code = task.spec.red_base is not None or not ctx.task().files
    return task.testable and (task.candidate is not None or no_code) and bool(base)


def _request(ctx: Context, task: Task, base: str, ready: green.Measured | None) -> Request:
    state = ctx.state.task
    artifacts: dict[str, list[Path]] = {"task": [ctx.path(f"task-{task.id}.md")]}
    artifacts |= handed_on(ctx, judged=True)
    evidence, functions = read_evidence(ctx, task.id), functions_of(known_tests(ctx))
    if evidence is not None and evidence.ledger is not None and state.testable:
        words = red_md(ctx, evidence.ledger, notes_of_tests(ctx, task.id), functions)
        artifacts |= ctx.artifact("red", f"evidence/red-{task.id}.md", words)
    impacted = impacted_tests(ctx, task, base)
    if impacted:
        words = bullets(counted_cases(impacted, functions, HANDED)) + "\n"
        artifacts |= ctx.artifact("impacted_tests", f"evidence/impacted-{task.id}.md", words)
    came_back = ctx.handed_words() if ctx.lane.via else []
    if ready is not None:  # the workspace was measured as it is: what was measured of it before is out of date
        words = green.not_green_md(task, Signal.NOT_GREEN, ready)
        artifacts |= ctx.artifact("measured", f"evidence/before-{ctx.lane.visit:03}.md", words)
        came_back = [name for name in came_back if name.startswith("judgements/")]
    artifacts["diagnosis"] = [ctx.path(name) for name in came_back]
    if state.candidate is not None and changed_paths(ctx, state.red or base, state.candidate):
        patch = ctx.repository.patch(state.red or base, state.candidate)
        artifacts |= ctx.artifact("candidate_patch", f"judgements/{ctx.lane.visit:03}-candidate.patch", patch)
    grants = production_grants(task)
    extra = "" if "red" in artifacts else _NO_TESTS
    scope = test_scope(ctx, task)
    return Request(Role.MAKE, "implement", base, artifacts=artifacts, grants=grants, tests=scope, extra=extra)


def _signal(ctx: Context, report: MakeReport, measured: green.Measured, *, changed: bool) -> Signal:
    was_red = measured.ledger is not None and bool(measured.ledger.red)
    # where no test was RED only the claim says that the work is done, and doing nothing is no work
    is_green = measured.green and (was_red or (changed and isinstance(report, Complete)))
    facts = replace(measured.facts, green=is_green, changed=changed)
    layout = baseline_of(ctx).layout
    signal = signal_of_report.implement(report, facts, is_test=layout.is_test_side)
    # A file-level RED that passes on stubs is the tests' fault: no other @make can mend it (matrix 5).
    others = measured.broken or measured.hidden or measured.unstable
    only_structural = measured.structural and measured.verdict.own_green and not others
    return Signal.TEST_DESIGN if only_structural and signal not in MEASURED_GREEN else signal


def _note(signal: Signal, report: MakeReport, measured: green.Measured) -> str:
    by_claim = not measured.structural if signal is Signal.TEST_DESIGN else signal not in _MEASURED
    return claim_of(report) if by_claim else green.not_green_note(signal, measured)


def _claim_md(report: MakeReport) -> str:
    """Return why @make stopped: what is measured of work that was not done follows from that."""
    if isinstance(report, Complete):
        return ""
    why = report.why if isinstance(report, CannotProceed) else "; ".join(report.attempts)
    return f"# @make says {report.result}\n\n{block(claim_of(report))}\n\n{block(why)}\n\n"
