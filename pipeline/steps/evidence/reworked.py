"""Tells what tests notice no longer because @check had them rewritten from what a change loosens unasked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.measure.old_tests.loosened import loosened
from pipeline.routing.vocabulary import Step
from pipeline.steps.evidence.records import baseline_of, kept_tests

if TYPE_CHECKING:
    from pipeline.steps.context import Context

_JUDGES: Final = frozenset({Step.CHECK_TESTS.value, Step.DIAGNOSE.value})
_BETWEEN: Final = re.compile(r"::|\.")


def loosened_or_reworked(ctx: Context, start: str, tree: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the tests of *tree* notice no longer that those before it did, and of that what was ordered.

    @check orders it for the task's own last tests, and by its final review for tests of earlier tasks of this run. A
    test that was there before the run is never among what was ordered: whether it may change is another question.
    """
    task, layout = ctx.state.task, baseline_of(ctx).layout
    own = loosened(ctx, layout, task.tests, tree) if task.tests not in {None, start} and task.tests else ()
    lines = loosened(ctx, layout, start, tree)
    ordered = [line for line in own if line not in lines]
    if not _is_ordered(ctx):
        lines, ordered = tuple(dict.fromkeys((*lines, *own))), []
    if task.fix:
        ours = _tests_of_run(ctx)
        ordered += [line for line in lines if _test_of(line) in ours]
        lines = tuple(line for line in lines if _test_of(line) not in ours)
    return lines, tuple(dict.fromkeys(ordered))


def _is_ordered(ctx: Context) -> bool:
    """Return whether @check sent the task's tests back, or they never were accepted, so that nothing rests on them."""
    line = ctx.arrival()
    return ctx.state.task.red is None or (line is not None and line.data.step in _JUDGES)


def _tests_of_run(ctx: Context) -> frozenset[tuple[str, str]]:
    """Return path and name of the tests that earlier tasks of this run brought."""
    old = baseline_of(ctx).records
    new = [record for record in kept_tests(ctx).values() if record.id not in old]
    there = {(record.path, _last(record.function)) for record in old.values()}
    return frozenset((record.path, _last(record.function)) for record in new) - there


def _test_of(line: str) -> tuple[str, str]:
    path, _, rest = line.partition(": ")
    return path, _last(rest.partition(": ")[0])


def _last(name: str) -> str:
    return _BETWEEN.split(name)[-1]
