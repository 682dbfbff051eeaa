"""Runs all probes of a task's GREEN tests: repetition, reverted change, reach, small faults.

In this order, and no further than the first that fails: a test that does not hold still cannot be asked anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.compare import passed, passes, passes_at_once
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.measure import kept_runs, task_evidence
from pipeline.testing.measure.measuring import MeasurementContext, changed_paths, measure
from pipeline.testing.measure.mutation import UNBOXED, Judges, mutation_probe
from pipeline.testing.measure.regression import flaky_before
from pipeline.testing.measure.revert import revert_check

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.config.tables import Probes
    from pipeline.judge.evidence.observation import Layout, Observation, Reach
    from pipeline.judge.reports.tasks import Task


_NOT_RUN = "not run"
_DOUBTED: Final = "tests in doubt over the new code again, must pass"
_SURE = 3
"""The number of further runs of a suspect over the candidate: how often it fails is told."""


@dataclass(frozen=True)
class Alone:
    """A run of tests by themselves, which others need not make again, and how many seconds it took."""

    seen: Observation
    seconds: float


async def repeat(
    ctx: MeasurementContext, tree: str, ids: Collection[str], times: int, *, first: Observation, trace: bool = False
) -> tuple[task_evidence.RepeatEvidence, Alone | None]:
    """Return the tests whose repeated runs on the same tree disagree, and the first run of all by themselves.

    Where they do, the tests in question are run once more by themselves: that tells a test that needs others
    before it from one that goes this way and that.

    Args:
        ctx: The run, or what measures without one.
        tree: The candidate.
        ids: The tests to run, by themselves.
        times: How many runs are wanted, *first* included.
        first: A run that there is already, of all tests.
        trace: Note in the first further run what each test reaches. A test that fails in each run that is traced, and
            in no other, fails since that takes time: that is our doing, and it is not unstable.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    runs, plain = [first], [first]
    traced: list[Observation] = []
    took: list[float] = []

    async def run(chosen: Collection[str], what: str, *, trace: bool = False) -> None:
        some = Selection(ids=frozenset(chosen))
        seen = await measure(ctx, tree, some, again=True, trace=trace, what=what, timed=took.append)
        runs.append(seen)
        (traced if trace else plain).append(seen)

    while ids and len(runs) < times:
        await run(ids, "the new tests over the new code again, must pass", trace=trace and len(runs) == 1)
    alone = Alone(runs[1], took[0]) if took else None
    rerun = {r.id for seen in runs for r in seen.records.values() if passed(r) and not passes_at_once(r)}
    unsure = [entry for entry in ids if entry in rerun or _disagree(entry, runs)]
    if unsure:
        await run(unsure, _DOUBTED)
    slowed = [entry for entry in unsure if traced and _is_only_slowed(entry, plain, traced)]
    if slowed:
        await run(slowed, _DOUBTED, trace=True)
        for _ in range(_SURE - 1):
            await run(slowed, _DOUBTED)
        unsure = [entry for entry in unsure if entry not in slowed or not _is_only_slowed(entry, plain, traced)]
    for seen in traced:  # what is our doing in general is none of ours here: these bytes were seen failing
        failed = {entry: seen.records[entry] for entry in unsure if entry in seen.records}
        kept_runs.keep_failures(ctx.checkout.root, tree, failed)
    unstable = {entry: tuple(_ended(entry, run) for run in runs) for entry in sorted(unsure)}
    return task_evidence.RepeatEvidence(runs=len(runs), unstable=unstable), alone


