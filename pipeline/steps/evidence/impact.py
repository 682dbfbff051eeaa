"""Finds the tests that a task touches: for @make, for the order of measuring, for the probes of its tests.

The rule is `evidence.impact`. It never says that a test need not be run.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.compare import first_stage, is_long, passed
from pipeline.judge.evidence.impact import Graph, Subject, impacted
from pipeline.repo import Repository, TooLargeError
from pipeline.steps.evidence_records import baseline_of, kept_tests
from pipeline.testing.languages.runners import durations
from pipeline.testing.languages.sources.mentions import is_source, mention_graph
from pipeline.testing.languages.table import GO
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.measuring import CACHE, changed_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pipeline.judge.evidence.observation import Observation
    from pipeline.judge.evidence.red_tests import RedTests
    from pipeline.judge.reports.tasks import Task
    from pipeline.steps.context import Context

HANDED: Final = 40
"""So many test functions, the nearest, are for @make to run: a list that nobody reads helps nobody. Probes run all."""
_LIMIT: Final = 8 << 20
"""Of more code than this, in bytes, nothing is read: a megabyte takes about a tenth of a second."""
_CODE: Final = re.compile(r"`([^`\n]+)`|\b(\w+(?=\()|\w*[^\W_]_[^\W_]\w*|[^\W\d_]*[a-z][A-Z]\w*)")
_NAME: Final = re.compile(r"[^\W\d]\w{2,}")
_LONGEST: Final = 80
"""A longer span of code is an example, and no name."""


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
    graph = graph_of(ctx.repository, start)
    tests = {**baseline_of(ctx).records, **kept_tests(ctx)}
    paths = frozenset(record.path for record in tests.values())
    about = Subject(names_of(task), _texts(ctx.repository, start, paths.__contains__))
    return impacted(changed, graph, tests.values(), kept_runs.reach(ctx.checkout.root), about)


def names_of(task: Task) -> frozenset[str]:
    """Return the names of code that a task speaks of: its symbols, and what its text writes as code does."""
    said = [symbol.name for symbol in task.symbols]
    text = f"{task.title}\n{task.body}"
    said += [span for pair in _CODE.findall(text) for span in pair if span]
    return frozenset(word for span in said if len(span) <= _LONGEST for word in _NAME.findall(span))


def nearest_files(ctx: Context, task: Task, tree: str, ledger: RedTests) -> frozenset[str]:
    """Return the files of which the tests are worth a run of their own before all tests are run; empty: none.

    Args:
        ctx: The run.
        task: The task.
        tree: The candidate.
        ledger: The task's RED evidence.
    """
    seconds = durations.read(ctx.checkout.root / CACHE)
    if not is_long(seconds):
        return frozenset()
    tests = {**baseline_of(ctx).records, **kept_tests(ctx)}
    near = dict.fromkeys(tests[entry].path for entry in impacted_tests(ctx, task, tree))
    return first_stage((*ledger.frozen.files, *ledger.whole_files), near, seconds)


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


def stand_alone(ctx: Context, tree: str, tests: Collection[str]) -> bool:
    """Return whether no other file of a tree can need one of these files of tests: none mentions it.

    Where nothing is known the answer is no, as it is for Go, which compiles the tests of a folder together.
    """
    graph: Graph = {} if any(path.endswith(GO.sources) for path in tests) else graph_of(ctx.repository, tree)
    return bool(graph) and all(used.isdisjoint(tests) for path, used in graph.items() if path not in tests)


def graph_of(repository: Repository, tree: str) -> Graph:
    """Return what the code of a tree mentions; an empty graph, in which nothing is known, where there is too much."""
    return mention_graph(_texts(repository, tree, is_source))


def _texts(repository: Repository, tree: str, is_wanted: Callable[[str], bool]) -> dict[str, str]:
    """Return files of a tree by path; none where there is too much of them."""
    entries = [entry for entry in repository.entries(tree) if entry.mode.startswith("100") and is_wanted(entry.path)]
    with suppress(TooLargeError):
        texts = repository.blobs((entry.oid for entry in entries), _LIMIT)
        return {entry.path: texts[entry.oid].decode("utf-8", "replace") for entry in entries}
    return {}
