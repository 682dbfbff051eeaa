"""Finds the tests that a task touches: for @make, for the order of measuring, for the probes of its tests.

The rule is `evidence.impact`. It never says that a test need not be run.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from pipeline.evidence.compare import passed
from pipeline.evidence.early_results import first_stage, is_long
from pipeline.evidence.impact import Graph, Subject, impacted
from pipeline.git import TooLargeError
from pipeline.languages.readers import import_graph
from pipeline.languages.runners import durations
from pipeline.languages.sources.import_graph import is_read
from pipeline.measure import kept_runs
from pipeline.measure.measuring import CACHE, changed_paths
from pipeline.runs.files import write_atomic
from pipeline.steps.evidence.records import baseline_of, kept_tests

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.evidence.observation import Observation
    from pipeline.evidence.red_tests import RedTests
    from pipeline.git import Repository
    from pipeline.reports.tasks import Task
    from pipeline.steps.context import Context

HANDED: Final = 40
"""So many test functions, the nearest, are for @make to run: a list that nobody reads helps nobody. Probes run all."""
_LIMIT: Final = 8 << 20
"""Of more code than this, in bytes, the imports are not read: a megabyte takes about half a second."""
_CODE: Final = re.compile(r"`([^`\n]+)`|\b(\w+(?=\()|\w*[^\W_]_[^\W_]\w*|[^\W\d_]*[a-z][A-Z]\w*)")
_NAME: Final = re.compile(r"[^\W\d]\w{2,}")
_LONGEST: Final = 80
"""A longer span of code is an example, and no name."""
_STORED: Final = TypeAdapter(dict[str, frozenset[str]])


def impacted_tests(ctx: Context, task: Task, tree: str, *, since: str | None = None) -> tuple[str, ...]:
    """Return the tests that the task's files touch, of those that were there before it, the nearest first.

    Args:
        ctx: The run.
        task: The task; its files are what changes.
        tree: What @make starts from, or has made.
        since: Count all that was changed since this tree, too.
    """
    start = ctx.state.task.red or ctx.state.head
    changed = {path for change in task.files for path in (change.path, change.origin) if path is not None}
    changed.update(changed_paths(ctx, since or start, tree))
    graph = graph_of(ctx.repository, start, ctx.checkout.root / "imports")
    tests = {**baseline_of(ctx).records, **kept_tests(ctx)}
    paths = frozenset(record.path for record in tests.values())
    about = Subject(names_of(task), _texts(ctx.repository, start, paths))
    return impacted(changed, graph, tests.values(), kept_runs.reach(ctx.checkout.root), about)


def names_of(task: Task) -> frozenset[str]:
    """Return the names of code that a task speaks of: its symbols, and what its text writes as code does."""
    said = [symbol.name for symbol in task.symbols]
    text = f"{task.title}\n{task.body}"
    said += [span for pair in _CODE.findall(text) for span in pair if span]
    return frozenset(word for span in said if len(span) <= _LONGEST for word in _NAME.findall(span))


def _texts(repository: Repository, tree: str, paths: frozenset[str]) -> dict[str, str]:
    """Return the sources of the tests; none where there is too much of them."""
    entries = [entry for entry in repository.entries(tree) if entry.path in paths and entry.mode.startswith("100")]
    with suppress(TooLargeError):
        texts = repository.blobs((entry.oid for entry in entries), _LIMIT)
        return {entry.path: texts[entry.oid].decode("utf-8", "replace") for entry in entries}
    return {}


def nearest_files(ctx: Context, task: Task, tree: str, ledger: RedTests) -> frozenset[str]:
    """Return the files of which the tests are worth a run of their own before all tests are run; empty: none.

    Args:
        ctx: The run.
        task: The task.
        tree: The candidate.
        ledger: The task's RED evidence.
    """
    seconds = durations.read(ctx.checkout.root / CACHE)
    workers = ctx.config.toolchains.settings_of(ctx.toolchain.name).workers
    if not is_long(seconds, workers):
        return frozenset()
    tests = {**baseline_of(ctx).records, **kept_tests(ctx)}
    near = dict.fromkeys(tests[entry].path for entry in impacted_tests(ctx, task, tree))
    return first_stage((*ledger.frozen.files, *ledger.whole_files), near, seconds, workers)


def worth_repeating(
    ctx: Context, impacted: Iterable[str], now: Observation, ledger: RedTests | None
) -> tuple[str, ...]:
    """Return old tests that passed before and pass now: the nearest, as many as take no longer than the probes may.

    Args:
        ctx: The run.
        impacted: The tests that the task touches, the nearest first.
        now: The run of the candidate.
        ledger: The task's RED evidence; what it owns is repeated anyway.
    """
    seconds = durations.read(ctx.checkout.root / CACHE)
    kept = kept_tests(ctx)
    left = ctx.config.probes.seconds
    found: list[str] = []
    files: set[str] = set()
    functions: set[str] = set()
    for entry in impacted:
        record = now.records.get(entry)
        steady = record is not None and entry in kept and passed(kept[entry]) and passed(record)
        if record is None or not steady or (ledger is not None and ledger.owns(record)):
            continue
        if record.path not in files:
            left -= seconds.get(record.path, 0.0)
            files.add(record.path)
        functions.add(record.function)
        if left < 0 or len(functions) > HANDED:
            break
        found.append(entry)
    return tuple(found)


def graph_of(repository: Repository, tree: str, kept: Path) -> Graph:
    """Return the imports of a tree's code; an empty graph, in which nothing is known, where there is too much of it.

    Args:
        repository: Where the tree is.
        tree: The tree.
        kept: The folder in which graphs are kept, by tree; the run's own, out of every box.
    """
    place = kept / f"{tree}.json"
    if place.exists():
        return _STORED.validate_json(place.read_bytes())
    entries = [entry for entry in repository.entries(tree) if entry.mode.startswith("100") and is_read(entry.path)]
    graph: Graph = {}
    with suppress(TooLargeError):
        texts = repository.blobs((entry.oid for entry in entries), _LIMIT)
        graph = import_graph({entry.path: texts[entry.oid].decode("utf-8", "replace") for entry in entries})
    kept.mkdir(parents=True, exist_ok=True)
    write_atomic(place, _STORED.dump_json(dict(graph)))
    return graph
