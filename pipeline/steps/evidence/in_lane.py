"""What was measured of a task in its lane, and what of it holds over the head that it is put over.

Its tests are shown RED over that head, and all tests GREEN over both: these depend on everything. How its tests pass
again, what they enter and which faults they notice depends on what they stand on: where nothing of that was changed
meanwhile, it is as it was measured, and is not measured again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.judge.evidence import freeze
from pipeline.judge.evidence.impact import Graph, distances
from pipeline.judge.policy.paths import lies_among_tests
from pipeline.steps.evidence.impact import graph_of
from pipeline.steps.evidence.red import composed_red, tests_start
from pipeline.steps.evidence_records import baseline_of
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.measuring import changed_paths
from pipeline.testing.measure.revert import Red, Wanted, measure_over, not_red

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pipeline.judge.evidence.observation import Reach
    from pipeline.judge.evidence.red_tests import RedTests
    from pipeline.judge.reports.tasks import Task
    from pipeline.matrix.routing.state import TaskState
    from pipeline.steps.context import Context
    from pipeline.testing.measure.task_evidence import GreenEvidence, ProbeEvidence, TaskEvidence


@dataclass(frozen=True)
class InLane:
    """What holds over the head as it was measured in the lane.

    Args:
        green: GREEN there.
        probes: What was tried there; it names the tree.
        old_tests: Whether the old tests in the files that the task changed are as little concerned as its own, so that
            they say as they were what they said there.
    """

    green: GreenEvidence
    probes: ProbeEvidence
    old_tests: bool


async def red_over_head(ctx: Context, task: Task, was: TaskState, evidence: TaskEvidence) -> TaskEvidence | None:
    """Return the evidence of RED over the head by one run, in which each test shows what it showed in the lane.

    None where one does not, or where RED was measured over something else than the code before: that is looked at as if
    the tests were new.

    Args:
        ctx: The run, in which the task is put over the head.
        task: The task.
        was: The task as it was in its lane.
        evidence: What was measured there.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    ledger, start, tree = evidence.ledger, tests_start(ctx), ctx.state.task.red
    before = was.stubs or was.start
    if ledger is None or not ledger.red or ledger.renames or evidence.noticing is not None or tree is None:
        return None
    if evidence.production != before or was.spec.red_base == "start":
        return None
    over = composed_red(ctx, tree, start)
    ids = {*ledger.red, *ledger.guards}
    known = kept_runs.whole_run(ctx.checkout.root, was.candidate) if was.candidate else None
    files = Selection(files=frozenset(over.paths))
    records = known.records if known is not None else None
    red = await measure_over(ctx, over.tree, start, ids, Wanted.of(ledger, [task]), records, chosen=files)
    if any(not_red(ledger, red)):
        return None
    return evidence.model_copy(
        update={
            "tests_tree": tree,
            "production": start,
            "red_tree": over.tree,
            "test_paths": over.paths,
            "command": red.observation.command,
            "ledger": _over(ledger, tree, red),
            "green": None,
            "probes": None,
        }
    )


def _over(ledger: RedTests, tree: str, red: Red) -> RedTests:
    """Return the ledger with the tests in another tree; the values of a case that two runs saw otherwise stay out."""
    entries = {entry: one.model_copy(update={"tree": tree}) for entry, one in ledger.red.items()}
    frozen = freeze.freeze(red.observation, [*ledger.red, *ledger.guards])
    steady = {entry: case for entry, case in frozen.cases.items() if entry in ledger.frozen.cases}
    frozen = frozen.model_copy(update={"cases": steady})
    return ledger.model_copy(update={"tree": tree, "red": entries, "frozen": frozen})


def still_holds(ctx: Context, was: TaskState, evidence: TaskEvidence, reached: Mapping[str, Reach]) -> InLane | None:
    """Return what holds as it was measured in the lane; None where the head changed something that its tests stand on.

    Args:
        ctx: The run, in which the task is put over the head.
        was: The task as it was in its lane.
        evidence: What was measured there.
        reached: What tests entered that were traced until then.
    """
    green, probes = evidence.green, evidence.probes
    if green is None or probes is None or probes.reach is None or green.tree != was.candidate:
        return None
    candidate, head = ctx.state.task.candidate, ctx.state.task.start
    own, work = {*green.passed, *green.new_ids}, changed_paths(ctx, was.start, was.candidate)
    if candidate is None or not own:
        return None
    meanwhile = changed_paths(ctx, was.start, head)
    if any(_serves_tests(ctx, path) for path in meanwhile):
        return None
    graph = graph_of(ctx.repository, candidate)
    ground = _Ground(graph, frozenset(meanwhile), ctx.toolchain.sources)
    now = kept_runs.reach(ctx.checkout.root)
    if not (ground.is_clear(own, work, reached) and ground.is_clear(own, work, now)):
        return None
    layout = baseline_of(ctx).layout
    only_tests = all(layout.is_test(path) for path in work if _serves_tests(ctx, path) or layout.is_test_side(path))
    return InLane(
        green,
        probes.model_copy(update={"measured": probes.measured or green.tree}),
        old_tests=only_tests and ground.is_far_from(filter(layout.is_test, work)),
    )


def _serves_tests(ctx: Context, path: str) -> bool:
    """Return whether a file may change how tests of other files run: a helper, their data, what controls them."""
    layout = baseline_of(ctx).layout
    serves = layout.is_test_side(path) or lies_among_tests(path)
    return (serves and not layout.is_test(path)) or ctx.toolchain.is_control_path(path)


@dataclass(frozen=True)
class _Ground:
    """What the head changed, `meanwhile`, and what the files of the project mention."""

    graph: Graph
    meanwhile: frozenset[str]
    sources: tuple[str, ...]

    def is_clear(self, tests: Collection[str], files: Collection[str], reached: Mapping[str, Reach]) -> bool:
        """Return whether tests and files stand on nothing that was changed; False where that is not known.

        Tests stand on what they entered, opened or name, and on what these files mention themselves. What else a
        package loads beside that is not asked: it is there for everybody.
        """
        ground = set(files)
        for entry in tests:
            reach = reached.get(entry)
            if reach is None or "process" in reach.doors:
                return False
            ground |= {name.partition("::")[0] for name in reach.functions}
            ground |= {entry.partition("::")[0], *reach.references, *reach.doors}
        known = {path for path in ground if path.endswith(self.sources)}
        if not known <= self.graph.keys():
            return False
        return self.meanwhile.isdisjoint(ground.union(*(self.graph[path] for path in known)))

    def is_far_from(self, paths: Iterable[str]) -> bool:
        """Return whether files load nothing that was changed, by any way; False where that is not known."""
        asked = set(paths) - self.meanwhile
        return asked.union(self.meanwhile) <= self.graph.keys() and asked.isdisjoint(
            distances(self.graph, self.meanwhile)
        )
