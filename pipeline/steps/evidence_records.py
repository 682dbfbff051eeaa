"""Keeps the evidence of a task: `evidence/task-<id>.json`, for each test id what was RED, why, and what is GREEN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.judge.evidence.compare import expectations
from pipeline.judge.evidence.named_tests import called, path_of
from pipeline.judge.evidence.observation import Observation, TestRecord
from pipeline.judge.evidence.quarantine import Standing, standing
from pipeline.run.info import day_of
from pipeline.testing.measure.composed_trees import own_files
from pipeline.testing.measure.task_evidence import TaskEvidence, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.judge.reports.fields import OldTest
    from pipeline.steps.context import Context


BASELINE = "evidence/baseline.json"


def write_evidence(ctx: Context, evidence: TaskEvidence) -> str:
    """Write a task's evidence; return its name."""
    return ctx.write_json(name_of(evidence.task), evidence.model_dump(mode="json", by_alias=True))


def read_evidence(ctx: Context, task: str) -> TaskEvidence | None:
    """Return a task's evidence, or None where there is none yet."""
    if not ctx.path(name_of(task)).exists():
        return None
    return TaskEvidence.model_validate_json(ctx.read(name_of(task)))


def baseline_of(ctx: Context) -> Observation:
    """Return the baseline's observation, as SANITY recorded it."""
    return Observation.model_validate_json(ctx.read("evidence/baseline-full.json"))


def kept_tests(ctx: Context) -> Mapping[str, TestRecord]:
    """Return what must be kept: the baseline, then the GREEN runs of the tasks accepted so far (matrix 5).

    What is quarantined is not among it; the summary and the final review say so in each run.
    """
    return quarantine_of_run(ctx).without(expectations(baseline_of(ctx), _accepted(ctx)))


def collected_files(ctx: Context) -> frozenset[str]:
    """Return the files of tests of the baseline and of the GREEN runs so far; none that only has examples in it."""
    return baseline_of(ctx).layout.collected.union(*(green.layout.collected for green in _accepted(ctx)))


def _accepted(ctx: Context) -> list[Observation]:
    paths = [ctx.path(f"evidence/green-{task.id}.json") for task in ctx.state.done_tasks]
    return [Observation.model_validate_json(path.read_bytes()) for path in paths if path.exists()]


def quarantine_of_run(ctx: Context) -> Standing:
    """Return what the quarantine comes down to for the tests of the baseline; none of an accepted task is excused."""
    found = [read_evidence(ctx, task.id) for task in ctx.state.done_tasks]
    ledgers = [evidence.ledger for evidence in found if evidence is not None and evidence.ledger is not None]
    return standing(ctx.config.quarantine, tuple(baseline_of(ctx).records.values()), day_of(ctx.run.info), ledgers)


def files_of(ctx: Context, tests: Iterable[str]) -> tuple[str, ...]:
    """Return the test files of tests of the baseline and of the tasks accepted so far, where something tells them."""
    records = known_tests(ctx)
    return own_files((path_of(test, records, ctx.toolchain.sources) for test in tests), baseline_of(ctx).layout)


def known_tests(ctx: Context) -> Mapping[str, TestRecord]:
    """Return the tests of the baseline and of the tasks accepted so far, by id."""
    return {**kept_tests(ctx), **baseline_of(ctx).records}


def by_their_names(ctx: Context, tests: Iterable[OldTest]) -> tuple[OldTest, ...]:
    """Return old tests by id or function, where what they are called by fits exactly one; the others as they are."""
    listed = tuple(tests)
    if not listed:  # most tasks list none, and what is known is a large file
        return ()
    records = known_tests(ctx)
    found = ((test, called(test.id, records)) for test in listed)
    return tuple(test.model_copy(update={"id": names[0]}) if len(names) == 1 else test for test, names in found)