async def repeat_old(
    ctx: MeasurementContext,
    trees: tuple[str, str],
    ids: Collection[str],
    times: int,
    first: Observation,
    *more: Observation,
) -> task_evidence.OldEvidence:
    """Return the old tests that pass only sometimes now and were stable before.

    Args:
        ctx: The run, or what measures without one.
        trees: The one that the run began with, and the candidate, or that without its new test files.
        ids: Tests that passed before and pass in *first*; run by themselves.
        times: How many runs of the candidate are wanted, *first* included.
        first: A run of all tests of the candidate.
        more: Runs of old tests over the same code: those that are there as they are now were run once more by these.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    seen = {entry: [first, *(run for run in more if _has_as_it_is(entry, first, run))] for entry in ids}
    while left := {entry for entry in ids if len(seen[entry]) < times}:
        what = "old tests near the change over the new code again, must pass"
        again = await measure(ctx, trees[1], Selection(ids=frozenset(left)), again=True, what=what)
        for entry in left:
            seen[entry].append(again)
    unsure = sorted(entry for entry in ids if _disagree(entry, seen[entry]))
    if not unsure:
        return task_evidence.OldEvidence(asked=len(ids))
    some = Selection(ids=frozenset(unsure))
    for _ in range(_SURE):
        again = await measure(ctx, trees[1], some, again=True, what=_DOUBTED)
        for entry in unsure:
            seen[entry].append(again)
    before = await flaky_before(ctx, unsure, trees[0])
    unstable = [entry for entry in unsure if entry not in before]
    return task_evidence.OldEvidence(
        asked=len(ids),
        unstable={entry: tuple(_ended(entry, run) for run in seen[entry]) for entry in unstable},
        doubtful=tuple(entry for entry in unsure if entry not in unstable),
    )


def _has_as_it_is(entry: str, first: Observation, run: Observation) -> bool:
    now, there = first.records.get(entry), run.records.get(entry)
    return now is not None and there is not None and there.ran and there.region_sha256 == now.region_sha256


def _is_only_slowed(entry: str, plain: Collection[Observation], traced: Collection[Observation]) -> bool:
    """Return whether a test fails in each run that is traced, and passes in each other one."""
    return all(passes(run, entry) for run in plain) and not any(passes(run, entry) for run in traced)


def _disagree(entry: str, runs: Collection[Observation]) -> bool:
    return len({passes(run, entry) for run in runs}) > 1


def _ended(entry: str, run: Observation) -> str:
    record = run.records.get(entry)
    if record is None or record.outcome is None:
        return _NOT_RUN
    return record.outcome.value + (" when run again" if passed(record) and not passes_at_once(record) else "")


async def reach_probe(
    ctx: MeasurementContext,
    production: str,
    tree: str,
    ids: Collection[str],
    layout: Layout,
    traced: Observation | None = None,
) -> task_evidence.ReachEvidence | None:
    """Return which tests enter no function of a changed file; None where it cannot be measured.

    A test that starts a process, or opens a changed file that is no source code, may reach anything. Nothing is said of
    one that was not traced (`reach` is None), as in languages of which no toolchain of ours traces tests that pass.

    Args:
        ctx: The run, or what measures without one.
        production: What RED was measured over.
        tree: The candidate.
        ids: The task's own tests.
        layout: Which files are tests.
        traced: A run of these tests that was traced, where there is one.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    changed = {path for path in changed_paths(ctx, production, tree) if not layout.is_test_side(path)}
    if not ids or not changed:
        return None
    if traced is None:
        what = "the new tests over the new code, traced, must pass"
        traced = await measure(ctx, tree, Selection(ids=frozenset(ids)), trace=True, what=what)
    records = traced.records
    reaches = {entry: records[entry].reach for entry in sorted(ids) if entry in records}
    asked = {entry: reach for entry, reach in reaches.items() if reach is not None}
    if not asked:
        return None
    data = {path for path in changed if not path.endswith(ctx.toolchain.sources)}
    return task_evidence.ReachEvidence(
        changed=tuple(sorted(changed - data or changed)),
        entering=sum(_enters(reach, changed, data) for reach in asked.values()),
        elsewhere=tuple(entry for entry, reach in asked.items() if not _enters(reach, changed, data)),
    )


def _enters(reach: Reach, changed: Collection[str], data: Collection[str]) -> bool:
    entered = {entry.partition("::")[0] for entry in reach.functions}
    doors = set(reach.doors)
    return bool(entered.intersection(changed)) or "process" in doors or bool(doors.intersection(data))


