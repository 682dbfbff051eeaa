"""Measures GREEN of a candidate: the tests, what else must hold, the probes of its tests, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.compare import GreenFacts, judge_green, passed, still_passing
from pipeline.judge.evidence.freeze import canonical
from pipeline.judge.evidence.observation import Observation, TestRecord
from pipeline.judge.evidence.quarantine import standing
from pipeline.judge.reports.markdown import bullets
from pipeline.judge.reports.signal_of_report import ImplementFacts
from pipeline.judge.reports.untrusted_text import fenced
from pipeline.matrix.routing.state import Event
from pipeline.progress import counted, few
from pipeline.run.info import day_of
from pipeline.steps.evidence.impact import impacted_tests, nearest_files, stand_alone, worth_repeating
from pipeline.steps.evidence_records import baseline_of, kept_tests, read_evidence, write_evidence
from pipeline.steps.wanted_stubs import stubs_left
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.measure import kept_runs, old_tests
from pipeline.testing.measure.measuring import measure
from pipeline.testing.measure.outcome_words import in_short, named, probes_md, seen
from pipeline.testing.measure.probes import Candidate, probes_of
from pipeline.testing.measure.red import named_by, tried_over_stubs
from pipeline.testing.measure.regression import Suspects, confirm
from pipeline.testing.measure.task_evidence import GreenEvidence, ProbeEvidence, TaskEvidence
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pipeline.judge.evidence.red_tests import RedTests
    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context
    from pipeline.steps.evidence.in_lane import InLane


_OTHER_VALUES: Final = "its case has other values than at RED, which production gives"


@dataclass(frozen=True)
class Measured:
    """A candidate with its run of all tests, and everything that GREEN asks for (matrix 5).

    `nearest` are the files of a run that was enough to show that it is not GREEN; empty: all tests were run. `kept` is
    how many tests that are not the task's own passed before and pass now.
    """

    tree: str
    observation: Observation
    verdict: GreenFacts
    suspects: Suspects
    structural: tuple[str, ...]
    stub_failures: tuple[str, ...]
    ledger: RedTests | None
    kept: int
    stubs_left: tuple[str, ...]
    pinned: old_tests.PinnedChanges
    nearest: tuple[str, ...] = ()
    old_form: old_tests.AsTheyWere = field(default_factory=old_tests.AsTheyWere)
    unstable: tuple[str, ...] = ()
    """Tests that fail in some runs of the same bytes, and in none before the run: the task's, and old ones."""
    failed: Mapping[str, TestRecord] = field(default_factory=dict[str, TestRecord])
    """How tests failed in any measurement of these bytes."""
    in_lane: InLane | None = None
    """What of it was measured in the task's lane, and was not again."""

    @property
    def broken(self) -> tuple[str, ...]:
        """Return the tests that passed before and fail."""
        return self.suspects.regressions

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return the old tests that pass as they are now, and fail as they were."""
        return tuple(self.old_form.hidden)

    @property
    def green(self) -> bool:
        """Return GREEN as matrix 5 defines it; a run of some tests never shows it."""
        return (
            not self.nearest
            and self.verdict.own_green
            and not self.verdict.stale_xfail
            and not self.broken
            and not self.hidden
            and not self.unstable
            and not self.structural
            and not self.stubs_left
            and self.pinned.holds
        )

    @property
    def facts(self) -> ImplementFacts:
        """Return what a signal follows from, beside the claim."""
        own_green, broken = self.verdict.own_green, bool(self.broken)
        return ImplementFacts(
            green=self.green,
            stale_xfail=bool(self.verdict.stale_xfail) and own_green and not (broken or self.hidden),
            regression=broken,
            hidden=bool(self.hidden),
            unstable=bool(self.unstable) and own_green,
        )

    @property
    def in_the_way(self) -> tuple[str, ...]:
        """Return what keeps the task's own evidence from being GREEN, ids and sentences, the most telling first."""
        verdict = self.verdict
        gone = verdict.not_green or verdict.missing or verdict.changed_regions or verdict.changed_files
        gone = gone or tuple(f"{path} cannot be collected" for path in verdict.uncollected)
        left = tuple(f"a stub is left: {place}" for place in self.stubs_left)
        return gone or verdict.cut_short or self.pinned.regions or self.pinned.support or left


