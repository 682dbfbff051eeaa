"""IMPLEMENT (phase 7): @make makes the tests pass; GREEN is measured by us, and so is all that must not break."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.dispatch.request import Request
from pipeline.evidence.compare import GreenVerdict, judge_green, passed
from pipeline.evidence.freeze import canonical
from pipeline.reports import reduce
from pipeline.reports.foreign import fenced
from pipeline.reports.markdown import bullets
from pipeline.reports.work import CannotProceed, Complete, Incomplete
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Role, Signal
from pipeline.steps import checks
from pipeline.steps.asking import ask
from pipeline.steps.evidence_files import GreenEvidence, read_evidence, write_evidence
from pipeline.steps.grants import production_grants, test_scope
from pipeline.steps.measuring import UnmeasurableError, changed_paths, compose, measure
from pipeline.steps.provisional import confirm_provisional
from pipeline.steps.regression import Suspects, confirm, kept_tests
from pipeline.steps.sanity import baseline_of
from pipeline.steps.stub import stubs_left
from pipeline.steps.tools import project_tools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.evidence.ledger import RedLedger
    from pipeline.evidence.observation import Observation
    from pipeline.reports.tasks import Task
    from pipeline.reports.work import MakeReport
    from pipeline.steps.context import Context


async def run(ctx: Context) -> Event:
    """Return the measured signal of @make's work; GREEN without asking where the candidate is GREEN already."""
    task = ctx.task()
    base = _base(ctx)
    try:
        if _may_be_green(ctx, base):
            ready = await _measure(ctx, task, base)
            if ready.green:
                return _green(ctx, ready)
        tools = await project_tools(ctx)
        answer = await ask(ctx, replace(_request(ctx, task, base), tools=tools))
        if isinstance(answer, Event):
            return answer
        report = answer.report
        if not isinstance(report, Complete | Incomplete | CannotProceed):
            raise TypeError(f"kind implement was answered by {type(report).__name__}")
        tree = answer.result.tree or base
        allowed = [grant.path for grant in production_grants(task)]
        tree = await checks.fixed(ctx, ctx.state.task.red or base, tree, allowed)
        measured = await _measure(ctx, task, tree)
    except UnmeasurableError as error:
        return error.event
    signal = _signal(ctx, report, measured, changed=answer.result.tree not in {None, ctx.state.task.red})
    if signal is Signal.GREEN:
        return _green(ctx, measured, answer.evidence)
    name = ctx.write(f"evidence/green-{answer.result.dispatch[:3]}.md", _not_green_md(task, signal, measured))
    return Event(signal=signal, tree=tree, note=_note(signal, report, measured), evidence=(name, answer.evidence))


def _base(ctx: Context) -> str:
    """Return what @make starts from: red, its own candidate, or changed tests over that candidate (matrix 4)."""
    task = ctx.state.task
    red = task.red or ctx.state.head
    if task.candidate is None:
        return red
    return compose(ctx, red, task.candidate, changed_paths(ctx, task.start, red))


def _may_be_green(ctx: Context, base: str) -> bool:
    """Return whether measuring first can save a dispatch: there is a candidate, or a fix of the tests alone."""
    task = ctx.state.task
    return task.testable and (task.candidate is not None or task.spec.red_base is not None) and bool(base)


def _request(ctx: Context, task: Task, base: str) -> Request:
    state = ctx.state.task
    artifacts: dict[str, list[Path]] = {"task": [ctx.path(f"task-{task.id}.md")]}
    evidence = read_evidence(ctx, task.id)
    red = {
        "ids": sorted(evidence.ledger.red) if evidence is not None and evidence.ledger is not None else [],
        "command": list(evidence.command) if evidence is not None else [],
        "output": {k: v.message for k, v in evidence.ledger.red.items()} if evidence and evidence.ledger else {},
        "not_testable": evidence.not_testable if evidence is not None and not state.testable else None,
    }
    artifacts["red"] = [ctx.path(ctx.write_json(f"evidence/red-{task.id}.json", red))]
    impacted = sorted(_impacted(ctx, task))
    artifacts["impacted_tests"] = [ctx.path(ctx.write_json(f"evidence/impacted-{task.id}.json", impacted))]
    diagnosis = [ctx.path(name) for name in ctx.handover() if name.endswith(".md")] if ctx.state.via else []
    if diagnosis:
        artifacts["diagnosis"] = diagnosis
    if state.candidate is not None:
        patch = ctx.repository.patch(state.red or base, state.candidate)
        name = ctx.write(f"judgements/{ctx.state.visit:03}-candidate.patch", patch)
        artifacts["candidate_patch"] = [ctx.path(name)]
    grants = production_grants(task)
    return Request(Role.MAKE, "implement", base, artifacts=artifacts, grants=grants, tests=test_scope(ctx, task))


def _impacted(ctx: Context, task: Task) -> set[str]:
    """Return the tests that the task's files most likely touch: by the modules' names, until coverage says better."""
    stems = {change.path.rpartition("/")[2].removesuffix(".py").strip("_") for change in task.files}
    records = baseline_of(ctx).records.values()
    return {record.id for record in records if any(stem and stem in record.path for stem in stems)}


@dataclass(frozen=True)
class _Measured:
    tree: str
    observation: Observation
    verdict: GreenVerdict
    suspects: Suspects
    structural: tuple[str, ...]
    stub_failures: tuple[str, ...]
    ledger: RedLedger | None
    kept: int
    stubs_left: tuple[str, ...] = ()

    @property
    def green(self) -> bool:
        """Return GREEN as matrix 5 defines it."""
        return (
            self.verdict.own_green
            and not self.verdict.stale_xfail
            and not self.suspects.regressions
            and not self.structural
            and not self.stubs_left
        )


