"""Holds what old tests stand on as it was, and measures them in their old form over the new code.

The gate lets @make change what its task names, and nothing that is a test. Two things only bytes can show: a Rust file
is one for tests and code, so that leave for the code is leave for the file; and a file that the task does name may
control how tests run. A third shows while tests run: what they stand on and what is written meanwhile (ADR-R100).

Nothing of the text of tests is read. Whatever was done to them or around them (an assertion that asks less, a fixture
or a table that is another one, a new `conftest.py` that replaces the code), the old ones say of the new code what they
said of the old. One that only checks less, over code that is right, says nothing: no lie about this change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from pipeline.judge.evidence.compare import passed
from pipeline.judge.evidence.observation import Layout, Observation, RunState, TestRecord
from pipeline.judge.evidence.red import may_change
from pipeline.judge.policy.control_files import is_control
from pipeline.judge.policy.paths import lies_among_tests
from pipeline.judge.reports.untrusted_text import one_line
from pipeline.testing.languages.readers import regions_of
from pipeline.testing.languages.sources import Unspliced
from pipeline.testing.languages.table import LANGUAGES, has_part, language_of
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.composed_trees import HasRepository, both, compose, shares_file, with_other_regions
from pipeline.testing.measure.measuring import MeasurementContext, UnmeasurableError, changed_paths, measure
from pipeline.testing.measure.outcome_words import seen as outcome
from pipeline.testing.measure.regression import confirm

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pipeline.judge.reports.tasks import Task
    from pipeline.testing.languages.protocol import Selection
    from pipeline.testing.languages.toolchain import Toolchain


def renamed(ctx: HasRepository, task: Task, before: str, after: str) -> dict[str, str]:
    """Return the new path, by the old one, of each test file renamed as the task says.

    Args:
        ctx: What has the repository.
        task: The task.
        before: The tree that @test began with.
        after: The tree that it made.
    """
    wanted = {change.origin: change.path for change in task.test_files if change.origin is not None}
    if not wanted:
        return {}
    old, new = ({entry.path for entry in ctx.repository.entries(tree)} for tree in (before, after))
    return {a: b for a, b in wanted.items() if a in old - new and b in new - old}


_SNAPSHOTS: Final = (".snap", ".ambr")

Regions = dict[tuple[str, str], bytes]
"""The bytes of test regions by file and name."""


class HasToolchain(HasRepository, Protocol):
    """An object with a repository and a toolchain, such as every `MeasurementContext`."""

    @property
    def toolchain(self) -> Toolchain: ...  # noqa: D102


@dataclass(frozen=True)
class PinnedChanges:
    """The changes since RED in what tests depend on, in words, path first.

    Args:
        regions: Test regions of production files that were changed, added or taken away. Moving one whole is no change.
        support: Files that serve or control tests, changed although the task does not name them.
        controls: The same where the task names them: allowed, and for @check to read; and data that was written while
            tests ran.
        unsure: Production files of which it is not certain where their test regions are: for @check, too.
    """

    regions: tuple[str, ...] = ()
    support: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether nothing changed that may not change without permission."""
        return not (self.regions or self.support)


def pinned_changes(ctx: HasToolchain, layout: Layout, named: Collection[str], red: str, tree: str) -> PinnedChanges:
    """Return the changes between RED and a candidate in what tests depend on.

    Args:
        ctx: A run, or what measures without one.
        layout: Which files are tests.
        named: What the task lets its implementer change, where a file comes from by renaming included.
        red: The tree that RED was measured on.
        tree: The candidate.
    """
    changes = [change.path for change in ctx.repository.diff(red, tree)] if red != tree else []
    shared = [path for path in changes if shares_file(path, layout)]
    regions, unsure = _regions(both(ctx, red, tree, shared))
    support: list[str] = []
    allowed: list[str] = []
    for path in changes:
        what = _serves(ctx, layout, path)
        if what is not None and path not in shared and path in named:
            allowed.append(f"{path} {what}")
        elif what is not None and path not in shared:
            support.append(f"{path} {what}")
    return PinnedChanges(tuple(regions), tuple(support), tuple(allowed), tuple(unsure))