async def measure_candidate(ctx: Context, task: Task, tree: str, in_lane: InLane | None = None) -> Measured:
    """Return what the tests and the bytes show of *tree*: all tests, unless the nearest condemn it already.

    Args:
        ctx: The run.
        task: The task.
        tree: The candidate.
        in_lane: What was measured of the same work in its lane, and holds here as well.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    state = ctx.state.task
    evidence = read_evidence(ctx, task.id)
    ledger = evidence.ledger if evidence is not None and state.testable else None
    kept = kept_tests(ctx)
    run = _run if in_lane is not None else _shown
    shown = await run(ctx, task, tree, ledger, kept)
    verdict = shown.verdict
    if in_lane is not None and set(verdict.new_ids) != set(in_lane.green.new_ids):
        in_lane = None  # production gives cases that nobody has tried
    layout = baseline_of(ctx).layout
    structural: tuple[str, ...] = ()
    stubbed: tuple[str, ...] = ()
    if in_lane is not None:
        stubbed = in_lane.green.stub_failures
    elif evidence is not None and not shown.nearest and verdict.own_green and verdict.whole_file_ids:
        # what was there before this task, in the same file, is not its evidence
        own = [entry for entry in verdict.whole_file_ids if entry not in kept]
        structural, stubbed = await tried_over_stubs(ctx, task, tree, evidence.production, own, layout)
        structural = structural if own else verdict.whole_file_ids
    holds = not shown.nearest and verdict.own_green and not shown.suspects.broken
    named = {path for change in task.files for path in (change.path, change.origin) if path}
    pinned = old_tests.pinned_changes(ctx, layout, named, state.red or ctx.state.head, tree)
    meanwhile = old_tests.written_files(ctx, baseline_of(ctx), shown.observation, tree)
    told = in_lane is not None and in_lane.old_tests
    alone = (
        await _as_they_were(ctx, task, tree, evidence, shown.observation)
        if holds and not told
        else old_tests.AsTheyWere()
    )
    return Measured(
        tree=tree,
        observation=shown.observation,
        verdict=verdict,
        suspects=shown.suspects,
        structural=structural,
        stub_failures=stubbed,
        ledger=ledger,
        kept=still_passing(kept, shown.observation, ledger),
        stubs_left=stubs_left(ctx, tree),
        pinned=replace(
            pinned,
            support=(*pinned.support, *meanwhile.support),
            controls=(*pinned.controls, *meanwhile.controls),
        ),
        nearest=shown.nearest,
        old_form=alone,
        unstable=tuple(dict.fromkeys((*verdict.unstable, *shown.suspects.unstable, *alone.unstable))),
        failed={**alone.failed, **kept_runs.seen_failing(ctx.checkout.root, tree)},
        in_lane=in_lane,
    )


async def _as_they_were(
    ctx: Context, task: Task, tree: str, evidence: TaskEvidence | None, now: Observation
) -> old_tests.AsTheyWere:
    def enough(paths: Collection[str]) -> Selection | None:
        """Return these files, which no other one mentions, with the nearest: all others were run as they are."""
        if not stand_alone(ctx, tree, paths):
            return None
        near = worth_repeating(ctx, impacted_tests(ctx, task, tree), now, evidence.ledger if evidence else None)
        return Selection(files=frozenset({*paths, *(now.records[entry].path for entry in near)}))

    sides = old_tests.Sides(
        ctx.state.task.start or ctx.state.start,
        tree,
        baseline_of(ctx).layout,
        named=evidence.test_paths if evidence is not None else (),
        made={change.path for change in task.files} - {change.path for change in task.test_files},
        moved={change.origin: change.path for change in task.test_files if change.origin is not None},
    )
    kept = kept_tests(ctx)
    return await old_tests.as_they_were(
        ctx, sides, kept, old_tests.leave_of(task), run_start=ctx.state.start, enough=enough
    )


@dataclass(frozen=True)
class _Shown:
    """What a run of tests shows of a candidate; of those in the files `nearest`, of all if there are none."""

    observation: Observation
    verdict: GreenFacts
    suspects: Suspects
    nearest: tuple[str, ...]


async def _shown(
    ctx: Context, task: Task, tree: str, ledger: RedTests | None, kept: Mapping[str, TestRecord]
) -> _Shown:
    """Return what all tests show, or the nearest, where all take long and these condemn the candidate by themselves."""
    if ledger is not None and kept_runs.whole_run(ctx.checkout.root, tree) is None:
        near = nearest_files(ctx, task, tree, ledger)
        first = await _run(ctx, task, tree, ledger, kept, near) if near else None
        if first is not None and (not first.verdict.own_green or first.suspects.broken):
            return first
    return await _run(ctx, task, tree, ledger, kept)


async def _run(
    ctx: Context,
    task: Task,
    tree: str,
    ledger: RedTests | None,
    kept: Mapping[str, TestRecord],
    near: frozenset[str] = frozenset(),
) -> _Shown:
    which = "the nearest tests" if near else "the whole suite"
    what = f"{which} over the new code, must pass"
    chosen = Selection(files=near) if near else None
    observation = await measure(ctx, tree, chosen, what=what)
    may_change = frozenset(test.id for test in task.tests_to_change)
    baseline = baseline_of(ctx)
    verdict = judge_green(
        ledger,
        observation,
        kept,
        tests_to_change=may_change,
        unread_before=baseline.unread,
        must_pass=named_by(task, baseline),
        seen_failing=kept_runs.seen_failing(ctx.checkout.root, tree),
        is_part=bool(near),
    )
    before = ctx.state.task.start or ctx.state.start
    suspects = await confirm(ctx, verdict.regressions, tree, before, observation, start=ctx.state.start, within=chosen)
    return _Shown(observation, verdict, suspects, tuple(sorted(near)))


async def record_green(ctx: Context, task: Task, measured: Measured, *evidence: str) -> Event:
    """Try the tests of what is GREEN, and record both; the whole run is kept: the next task must keep what passed here.

    Args:
        ctx: The run.
        task: The task.
        measured: What is GREEN.
        evidence: What the event names besides.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    names: list[str] = []
    probed = ProbeEvidence()
    only_tests = ctx.state.task.spec.red_base == "start"
    red_evidence = read_evidence(ctx, task.id)
    if red_evidence is not None:
        new_ids = measured.verdict.new_ids
        impacted = impacted_tests(ctx, task, measured.tree)
        # faults go into all that the run changed, and tests of the tasks before are there to notice these
        judges = impacted_tests(ctx, task, measured.tree, since=ctx.state.start) if only_tests else impacted
        candidate = Candidate(
            measured.tree,
            measured.observation,
            new_ids,
            frozenset(judges),
            old=worth_repeating(ctx, impacted, measured.observation, measured.ledger),
            start=ctx.state.start,
            without_new=measured.old_form.without_new,
            as_they_were=measured.old_form.seen,
            known=measured.in_lane.probes if measured.in_lane is not None else None,
        )
        probed = await _probed(ctx, task, red_evidence, candidate)
        names.append(probes_name(task.id))
        red_evidence = red_evidence.model_copy(update={"probes": probed})
        not_red = probed.revert.problems if probed.revert is not None else ()
        if probed.unstable or not_red:
            names.append(write_evidence(ctx, red_evidence))
            if probed.unstable:
                return unstable(ctx, task, measured, probed.unstable, *names, *evidence)
            note = f"not RED over the code before: {few(not_red)}"
            return Event(signal=Signal.TEST_DESIGN, tree=measured.tree, note=note, evidence=(*names, *evidence))
        green = red_evidence.model_copy(update={"green": _green_evidence(ctx, measured)})
        names.append(write_evidence(ctx, green))
    names.append(ctx.write(f"evidence/green-{task.id}.json", canonical(measured.observation)))
    if probed.unnoticed and not only_tests:
        note = f"no test notices a fault in {few(probed.unnoticed)}"
        signal = Signal.UNNOTICED_FAULTS
        return Event(signal=signal, tree=measured.tree, note=note, evidence=(*names, *evidence))
    passing = sum(passed(record) for record in measured.observation.records.values())
    flaky = f", {len(measured.suspects.flaky)} flaky" if measured.suspects.flaky else ""
    note = f"{counted(passing, 'test')} pass{'es' if passing == 1 else ''}{flaky}"
    return Event(signal=Signal.GREEN, tree=measured.tree, note=note, evidence=(*names, *evidence))


