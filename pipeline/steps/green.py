"""GREEN of a candidate: the measurement, what else must hold, the probes of its tests, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.evidence.compare import GreenVerdict, judge_green, passed
from pipeline.evidence.freeze import canonical
from pipeline.reports.foreign import fenced
from pipeline.reports.markdown import bullets
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal
from pipeline.steps.evidence_files import GreenEvidence, read_evidence, write_evidence
from pipeline.steps.measuring import measure
from pipeline.steps.pinned import Pinned, pinned
from pipeline.steps.probing import Candidate, Probed, probe
from pipeline.steps.provisional import confirm_provisional
from pipeline.steps.regression import Suspects, confirm, kept_tests
from pipeline.steps.sanity import baseline_of
from pipeline.steps.stub import stubs_left

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pipeline.evidence.ledger import RedLedger
    from pipeline.evidence.observation import Observation
    from pipeline.reports.tasks import Task
    from pipeline.steps.context import Context


@dataclass(frozen=True)
class Measured:
    """A candidate with its run of all tests, and everything that GREEN asks for (matrix 5)."""

    tree: str
    observation: Observation
    verdict: GreenVerdict
    suspects: Suspects
    structural: tuple[str, ...]
    stub_failures: tuple[str, ...]
    ledger: RedLedger | None
    kept: int
    stubs_left: tuple[str, ...]
    ground: Pinned

    @property
    def green(self) -> bool:
        """Return GREEN as matrix 5 defines it."""
        return (
            self.verdict.own_green
            and not self.verdict.stale_xfail
            and not self.suspects.regressions
            and not self.structural
            and not self.stubs_left
            and self.ground.holds
        )

    @property
    def in_the_way(self) -> tuple[str, ...]:
        """Return what keeps the task's own evidence from being GREEN, ids and sentences, the most telling first."""
        verdict = self.verdict
        gone = verdict.not_green or verdict.missing or verdict.changed_regions or verdict.changed_files
        left = tuple(f"a stub is left: {place}" for place in self.stubs_left)
        return gone or self.ground.regions or self.ground.support or left


async def measure_candidate(ctx: Context, task: Task, tree: str) -> Measured:
    """Return what all tests and the bytes show of *tree*.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    state = ctx.state.task
    evidence = read_evidence(ctx, task.id)
    ledger = evidence.ledger if evidence is not None and state.testable else None
    observation = await measure(ctx, tree)
    kept = kept_tests(ctx)
    may_change = frozenset(test.id for test in task.tests_to_change)
    verdict = judge_green(ledger, observation, kept, tests_to_change=may_change)
    suspects = await confirm(ctx, verdict.regressions, tree, state.start or ctx.state.start, observation)
    layout = baseline_of(ctx).layout
    structural: tuple[str, ...] = ()
    stubbed: tuple[str, ...] = ()
    if evidence is not None and verdict.own_green and verdict.provisional_ids:
        # what was there before this task, in the same file, is not its evidence
        own = [entry for entry in verdict.provisional_ids if entry not in kept]
        structural, stubbed = await confirm_provisional(ctx, task, tree, evidence.production, own, layout)
        structural = structural if own else verdict.provisional_ids
    named = {path for change in task.files for path in (change.path, change.origin) if path}
    ground = pinned(ctx, layout, named, state.red or ctx.state.head, tree)
    left = stubs_left(ctx, tree)
    return Measured(tree, observation, verdict, suspects, structural, stubbed, ledger, len(kept), left, ground)


async def record_green(
    ctx: Context, task: Task, measured: Measured, impacted: Collection[str], *evidence: str
) -> Event:
    """Try the tests of what is GREEN, and record both; the whole run is kept: the next task must keep what passed here.

    Args:
        ctx: The run.
        task: The task.
        measured: What is GREEN.
        impacted: Tests that touch the task's files.
        evidence: What the event names besides.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    names: list[str] = []
    red_evidence = read_evidence(ctx, task.id)
    if red_evidence is not None:
        new_ids = measured.verdict.new_ids
        candidate = Candidate(measured.tree, measured.observation, new_ids, frozenset(impacted))
        probed = await probe(ctx, task, red_evidence, candidate)
        names.append(probed.artifact)
        red_evidence = red_evidence.model_copy(update={"probes": probed.evidence})
        if not probed.holds:
            return _refuted(measured, probed, (*names, write_evidence(ctx, red_evidence), *evidence))
        green = red_evidence.model_copy(update={"green": _green_evidence(ctx, measured)})
        names.append(write_evidence(ctx, green))
    names.append(ctx.write(f"evidence/green-{task.id}.json", canonical(measured.observation)))
    passing = sum(passed(record) for record in measured.observation.records.values())
    flaky = f", {len(measured.suspects.flaky)} flaky" if measured.suspects.flaky else ""
    note = f"{passing} tests pass{flaky}"
    return Event(signal=Signal.GREEN, tree=measured.tree, note=note, evidence=(*names, *evidence))


def _green_evidence(ctx: Context, measured: Measured) -> GreenEvidence:
    ledger = measured.ledger
    own = [r.id for r in measured.observation.records.values() if ledger is not None and ledger.owns(r) and passed(r)]
    return GreenEvidence(
        tree=measured.tree,
        passed=tuple(sorted(own)),
        new_ids=measured.verdict.new_ids,
        flaky=measured.suspects.flaky,
        stub_failures=measured.stub_failures,
        compared_with=ctx.run.info.start_tree,
        kept=measured.kept,
        controls=(*measured.ground.controls, *measured.ground.unsure),
    )


def _refuted(measured: Measured, probed: Probed, evidence: tuple[str, ...]) -> Event:
    """Return the event of a candidate that is GREEN by tests that are not what they were taken for (matrix 1)."""
    if probed.unstable:
        signal, what = Signal.GREEN_UNSTABLE, f"two runs disagree on {', '.join(probed.unstable[:3])}"
    else:
        signal, what = Signal.TEST_DESIGN, f"not RED over the code before: {', '.join(probed.not_red[:3])}"
    return Event(signal=signal, tree=measured.tree, note=what, evidence=evidence)


def not_green_md(task: Task, signal: Signal, measured: Measured) -> str:
    """Return what was measured, in words for @check and the next @make."""
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
        "what the tests stand on was changed": (*measured.ground.regions, *measured.ground.support),
    }
    lines: list[str] = []
    for words, ids in said.items():
        for entry in ids:
            record = measured.observation.records.get(entry)
            why = f": {record.fault.raised.message}" if record is not None and record.fault is not None else ""
            lines.append(f"{words}: {entry}{why}")
    tail = fenced(measured.observation.tail[-3000:], "text")
    return f"# Measurement of task {task.id}: {signal}\n\n{bullets(lines)}\n\n{tail}\n"
