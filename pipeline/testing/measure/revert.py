"""The revert check: the accepted tests over production without the behaviour must be RED again (matrix 5).

`verify` asks this of a commit, `tdd` of a worktree, and a run of each accepted candidate: the revert check.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence import classify, red_classes
from pipeline.judge.evidence.named_tests import path_of
from pipeline.judge.evidence.red_classes import PASSED, Classified, Context
from pipeline.judge.reports.tasks import Task, taken_away
from pipeline.testing.languages import names
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.measure.composed_trees import compose, with_other_regions
from pipeline.testing.measure.measuring import MeasurementContext, changed_paths, measure
from pipeline.testing.measure.red import with_undeclared
from pipeline.testing.measure.task_evidence import RevertEvidence, TaskEvidence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pipeline.judge.evidence.observation import Layout, Observation, TestRecord
    from pipeline.judge.evidence.red_tests import RedTests


_OVER_OLD: Final = "the new tests over the old code, must fail"


@dataclass(frozen=True)
class Red:
    """A run of the tests over `production`, with the facts to classify it.

    Args:
        production: The tree of which the production is.
        observation: The run.
        context: What the classification goes by.
        sources: The endings of the languages' files.
        known: The tests as another run had them: of one that could not be collected here it says where it stands.
    """

    production: str
    observation: Observation
    context: Context
    sources: tuple[str, ...]
    known: Mapping[str, TestRecord] = field(default_factory=dict[str, "TestRecord"])

    def of(self, entry: str) -> Classified | None:
        """Return the class of a test id or a test file; None if there is no such test."""
        record = self.observation.records.get(entry)
        if record is not None:
            return classify.classify(record, self.context)
        path = path_of(entry, self.known, self.sources)
        errors = (error for error in self.observation.collection_errors if error.path == path)
        return next((classify.classify_collection(error, self.context) for error in errors), None)

    def passes(self, entry: str) -> bool:
        """Return whether the test exists and passes."""
        found = self.of(entry)
        return found is not None and found.cls in PASSED


@dataclass(frozen=True)
class Wanted:
    """The behaviour to be added, as a task or a caller describes it; see `red_classes.Context`."""

    symbols: tuple[red_classes.Symbol, ...] = ()
    files: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    symptom: red_classes.Symptom | None = None
    expected: Mapping[str, red_classes.Expected] | None = None

    @classmethod
    def of(cls, ledger: RedTests, tasks: Sequence[Task]) -> Wanted:
        """Return the behaviour that a ledger's task describes, and what further *tasks* will add."""
        symptom = tasks[0].symptom
        return cls(
            symbols=tuple(
                red_classes.Symbol(path=s.path or "", name=s.name, new=s.new) for t in tasks for s in t.symbols
            ),
            files=frozenset(change.path for task in tasks for change in task.files),
            removed=taken_away(tasks),
            symptom=symptom.value if symptom is not None else None,
            expected=dict.fromkeys(ledger.guards, "GUARD"),
        )


async def measure_over(
    ctx: MeasurementContext,
    composed: str,
    production: str,
    ids: Collection[str],
    wanted: Wanted,
    known: Mapping[str, TestRecord] | None = None,
    chosen: Selection | None = None,
) -> Red:
    """Return the classified run of the tests in a composed tree.

    Args:
        ctx: Where to measure.
        composed: The tests of one tree over the production of another.
        production: The tree of which the production is.
        ids: Which tests to run.
        wanted: What counts as not there yet.
        known: The tests over the production that they belong to, where these were run: what cannot be collected over
            another one has no record to say in which file it stands.
        chosen: What to run instead of *ids* alone.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    chosen = chosen or Selection(ids=frozenset(ids))
    pass_before = all((wanted.expected or {}).get(entry) == "GUARD" for entry in ids)
    what = "tests that passed over the old code, over it again" if pass_before else _OVER_OLD
    seen = await measure(ctx, composed, chosen, trace=True, what=what)
    seen = with_undeclared(ctx, seen, composed, production, ids)
    context = red_classes.Context(
        symbols=wanted.symbols,
        existing=frozenset(entry.path for entry in ctx.repository.entries(production)),
        layout=seen.layout,
        names=names,
        task_files=wanted.files,
        removed=wanted.removed,
        symptom=wanted.symptom,
        expected=wanted.expected or {},
    )
    return Red(production, seen, context, ctx.toolchain.sources, known or {})


def not_red(ledger: RedTests, red: Red) -> Iterator[tuple[str, str]]:
    """Yield each id of the ledger whose result differs from the ledger, and why."""
    for entry, recorded in ledger.red.items():
        found = red.of(entry)
        if found is None:
            why = "can be imported" if recorded.granularity == "file" else "does not exist"
            yield entry, f"{why} over the code before, where it was {recorded.cls}"
        elif not found.legal or found.cls is not recorded.cls:
            yield entry, f"was {recorded.cls} over the code before, and now {found.message} ({found.cls})"
    for entry in ledger.guards:
        if not red.passes(entry):
            yield entry, "passed over the code before, and does not now"


async def revert_check(
    ctx: MeasurementContext,
    tasks: Sequence[Task],
    evidence: TaskEvidence,
    tree: str,
    new_ids: Collection[str],
    layout: Layout,
) -> RevertEvidence | None:
    """Return whether an accepted candidate's tests are still RED over the production that RED was measured on.

    That is RED of the tests as they are now, with all that serves them, not as they were when @test handed them in.
    Where these are the same bytes, RED is that measurement, and none is made again.

    Args:
        ctx: The run, or what measures without one.
        tasks: The task, and those whose symbols were missing then too (a fix of tests alone).
        evidence: The task's evidence; without a ledger there is nothing to check, and None is returned.
        tree: The candidate.
        new_ids: Ids that came with it, from parameters in production code: nobody saw them RED.
        layout: Which files are tests.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    ledger = evidence.ledger
    if ledger is None:
        return None
    production = evidence.production
    made = {change.path for change in tasks[0].files} - {change.path for change in tasks[0].test_files}
    changed = changed_paths(ctx, production, tree)
    files = [
        path for path in changed if path not in made and (layout.is_test_side(path) or path in evidence.test_paths)
    ]
    regions = with_other_regions(ctx, production, tree, changed, layout)
    composed = compose(ctx, tree, production, (*files, *regions), layout)
    if composed.whole:
        return RevertEvidence(production=production, unsure=composed.whole)
    if composed.tree == evidence.red_tree and not new_ids:
        return RevertEvidence(production=production, held=tuple(sorted(ledger.red)), measured=composed.tree)
    ids = {*ledger.red, *ledger.guards, *new_ids}
    known = (
        await measure(ctx, tree, what="the whole suite over the new code, must pass")
    ).records  # it is GREEN: that run is remembered
    red = await measure_over(ctx, composed.tree, production, ids, Wanted.of(ledger, tasks), known)
    problems = dict(not_red(ledger, red))
    return RevertEvidence(
        production=production,
        held=tuple(sorted(entry for entry in ledger.red if entry not in problems)),
        problems=problems,
        passing=tuple(sorted(entry for entry in new_ids if red.passes(entry))),
    )