async def _measure(ctx: Context, task: Task, tree: str) -> _Measured:
    state = ctx.state.task
    evidence = read_evidence(ctx, task.id)
    ledger = evidence.ledger if evidence is not None and state.testable else None
    observation = await measure(ctx, tree)
    kept = kept_tests(ctx)
    may_change = frozenset(test.id for test in task.tests_to_change)
    verdict = judge_green(ledger, observation, kept, tests_to_change=may_change)
    suspects = await confirm(ctx, verdict.regressions, tree, state.start or ctx.state.start, observation)
    structural: tuple[str, ...] = ()
    stubbed: tuple[str, ...] = ()
    if evidence is not None and verdict.own_green and verdict.provisional_ids:
        # what was there before this task, in the same file, is not its evidence
        own = [entry for entry in verdict.provisional_ids if entry not in kept]
        layout = baseline_of(ctx).layout
        structural, stubbed = await confirm_provisional(ctx, task, tree, evidence.production, own, layout)
        structural = structural if own else verdict.provisional_ids
    return _Measured(
        tree, observation, verdict, suspects, structural, stubbed, ledger, len(kept), stubs_left(ctx, tree)
    )


def _signal(ctx: Context, report: MakeReport, measured: _Measured, *, changed: bool) -> Signal:
    verdict = measured.verdict
    facts = reduce.ImplementFacts(
        # without tests only the claim says that the work is done, and doing nothing is no work
        green=measured.green and (ctx.state.task.testable or (changed and isinstance(report, Complete))),
        stale_xfail=bool(verdict.stale_xfail) and verdict.own_green and not measured.suspects.regressions,
        regression=bool(measured.suspects.regressions),
        changed=changed,
    )
    layout = baseline_of(ctx).layout
    signal = reduce.implement(report, facts, is_test=layout.is_test_side)
    # A file-level RED that passes on stubs is the tests' fault: no other @make can mend it (matrix 5).
    only_structural = measured.structural and verdict.own_green and not measured.suspects.regressions
    return Signal.TEST_DESIGN if only_structural and signal is not Signal.GREEN else signal


def _green(ctx: Context, measured: _Measured, *evidence: str) -> Event:
    """Record GREEN; the whole run is kept, since the next task must keep what passed here."""
    task = ctx.state.task
    red_evidence = read_evidence(ctx, task.id)
    passing = [r.id for r in measured.observation.records.values() if passed(r)]
    own = [r for r in measured.observation.records.values() if measured.ledger is None or measured.ledger.owns(r)]
    names = [ctx.write(f"evidence/green-{task.id}.json", canonical(measured.observation))]
    if red_evidence is not None:
        green = GreenEvidence(
            tree=measured.tree,
            passed=tuple(sorted(r.id for r in own if passed(r))) if measured.ledger is not None else (),
            new_ids=measured.verdict.new_ids,
            flaky=measured.suspects.flaky,
            stub_failures=measured.stub_failures,
            compared_with=ctx.run.info.start_tree,
            kept=measured.kept,
        )
        names.append(write_evidence(ctx, red_evidence.model_copy(update={"green": green})))
    flaky = f", {len(measured.suspects.flaky)} flaky" if measured.suspects.flaky else ""
    return Event(
        signal=Signal.GREEN,
        tree=measured.tree,
        note=f"{len(passing)} tests pass{flaky}",
        evidence=(*names, *evidence),
    )


def _note(signal: Signal, report: MakeReport, measured: _Measured) -> str:
    verdict = measured.verdict
    match signal:
        case Signal.NOT_GREEN:
            gone = verdict.not_green or verdict.missing or verdict.changed_regions or verdict.changed_files
            if not gone and measured.stubs_left:
                return f"a stub is left: {', '.join(measured.stubs_left[:3])}"
            return f"not GREEN: {', '.join(gone[:3])}"
        case Signal.REGRESSION:
            return f"breaks {', '.join(measured.suspects.regressions[:3])}"
        case Signal.STALE_XFAIL:
            return f"passes now: {', '.join(verdict.stale_xfail[:3])}"
        case Signal.TEST_DESIGN if measured.structural:
            return f"pass on stubs too: {', '.join(measured.structural[:3])}"
        case _:
            return _claim(report)


def _claim(report: MakeReport) -> str:
    match report:
        case Complete():
            return report.summary
        case Incomplete():
            return report.blocking_issue
        case CannotProceed():
            return report.missing


def _not_green_md(task: Task, signal: Signal, measured: _Measured) -> str:
    verdict = measured.verdict
    said: Mapping[str, tuple[str, ...]] = {
        "not GREEN": verdict.not_green,
        "test is gone": verdict.missing,
        "test was changed": (*verdict.changed_regions, *verdict.changed_files),
        "breaks (2 of 2)": measured.suspects.regressions,
        "flaky, not counted": measured.suspects.flaky,
        "strict xfail passes now": verdict.stale_xfail,
        "passes on stubs too": measured.structural,
        "a stub is left": measured.stubs_left,
    }
    lines: list[str] = []
    for words, ids in said.items():
        for entry in ids:
            record = measured.observation.records.get(entry)
            why = f": {record.fault.raised.message}" if record is not None and record.fault is not None else ""
            lines.append(f"{words}: {entry}{why}")
    tail = fenced(measured.observation.tail[-3000:], "text")
    return f"# Measurement of task {task.id}: {signal}\n\n{bullets(lines)}\n\n{tail}\n"