def written_files(ctx: HasToolchain, before: Observation, after: Observation, tree: str) -> PinnedChanges:
    """Return the files of *tree* that were written while its tests ran, without those that the run before wrote too.

    What is written of what tests stand on is `support`: what is tested has no business there. Of `controls` are other
    files of the tree; tests may compare with them, or be about what writes them.

    Args:
        ctx: A run, or what measures without one.
        before: The run of the tests as they were.
        after: The run that is judged.
        tree: Its tree.
    """
    locks = {language.lock for language in LANGUAGES.values()}
    written = sorted(path for path in {*after.touched} - {*before.touched} if path.rpartition("/")[2] not in locks)
    new = {*after.modules.values()} - {*before.modules.values(), *written}
    loaded = sorted(path for path in new if _lies_in_tests(after.layout, path))
    there = {entry.path for entry in ctx.repository.entries(tree)} if written or loaded else frozenset[str]()
    sources = ctx.toolchain.sources
    served = {path for path in written if path.endswith(sources) or _serves(ctx, after.layout, path) is not None}
    support = {path for path in written if (path in served if path in there else _loads(ctx, after.layout, path))}
    said = [f"{path} was written while the tests ran" for path in written if path in support]
    said += [
        f"{path} was loaded while the tests ran, and is not among the measured files"
        for path in loaded
        if path not in there
    ]
    moved = sorted({*after.moved} - {*before.moved})
    said += [f"the folder {path} was renamed while the tests ran; rename a copy of it" for path in moved]
    data = (path for path in written if path in there and path not in support)
    written_data = tuple(f"{path} was written while the tests ran" for path in data)
    return PinnedChanges(support=tuple(said), controls=written_data)


def _loads(ctx: HasToolchain, layout: Layout, path: str) -> bool:
    """Return whether a runner loads a new file because of its name."""
    if path.endswith(_SNAPSHOTS):
        return False
    if path.endswith(ctx.toolchain.sources) and _lies_in_tests(layout, path):
        return True
    return is_control(path) or ctx.toolchain.is_control_path(path) or layout.is_test(path)


def _lies_in_tests(layout: Layout, path: str) -> bool:
    return layout.is_test_side(path) or lies_among_tests(path)


def _serves(ctx: HasToolchain, layout: Layout, path: str) -> str | None:
    """Return in words how a file serves the tests, None for production code."""
    if is_control(path) or ctx.toolchain.is_control_path(path):
        return "controls how tests are built or run"
    if _lies_in_tests(layout, path):
        return "serves tests"
    return None


def _regions(texts: Iterable[tuple[str, bytes | None, bytes | None]]) -> tuple[list[str], list[str]]:
    before: Regions = {}
    after: Regions = {}
    unsure: list[str] = []
    for path, old, new in texts:
        one, other = (regions_of(text) if text is not None else {} for text in (old, new))
        fault = next((found.why for found in (one, other) if isinstance(found, Unspliced)), None)
        if fault is not None:
            unsure.append(f"{path}: {fault}; whether its tests are as they were is not certain")
        elif not isinstance(one, Unspliced) and not isinstance(other, Unspliced):
            before |= {(path, name): text for name, text in one.items()}
            after |= {(path, name): text for name, text in other.items()}
    return list(_moved(before, after)), unsure


def _moved(before: Mapping[tuple[str, str], bytes], after: Mapping[tuple[str, str], bytes]) -> Iterator[str]:
    gone = {key: text for key, text in before.items() if key not in after}
    new = {key: text for key, text in after.items() if key not in before}
    for (path, name), text in before.items():
        if (path, name) in after and after[path, name] != text:
            yield f"{path}: the test module {name} was changed"
    for (path, name), text in gone.items():
        moved = next((key for key, other in new.items() if other == text), None)
        if moved is None:
            yield f"{path}: the test module {name} is gone"
        else:
            del new[moved]
    for path, name in new:
        yield f"{path}: the test module {name} is new; tests are written before RED"


