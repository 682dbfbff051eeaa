"""Which tests a task touches: for @make, for the order of its measurement, for the probes. The full set still decides.

What tests entered when they were traced comes first, then the imports of the tree, then names (`evidence.impact`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict

from pipeline.evidence.impact import Impact, impacted
from pipeline.evidence.import_graph import Graph, import_graph, is_read
from pipeline.evidence.observation import Observation, Reach, TestRecord
from pipeline.evidence.staging import first_stage, judge_part
from pipeline.runs.files import write_atomic
from pipeline.steps.evidence_files import read_evidence
from pipeline.steps.measuring import CACHE, changed_paths, measure
from pipeline.steps.regression import Suspects, confirm, kept_tests
from pipeline.steps.sanity import baseline_of
from pipeline.toolchains import durations
from pipeline.toolchains.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.evidence.compare import GreenVerdict
    from pipeline.evidence.ledger import RedLedger
    from pipeline.git import Repository
    from pipeline.reports.tasks import Task
    from pipeline.steps.context import Context

_LIMIT: Final = 32 << 20
"""Of more code than this, in bytes, the imports are not read: it would take longer than it saves."""


class _Stored(BaseModel):
    """A graph on disk; only our code writes there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    uses: dict[str, frozenset[str]]
    unread: frozenset[str]


def impacted_tests(ctx: Context, task: Task, tree: str) -> Impact:
    """Return the task's own tests, then those that its files touch, the nearest first.

    Args:
        ctx: The run.
        task: The task; its files are what changes.
        tree: What @make starts from, or has made.
    """
    own = _own(ctx, task)
    changed = {path for change in task.files for path in (change.path, change.origin) if path is not None}
    changed.update(changed_paths(ctx, ctx.state.task.red, tree))
    graph = graph_of(ctx.repository, tree, ctx.checkout.root / "graphs")
    found = impacted(changed, graph, _known(ctx))
    rest = frozenset(own)
    return Impact(
        (*own, *(entry for entry in found.touched if entry not in rest)),
        tuple(entry for entry in found.others if entry not in rest),
    )


def graph_of(repository: Repository, tree: str, kept: Path) -> Graph:
    """Return the imports of a tree's code; an empty graph, in which nothing is known, where there is too much of it.

    Args:
        repository: Where the tree is.
        tree: The tree.
        kept: The folder in which graphs are kept, by tree.
    """
    place = kept / f"{tree}.json"
    if place.exists():
        stored = _Stored.model_validate_json(place.read_bytes())
        return Graph(stored.uses, stored.unread)
    entries = [entry for entry in repository.entries(tree) if entry.mode.startswith("100") and is_read(entry.path)]
    texts = repository.blobs(entry.oid for entry in entries)
    graph = Graph()
    if sum(map(len, texts.values())) <= _LIMIT:
        graph = import_graph({entry.path: texts[entry.oid].decode("utf-8", "replace") for entry in entries})
    kept.mkdir(parents=True, exist_ok=True)
    write_atomic(place, _Stored(uses=dict(graph.uses), unread=graph.unread).model_dump_json())
    return graph


def note_reach(ctx: Context, task: str, traced: Observation) -> str:
    """Keep what the tests of a task entered when they were traced, for the tasks after it; return the artifact."""
    reach = {entry: record.reach for entry, record in traced.records.items() if record.reach is not None}
    return ctx.write_json(_reach_name(task), {entry: found.model_dump(mode="json") for entry, found in reach.items()})


@dataclass(frozen=True)
class Look:
    """A first stage that has already shown that a candidate is not GREEN: `verdict` or `suspects` say why."""

    observation: Observation
    verdict: GreenVerdict
    suspects: Suspects


async def first_look(
    ctx: Context, task: Task, tree: str, ledger: RedLedger | None, kept: Mapping[str, TestRecord]
) -> Look | None:
    """Return why a candidate is not GREEN, if the tests nearest to it show that already; None: all have to be run.

    Where the runs of all tests are short, or their length is unknown, there is no first stage.

    Args:
        ctx: The run.
        task: The task.
        tree: The candidate.
        ledger: The task's RED evidence; None for a task that is judged by regression only.
        kept: What must be kept, from `kept_tests`.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    seconds = durations.read(ctx.checkout.root / CACHE)
    if ledger is None or sum(seconds.values()) == 0:
        return None
    paths = {entry: record.path for entry, record in _known(ctx).records.items()}
    own = [*ledger.frozen.files, *ledger.provisional_files]
    near = [paths[entry] for entry in impacted_tests(ctx, task, tree).touched if entry in paths]
    files = first_stage(own, near, seconds)
    if not files:
        return None
    part = await measure(ctx, tree, Selection(files=files))
    may_change = frozenset(test.id for test in task.tests_to_change)
    verdict = judge_part(ledger, part, kept, tests_to_change=may_change)
    suspects = await confirm(ctx, verdict.regressions, tree, ctx.state.task.start or ctx.state.start, part)
    return Look(part, verdict, suspects) if not verdict.own_green or suspects.regressions else None


def _own(ctx: Context, task: Task) -> tuple[str, ...]:
    """Return the task's own tests: what is RED, first, then what holds already. A file stands for tests unknown yet."""
    evidence = read_evidence(ctx, task.id)
    ledger = evidence.ledger if evidence is not None else None
    return (*sorted(ledger.red), *sorted(ledger.guards)) if ledger is not None else ()


def _known(ctx: Context) -> Observation:
    """Return all tests that are known, with what those of the tasks before entered."""
    baseline = baseline_of(ctx)
    records = {**baseline.records, **kept_tests(ctx)}
    for done in ctx.state.done_tasks:
        if ctx.path(_reach_name(done.id)).exists():
            for entry, said in json.loads(ctx.read(_reach_name(done.id))).items():
                if entry in records:
                    records[entry] = records[entry].model_copy(update={"reach": Reach.model_validate(said)})
    return baseline.model_copy(update={"records": records})


def _reach_name(task: str) -> str:
    return f"evidence/reach-{task}.json"
