"""Finds old tests that pass only because a new test file is collected with them: they count as broken.

A test module that patches the code when it is imported, a new `__init__.py` or `conftest.py`: each may let old tests
pass that the change has broken. So where a task brings such files, all tests are run once more without them.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pipeline.evidence.compare import passed
from pipeline.evidence.observation import RunState
from pipeline.evidence.red import may_change
from pipeline.languages.table import has_part, language_of
from pipeline.measure import kept_runs
from pipeline.measure.composed_trees import compose
from pipeline.measure.measuring import UnmeasurableError, changed_paths, measure
from pipeline.measure.old_tests.regression import Suspects, confirm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.evidence.observation import Layout, TestRecord
    from pipeline.evidence.red_tests import RedTests
    from pipeline.measure.measuring import MeasurementContext
    from pipeline.reports.tasks import Task


async def masked(
    ctx: MeasurementContext,
    task: Task,
    start: str,
    tree: str,
    kept: Mapping[str, TestRecord],
    ledger: RedTests | None,
    layout: Layout,
    *,
    run_start: str,
) -> Suspects:
    """Return the old tests that pass over a candidate but fail where its new test files are left out.

    Nothing is said of a test of which the file was changed too and cannot be collected without them: it may need one.

    Args:
        ctx: Where to measure.
        task: The task.
        start: The tree that it began with.
        tree: The candidate; all tests hold over it.
        kept: What must be kept.
        ledger: The task's RED evidence.
        layout: Which files are tests.
        run_start: The tree that the run began with.
    """
    changed = changed_paths(ctx, start, tree)
    there = {entry.path for entry in ctx.repository.entries(start, *changed)} if changed else set[str]()
    new = [path for path in changed if path not in there and _is_loaded(path, layout)]
    if not new:
        return Suspects()
    alone = compose(ctx, start, tree, new, layout).tree
    try:
        seen = await measure(ctx, alone, what="the old tests over the new code, without the new tests, must pass")
    except UnmeasurableError as error:
        ctx.say(f"    the old tests cannot be run without the new files: {error}")
        return Suspects()
    if seen.state not in {RunState.COMPLETE, RunState.CRASHED}:
        return Suspects()
    unread = seen.unread.difference(changed)
    failed = kept_runs.seen_failing(ctx.checkout.root, alone)
    leave = frozenset(test.id for test in task.tests_to_change)
    suspects = [
        entry
        for entry, before in kept.items()
        if passed(before)
        and not may_change(before, leave)
        and not (ledger is not None and ledger.owns(before))
        and (before.path in unread if entry not in seen.records else not passed(seen.records[entry]) or entry in failed)
    ]
    return await confirm(ctx, sorted(suspects), alone, start, seen, start=run_start)


def _is_loaded(path: str, layout: Layout) -> bool:
    """Return whether a runner loads a file together with other tests; Rust builds a program for each."""
    language = language_of(path)
    unasked = {language.helper, language.package_file} if language is not None else set[str]()
    is_helper = layout.is_test_side(path) and PurePosixPath(path).name in unasked
    return (layout.is_test(path) or is_helper) and not has_part(path, "test_regions")