_WHAT: Final = "the old tests as they were over the new code, must pass"
_ENDED: Final = frozenset({RunState.COMPLETE, RunState.CRASHED})


@dataclass(frozen=True)
class Sides:
    """What is compared: two trees, and which files of the second belong to the tests.

    Args:
        start: The tree of which the tests are.
        tree: The candidate, of which the production is.
        layout: Which files are tests.
        named: Files that serve tests though they do not look like it.
        made: Files that the implementer may change and no test writer: they are production, whatever their names.
        moved: The new path of each test file that the task renames, by its old one.
    """

    start: str
    tree: str
    layout: Layout
    named: Collection[str] = ()
    made: Collection[str] = ()
    moved: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class AsTheyWere:
    """What the tests of before show, as they were, of a candidate over which those of now pass.

    Args:
        hidden: Tests that fail 2 of 2 and may not, and files that cannot be collected any more, with how.
        planned: The same of what may change, from one run, with why it may.
        unstable: Tests that fail in some of these runs, and in none before.
        failed: How each of these failed.
        trouble: Why nothing is known.
        without_new: The candidate without its new test files, where these are all that differs; else empty. Nothing was
            measured then, and what runs old tests for another reason can run them there.
        seen: The run of them all, where there was one.
    """

    hidden: Mapping[str, str] = field(default_factory=dict[str, str])
    planned: Mapping[str, str] = field(default_factory=dict[str, str])
    unstable: tuple[str, ...] = ()
    failed: Mapping[str, TestRecord] = field(default_factory=dict[str, TestRecord])
    trouble: str = ""
    without_new: str = ""
    seen: Observation | None = None

    def lines(self) -> tuple[str, ...]:
        """Return what a reviewer is told; nothing where nothing was found."""
        planned = (f"{entry} fails in its old form, as planned: {why}" for entry, why in self.planned.items())
        told = (f"what old tests show of the new code, as they were, is not known: {self.trouble}",)
        return (*planned, *(told if self.trouble else ()))


def leave_of(task: Task) -> dict[str, str]:
    """Return why each old test may fail in its old form, by id, function or file: what was planned, and no more.

    Who agrees to another text of a test has not seen the code that it will be held against.
    """
    return {test.id: one_line(test.reason) for test in task.tests_to_change if not test.is_text_only}


async def as_they_were(
    ctx: MeasurementContext,
    sides: Sides,
    kept: Mapping[str, TestRecord],
    leave: Mapping[str, str],
    *,
    run_start: str | None = None,
    enough: Callable[[Collection[str]], Selection | None] = lambda _: None,
) -> AsTheyWere:
    """Return which old tests fail as they were over a candidate. Nothing is run where nothing could differ.

    Args:
        ctx: Where to measure.
        sides: The trees, and what of them are tests.
        kept: What must be kept: how the tests ended before.
        leave: Why a test may change, by id, function or file.
        run_start: The tree that the run began with, if that is another one than `sides.start`.
        enough: Returns which tests are to be run where these files of tests are all that differs; None: all.

    Raises:
        UnmeasurableError: the environment broke while suspects were measured again.
    """
    paths = tuple(path for path in _test_side(ctx, sides) if sides.layout.is_test(path) or path not in leave)
    while _may_differ(ctx, sides, paths):
        composed = compose(ctx, sides.start, sides.tree, paths, sides.layout)
        if composed.whole:
            return AsTheyWere(trouble=composed.whole[0])
        alone = composed.tree
        chosen = enough(paths) if all(map(sides.layout.is_test, paths)) else None
        try:
            seen = await measure(ctx, alone, chosen, what=_WHAT)
        except UnmeasurableError as error:
            return AsTheyWere(trouble=str(error))
        if seen.state not in _ENDED:
            return AsTheyWere(trouble=seen.cut_short[0])
        excused = _may_be_unreadable(seen, kept, leave, sides.moved).intersection(paths)
        excused |= {new for old, new in sides.moved.items() if old in excused}
        if not excused:
            break
        # with these as they are now, and what serves them, the others can be asked
        paths = tuple(path for path in paths if path not in excused and sides.layout.is_test(path))
    else:
        composed = compose(ctx, sides.start, sides.tree, paths, sides.layout)
        return AsTheyWere(without_new=composed.tree if paths and not composed.whole else "")
    suspects = dict(_suspects(ctx, alone, seen, kept, chosen))
    named = ((entry, name) for entry, one in suspects.items() for name in (one.path, one.function, one.id))
    planned = {entry: leave[name] for entry, name in named if name in leave}
    others = sorted(suspects.keys() - planned)
    sure = await confirm(ctx, others, alone, sides.start, seen, start=run_start, within=chosen)
    return AsTheyWere(
        hidden=dict(_told(sure.regressions, suspects, seen)),
        planned=planned,
        unstable=sure.unstable,
        failed=sure.failed,
        seen=seen,
    )