def _green_evidence(ctx: Context, measured: Measured) -> GreenEvidence:
    ledger, in_lane = measured.ledger, measured.in_lane
    is_told = in_lane is not None and in_lane.old_tests
    own = [r.id for r in measured.observation.records.values() if ledger is not None and ledger.owns(r) and passed(r)]
    return GreenEvidence(
        tree=measured.tree,
        passed=tuple(sorted(own)),
        new_ids=measured.verdict.new_ids,
        flaky=measured.suspects.flaky,
        stub_failures=measured.stub_failures,
        compared_with=ctx.run.info.start_tree,
        kept=measured.kept,
        as_they_were=in_lane.green.as_they_were if in_lane is not None and is_told else measured.old_form.lines(),
        controls=(
            *measured.pinned.controls,
            *measured.pinned.unsure,
            *(f"{entry}: {_OTHER_VALUES}" for entry in measured.verdict.other_cases),
        ),
    )


def unstable(ctx: Context, task: Task, measured: Measured, tests: tuple[str, ...], *evidence: str) -> Event:
    """Return the event of a candidate of which runs disagree; how each of these tests failed is told to @check."""
    failed = {**measured.failed, **kept_runs.seen_failing(ctx.checkout.root, measured.tree)}
    words = not_green_md(task, Signal.GREEN_UNSTABLE, replace(measured, unstable=tests, failed=failed))
    name = ctx.write(f"evidence/unstable-{ctx.lane.visit:03}.md", words)
    note = f"runs of the same bytes disagree on {few(tests)}"
    return Event(signal=Signal.GREEN_UNSTABLE, tree=measured.tree, note=note, evidence=(name, *evidence))


