"""Tells what became of the tests that a commit's parent has: each that changed or went, with leave or without.

Evidence and task file say which may change, and whoever made the commit may have written both. So they decide what is
refuted, and never what is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.evidence.red import may_change
from pipeline.evidence.renamed_tests import moved
from pipeline.measure.composed_trees import shares_file
from pipeline.measure.measuring import changed_paths
from pipeline.progress import counted
from pipeline.verification.results import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.evidence.observation import Layout, TestRecord
    from pipeline.evidence.red_tests import RedTests
    from pipeline.measure.measuring import MeasurementContext
    from pipeline.verification.red import Runs


@dataclass(frozen=True)
class OldTests:
    """What is to be told of old tests, and which of it is not allowed."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def old_tests(ctx: MeasurementContext, runs: Runs, ledger: RedTests | None, allowed: frozenset[str]) -> OldTests:
    """Return what is to be told of tests and of what serves them.

    Args:
        ctx: What has the repository.
        runs: The parent and the commit.
        ledger: The evidence, if the commit has tests.
        allowed: Ids, functions or files of tests that the task may change.
    """
    renames: Mapping[str, str] = ledger.renames if ledger is not None else {}
    moves = moved(runs.before.records, runs.after.records, renames)
    problems: list[Problem] = []
    notes = [f"{counted(len(moves), 'test')} moved: {old} is {new} now" for old, new in renames.items()]
    for entry, old in runs.before.records.items():
        now = runs.after.records.get(moves.get(entry, entry))
        if not _is_suite(old, runs.before.layout) or (now is not None and now.region_sha256 == old.region_sha256):
            continue
        what = f"is an old test that this commit {'removes' if now is None else 'changes'}"
        if may_change(old, allowed):
            notes.append(f"{old.function} {what}, with leave of its task")
        elif now is not None and ledger is not None and ledger.owns(now):
            notes.append(
                f"{old.function} {what}, and the evidence has it as {'RED' if now.id in ledger.red else 'kept'}"
            )
        else:
            problems.append(Problem(id=entry, why=f"{what}, and the evidence does not speak of it"))
    known = {*runs.before.records, *moves.values()}
    fresh = [record for entry, record in runs.after.records.items() if entry not in known]
    notes += [
        f"{record.function} is new, and the evidence does not have it"
        for record in fresh
        if _is_suite(record, runs.after.layout) and (ledger is None or not ledger.owns(record))
    ]
    return OldTests(tuple(problems), tuple(dict.fromkeys((*notes, *_around(ctx, runs)))))


def _around(ctx: MeasurementContext, runs: Runs) -> list[str]:
    """Return a line for each changed file that holds no tests and has a part in them."""
    holding = {record.path for seen in (runs.before, runs.after) for record in seen.records.values()}
    lines: list[str] = []
    for path in changed_paths(ctx, *runs.trees):
        if path not in holding and runs.after.layout.is_test_side(path):
            lines.append(f"{path} serves tests, and this commit changes it")
        elif ctx.toolchain.is_control_path(path):
            lines.append(f"{path} controls how tests run, and this commit changes it")
    return lines


def _is_suite(record: TestRecord, layout: Layout) -> bool:
    """Return whether the test is one of the test side; an example in the documentation of production code is none."""
    is_example = "::doc::" in record.id
    return layout.is_test_side(record.path) or (shares_file(record.path, layout) and not is_example)
