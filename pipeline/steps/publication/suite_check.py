"""Runs the suite before publication: what passed before must pass over what is to be published (ADR-R96)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.compare import expectations, judge_green, kept_under_new_names, passed, still_passing
from pipeline.judge.evidence.quarantine import standing
from pipeline.judge.reports.markdown import bullets
from pipeline.progress import few
from pipeline.run.info import day_of
from pipeline.steps.evidence_records import baseline_of, kept_tests, quarantine_of_run, read_evidence
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.measuring import MeasurementContext, measure
from pipeline.testing.measure.regression import confirm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.judge.evidence.observation import Observation, TestRecord
    from pipeline.steps.context import Context, DriverContext


_SHOWN: Final = 3


@dataclass(frozen=True)
class Held:
    """What does not hold of a tree, one sentence each, path or id first; `passing` tests passed before and pass now."""

    lost: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    passing: int = 0

    @property
    def in_short(self) -> str:
        """Return the first few of what does not hold."""
        return few(self.lost, _SHOWN, "; ")


async def hold(ctx: Context, tree: str, base: str | None = None) -> Held:
    """Return whether everything that passed before the run, or at the GREEN of a task, passes over *tree*.

    A run of all tests of exactly this tree is used if there was one: the last GREEN is one, unless something was
    changed since.

    Args:
        ctx: The run.
        tree: What is to be published.
        base: The tree that it is put on, where that is not the start: then what passes over it counts as before.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    if base is None:
        baseline, own = baseline_of(ctx), kept_tests(ctx)
    else:
        baseline, own = await measure(ctx, base, what=f"{ctx.run.info.branch} as it is now, all tests"), _brought(ctx)
    expected = {**quarantine_of_run(ctx).without(expectations(baseline)), **own}
    leave = frozenset(test.id for task in ctx.state.done_tasks for test in ctx.task(task.id).tests_to_change)
    evidences = (read_evidence(ctx, task.id) for task in ctx.state.done_tasks)
    ledgers = [found.ledger for found in evidences if found is not None and found.ledger is not None]
    renames = {old: new for ledger in ledgers for old, new in ledger.renames.items()}
    return await _compared(ctx, tree, base or ctx.state.start, baseline, expected, leave, renames)


async def hold_over(ctx: DriverContext, tree: str, before: str) -> Held:
    """Return whether everything that passes over one tree passes over another one, which no test was written for.

    Args:
        ctx: What measures.
        tree: What is to be published.
        before: The tree that it is put on.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    baseline = await measure(ctx, before, what="the whole suite before the change, to compare with")
    return await _compared(ctx, tree, before, baseline, kept_over(ctx, baseline), frozenset(), {})


def kept_over(ctx: DriverContext, before: Observation) -> Mapping[str, TestRecord]:
    """Return what passed over a tree and has to go on so, as nothing excuses it on the day when the run began."""
    excused = standing(ctx.config.quarantine, tuple(before.records.values()), day_of(ctx.run.info), ())
    return excused.without(expectations(before))


async def _compared(
    ctx: MeasurementContext,
    tree: str,
    before: str,
    baseline: Observation,
    expected: Mapping[str, TestRecord],
    leave: frozenset[str],
    renames: Mapping[str, str],
) -> Held:
    """Return what of *expected* does not hold of a tree; *leave* is to change tests, *renames* of test files."""
    seen = await measure(ctx, tree, what="the whole suite over the result, must pass")
    moves = kept_under_new_names(expected, seen.records, renames, leave)
    root, may = ctx.checkout.root, leave | moves
    failures = kept_runs.seen_failing(root, tree)
    verdict = judge_green(
        None, seen, expected, tests_to_change=may, unread_before=baseline.unread, seen_failing=failures
    )
    failed = {entry for entry in verdict.regressions if entry in baseline.records and passed(baseline.records[entry])}
    suspects = await confirm(ctx, sorted(failed), tree, before, seen)
    # what this run brought or mended fails here even once: the tree that it began with says nothing of it
    brought = set(verdict.regressions) - failed
    lost = (
        *(f"{entry} passed and fails now" for entry in sorted({*suspects.regressions, *brought})),
        *(f"{entry} passed each time before, and not always now" for entry in suspects.unstable),
        *(f"{entry} is gone, and no task may remove it" for entry in verdict.missing),
        *(f"{path} cannot be collected, and could before" for path in verdict.uncollected),
        *verdict.cut_short,
        *(f"{entry} is a strict xfail, and passes now" for entry in verdict.stale_xfail),
    )
    return Held(lost, suspects.flaky, still_passing(expected, seen, None))


def _brought(ctx: Context) -> dict[str, TestRecord]:
    """Return the tests that the run brought, changed or mended: what it owes, whatever the others commit."""
    before = baseline_of(ctx).records
    found: dict[str, TestRecord] = {}
    for entry, record in kept_tests(ctx).items():
        old = before.get(entry)
        if old is None or old.region_sha256 != record.region_sha256 or passed(old) is not passed(record):
            found[entry] = record
    return found


def held_md(held: Held) -> str:
    """Return what was measured, for a person."""
    head = f"{held.passing} of the tests that passed before pass over what is to be published."
    flaky = [f"{entry} was flaky before, and is not counted" for entry in held.flaky]
    return f"# The suite before publication\n\n{head}\n\n{bullets([*held.lost, *flaky])}\n"