def not_green_note(signal: Signal, measured: Measured) -> str:
    """Return in short why a candidate is not GREEN, where that was measured."""
    match signal:
        case Signal.REGRESSION:
            return f"breaks {few(measured.broken)}"
        case Signal.HIDDEN_REGRESSION:
            hidden = measured.old_form.hidden
            first, how = next(iter(hidden.items()))
            more = f", and so do {', '.join(tuple(hidden)[1:3])}" if len(hidden) > 1 else ""
            return f"as it was before the task, {first} {how}{more}"
        case Signal.STALE_XFAIL:
            return f"passes now: {few(measured.verdict.stale_xfail)}"
        case Signal.STRUCTURAL_ONLY | Signal.TEST_DESIGN:
            return f"pass on stubs too: {few(measured.structural)}"
        case _:
            in_the_way = measured.in_the_way or measured.verdict.stale_xfail
            return f"not GREEN: {named(in_the_way[:3], measured.observation)}"


def not_green_md(task: Task, signal: Signal, measured: Measured) -> str:
    """Return what was measured, in words for @check and the next @make."""
    verdict = measured.verdict
    said: Mapping[str, tuple[str, ...]] = {
        "not GREEN": verdict.not_green,
        "test is gone": verdict.missing,
        "cannot be collected, and could before": verdict.uncollected,
        "nothing of it counts": verdict.cut_short,
        "test was changed": (*verdict.changed_regions, *verdict.changed_files),
        "breaks, in 2 of 2 runs": measured.suspects.regressions,
        "passes now, and in 2 of 2 runs not in its old form: changed to fit": tuple(
            f"{entry} {how}" for entry, how in measured.old_form.hidden.items()
        ),
        "failed in a run of these very bytes, and in none before the run": measured.unstable,
        "flaky before the run, not counted": measured.suspects.flaky,
        "strict xfail passes now": verdict.stale_xfail,
        "passes on stubs too": measured.structural,
        "a stub is left": measured.stubs_left,
        "what the tests stand on was changed": (*measured.pinned.regions, *measured.pinned.support),
    }
    faults = {error.path: error.fault for error in measured.observation.collection_errors}
    lines: list[str] = []
    for words, ids in said.items():
        for entry in ids:
            known = measured.observation.records if entry not in measured.unstable else measured.failed
            record = known.get(entry)
            why = f": {seen(record)}" if record is not None or words == "not GREEN" else ""
            why = f": {faults[entry].raised.message}" if entry in faults else why
            lines.append(f"{words}: {entry}{why}")
    if measured.nearest:
        lines.append(
            f"not all tests were run: those of the {counted(len(measured.nearest), 'nearest file')} were enough"
        )
    tail = fenced(measured.observation.tail[-3000:], "text")
    return f"# Measurement of task {task.id}: {signal}\n\n{bullets(lines)}\n\n{tail}\n"


def probes_name(task: str) -> str:
    """Return the name of the document on the probes of a task's tests."""
    return f"evidence/probes-{task}.md"


async def _probed(ctx: Context, task: Task, evidence: TaskEvidence, candidate: Candidate) -> ProbeEvidence:
    """Return what came of trying the tests of a task whose candidate is GREEN, written down for people and agents.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
        UserError: the disk does not take it.
    """
    missing = [task, *(ctx.task(done.id) for done in ctx.state.done_tasks if ctx.state.task.spec.red_base == "start")]
    layout = baseline_of(ctx).layout
    found = await probes_of(ctx, ctx.config.probes, missing, evidence, candidate, layout)
    own = () if evidence.ledger is None else (evidence.ledger,)
    records = tuple(candidate.observation.records.values())
    lines = standing(ctx.config.quarantine, records, day_of(ctx.run.info), own).lines()
    found = found.model_copy(update={"quarantine": lines})
    if said := in_short(found):
        ctx.say(f"    probes: {said}")
    ctx.write(probes_name(task.id), probes_md(task.id, found))
    return found