@dataclass(frozen=True)
class Candidate:
    """A GREEN tree with its measurement.

    Args:
        tree: The tree.
        observation: The run that showed it, of all tests.
        new_ids: Ids that came with it, from parameters in production code.
        impacted: Tests that touch the files of the task; a fault may be noticed by these as well.
        old: Those of them that passed before and pass now, the nearest first, as many as are worth another run.
        start: The tree that the run began with.
        without_new: The tree without new test files, to run `old` over: one may change what others see. Empty: the tree
            is as good.
        as_they_were: The run of all old tests as they were over this code, where there was one.
        known: What was measured of the same work already, where nothing that its tests stand on is different here.
    """

    tree: str
    observation: Observation
    new_ids: tuple[str, ...] = ()
    impacted: frozenset[str] = frozenset()
    old: tuple[str, ...] = ()
    start: str = ""
    without_new: str = ""
    as_they_were: Observation | None = None
    known: task_evidence.ProbeEvidence | None = None


async def probes_of(
    ctx: MeasurementContext,
    wanted: Probes,
    tasks: list[Task],
    evidence: task_evidence.TaskEvidence,
    candidate: Candidate,
    layout: Layout,
) -> task_evidence.ProbeEvidence:
    """Return the results of a task's probes; empty for a task without tests.

    Args:
        ctx: The run, or what measures without one.
        wanted: `[probes]`.
        tasks: The task, and those whose symbols were missing when RED was measured too.
        evidence: The task's evidence.
        candidate: The tree that is GREEN.
        layout: Which files are tests.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    ledger = evidence.ledger
    if ledger is None:
        return task_evidence.ProbeEvidence()
    records = candidate.observation.records.values()
    own = frozenset(r.id for r in records if passed(r) and (ledger.owns(r) or r.id in candidate.new_ids))
    reaching = own.intersection({*ledger.red, *(r.id for r in records if r.path in ledger.whole_files)})
    if candidate.known is not None:
        found = candidate.known.model_copy(update={"revert": None})
        wanted = wanted.model_copy(update={"repeat": 1, "reach": False, "mutants": 0})
    else:
        found = task_evidence.ProbeEvidence()
    alone = None
    if wanted.repeat > 1:
        first, trace = candidate.observation, wanted.reach and bool(reaching)
        again, alone = await repeat(ctx, candidate.tree, own, wanted.repeat, first=first, trace=trace)
        found = found.model_copy(update={"repeated": again})
        if again.unstable:
            return found
        trees = (candidate.start, candidate.without_new or candidate.tree)
        before = (candidate.as_they_were,) if candidate.as_they_were is not None else ()
        others = await repeat_old(ctx, trees, candidate.old, wanted.repeat, candidate.observation, *before)
        found = found.model_copy(update={"old": others})
        if others.unstable:
            # without the new files it was the same code: who hands in these bytes again is asked the same
            failed = kept_runs.seen_failing(ctx.checkout.root, trees[1])
            known = {entry: failed[entry] for entry in others.unstable if entry in failed}
            kept_runs.keep_failures(ctx.checkout.root, candidate.tree, known)
            return found
    if wanted.revert:
        reverted = await revert_check(ctx, tasks, evidence, candidate.tree, candidate.new_ids, layout)
        found = found.model_copy(update={"revert": reverted})
        if reverted is not None and reverted.problems:
            return found
    if wanted.reach:
        traced = alone.seen if alone is not None else None
        reached = await reach_probe(ctx, evidence.production, candidate.tree, reaching, layout, traced)
        found = found.model_copy(update={"reach": reached})
    if wanted.mutants:
        judges = Judges(own, candidate.impacted, alone.seconds if alone is not None else 0.0)
        mutation = await faults(ctx, wanted, evidence.production, candidate.tree, judges, layout)
        found = found.model_copy(update={"mutation": mutation})
    return found


async def faults(
    ctx: MeasurementContext, wanted: Probes, base: str, tree: str, judges: Judges, layout: Layout
) -> task_evidence.MutationEvidence:
    """Return which faults in the changed lines the tests detect.

    Without a box nothing is tried: code with a fault in it could remove what it should have kept.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    if ctx.box.name == NoBox.name:
        return task_evidence.MutationEvidence(trouble=UNBOXED)
    return await mutation_probe(ctx, wanted, base, tree, judges, layout)
