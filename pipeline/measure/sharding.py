"""Measures all tests in parts (`[toolchains.NAME] workers`), each with a copy and a box of its own (matrix 5).

The baseline is always measured in one piece. It says which files there are, how long they take, and what is expected.
Afterwards parts save time, and decide nothing bad: as soon as they show anything that is worse than, or other than, the
baseline, the tree is measured in one piece, and that is the observation. So a test that fails only without its
neighbours costs time, and no verdict.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.evidence import shards
from pipeline.evidence.compare import passed
from pipeline.evidence.freeze import canonical
from pipeline.evidence.observation import Ended, Observation, RunState
from pipeline.languages.protocol import Selection
from pipeline.languages.runners import durations
from pipeline.measure.side_by_side import side_by_side
from pipeline.runs.files import write_atomic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

    from pipeline.evidence.observation import TestRecord

    Measure = Callable[[Selection | None], Awaitable[Observation]]
    """Measures the selected tests of one tree in a view of its own; None stands for all in one piece."""

_BASELINE: Final = "in-one-piece.json"
_EXPECTED: Final = frozenset({Ended.SKIPPED, Ended.XFAILED})


def remember(root: Path, baseline: Observation) -> None:
    """Store the baseline, which later measurements are divided by and compared with.

    Args:
        root: The run's own folder, out of every box.
        baseline: Measured in one piece.
    """
    if baseline.state is RunState.COMPLETE:
        write_atomic(root / _BASELINE, canonical(baseline))


async def measure_in_parts(
    measure: Measure, root: Path, cache: Path, paths: Iterable[str], workers: int
) -> Observation:
    """Return the observation of all tests of a tree.

    Args:
        measure: How one part, or the whole, is measured.
        root: The folder that `remember` was given; without a baseline there are no parts.
        cache: Where the toolchain has left how long the files take.
        paths: The files of the tree.
        workers: How many parts at a time.

    Raises:
        BoxError: the box did not work for one of them.
    """
    known = _baseline(root)
    files = _files(known, paths) if known is not None else frozenset[str]()
    if known is None or workers < 2 or len(files) < 2:  # noqa: PLR2004  (there is nothing to put together)
        return await measure(None)
    parts = shards.plan(files, durations.read(cache), workers)
    seen = await side_by_side([partial(measure, Selection(files=files)) for files in parts])
    strays = frozenset({record.path for each in seen for record in each.records.values()} - files)
    if strays:  # tests in files that nobody would have looked for
        parts, seen = (*parts, strays), [*seen, await measure(Selection(files=strays))]
    together = shards.merged(list(zip(parts, seen, strict=True)), command=known.command)
    return await measure(None) if _is_worse(together, known) else together


def _baseline(root: Path) -> Observation | None:
    place = root / _BASELINE
    return Observation.model_validate_json(place.read_bytes()) if place.exists() else None


def _files(known: Observation, paths: Iterable[str]) -> frozenset[str]:
    """Return the files of a tree that have tests, or would if they were new."""
    had = {record.path for record in known.records.values()}
    return frozenset(path for path in paths if path in had or known.layout.is_test(path))


def _is_worse(seen: Observation, known: Observation) -> bool:
    """Return whether a run differs from the known one for the worse. A run that timed out does not count."""
    if seen.state in {RunState.UNUSABLE, RunState.TIMED_OUT}:
        return False
    if seen.state is not RunState.COMPLETE or seen.collection_errors != known.collection_errors:
        return True
    return any(not _is_expected(record, known.records) for record in seen.records.values())


def _is_expected(record: TestRecord, known: Mapping[str, TestRecord]) -> bool:
    before = known.get(record.id)
    same = before is not None and before.outcome is record.outcome
    return same or passed(record) or (before is None and record.outcome in _EXPECTED)