def _test_side(ctx: MeasurementContext, sides: Sides) -> tuple[str, ...]:
    """Return the paths that differ and belong to the tests; of a file that holds both, only if its tests differ."""
    changed = changed_paths(ctx, sides.start, sides.tree)
    layout, named = sides.layout, sides.named
    own = (
        path
        for path in changed
        if path not in sides.made
        and not shares_file(path, layout)
        and (path in named or layout.is_test_side(path) or lies_among_tests(path))
    )
    return (*own, *with_other_regions(ctx, sides.start, sides.tree, changed, layout))


def _may_differ(ctx: MeasurementContext, sides: Sides, paths: Collection[str]) -> bool:
    """Return whether a file of the test side that was there is another, or a new one is loaded with others' tests."""
    there = {entry.path for entry in ctx.repository.entries(sides.start, *paths)} if paths else set[str]()
    # Rust builds a program for each of its files of tests
    others = (path for path in paths if not sides.layout.is_test(path) and not has_part(path, "test_regions"))
    return bool(there) or any(language_of(path) is not None for path in others)


def _may_be_unreadable(
    seen: Observation, kept: Mapping[str, TestRecord], leave: Mapping[str, str], moved: Mapping[str, str]
) -> frozenset[str]:
    """Return the files that cannot be collected as they were, and of which a test may change or that have moved."""
    allowed = frozenset(leave)
    listed = {_file(record) for record in kept.values() if may_change(record, allowed)} | allowed | moved.keys()
    return seen.unread.intersection(listed)


def _suspects(
    ctx: MeasurementContext, tree: str, seen: Observation, kept: Mapping[str, TestRecord], chosen: Selection | None
) -> Iterator[tuple[str, TestRecord]]:
    failed = kept_runs.seen_failing(ctx.checkout.root, tree)
    for entry, before in kept.items():
        now = seen.records.get(entry)
        ran = chosen is None or chosen.has(entry, _file(before))
        fails = _file(before) in seen.unread if now is None else ran and (not passed(now) or entry in failed)
        if fails and passed(before):
            yield entry, before


def _file(record: TestRecord) -> str:
    return record.path.partition("#")[0]


def _told(entries: Collection[str], suspects: Mapping[str, TestRecord], seen: Observation) -> Iterator[tuple[str, str]]:
    """Yield each test with how it failed; of those in a file that cannot be collected, the file with its error."""
    errors = {error.path: error.fault.raised for error in reversed(seen.collection_errors)}
    for entry in entries:
        record = seen.records.get(entry)
        if errors and (record is None or not record.ran):
            own = _file(suspects[entry])
            path = own if own in errors else next(iter(errors))
            kind = errors[path].kind.rpartition(".")[2]
            yield path, f"cannot be collected any more: {kind}: {one_line(errors[path].message)}"
        else:
            yield entry, outcome(record)
