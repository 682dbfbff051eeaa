"""How is RED measured: tests over code that does not have the behaviour yet?

Tests whose file could not be imported are measured over stubs after GREEN, when it can (matrix 5, granularity `file`).
An old test file that imports a new name is measured over a stand-in of it. Rust tests in a file that no `mod` line
leads to count as not importable. What varied in any run of the same bytes is not RED. A task may take up
failing old tests.
"""

from __future__ import annotations

from keyword import iskeyword
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.compare import judge_stubs, passes
from pipeline.judge.evidence.named_tests import asked_for, claimed_tests
from pipeline.judge.evidence.observation import CollectionError, Fault, Layout, Missing, Observation, Raised, RunState
from pipeline.judge.evidence.red import RedFacts, failing_since
from pipeline.judge.evidence.red_classes import MISSING_FILE, Symbol
from pipeline.judge.evidence.written_ids import meant
from pipeline.judge.reports.tasks import MAKING, Task
from pipeline.repo import GITLINK, Entry, TreeChange
from pipeline.testing.languages.names import is_module
from pipeline.testing.languages.protocol import Selection
from pipeline.testing.measure import kept_runs
from pipeline.testing.measure.composed_trees import HasRepository, compose, shares_file
from pipeline.testing.measure.measuring import MeasurementContext, changed_paths, measure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from pipeline.judge.reports.work_reports import ReadyTests


async def tried_over_stubs(
    ctx: MeasurementContext, task: Task, tree: str, production: str, ids: Collection[str], layout: Layout
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids that pass on stubs, and those that fail on them.

    Args:
        ctx: The run, or what measures without one.
        task: The task; what it names as its symbols is stubbed.
        tree: The candidate.
        production: The tree that RED was measured over. In a file of which the task names no symbol, what is not
            there yet counts as new.
        ids: The tests in question.
        layout: Which files are tests.

    Raises:
        UnmeasurableError: the environment broke meanwhile.
    """
    bare = with_stubs(ctx, [task], tree, production, layout)
    if bare is None:
        return tuple(sorted(ids)), ()
    seen = await measure(
        ctx, bare, Selection(ids=frozenset(ids)), what="the new tests over stubs of the new code, must fail"
    )
    structural = judge_stubs(ids, seen)
    return structural, tuple(sorted(set(ids) - set(structural)))


def with_stubs(
    ctx: MeasurementContext, tasks: Sequence[Task], tree: str, production: str, layout: Layout
) -> str | None:
    """Return a tree with stubs in place of the tasks' new code, None if there is nothing to stub.

    Args:
        ctx: The run, or what measures without one.
        tasks: What they name as their symbols is stubbed.
        tree: The tree that has it all.
        production: The tree that has nothing of it. In a file of which no task names a symbol, what is not there yet
            counts as new.
        layout: Which files are tests.
    """
    tests = {change.path for task in tasks for change in task.test_files if not shares_file(change.path, layout)}
    paths = [p for p in changed_paths(ctx, production, tree) if not layout.is_test_side(p) and p not in tests]
    before, after = texts(ctx, production, paths), texts(ctx, tree, paths)
    named = [Symbol(path=s.path or "", name=s.name, new=s.new) for task in tasks for s in task.symbols]
    silent = {path: text for path, text in after.items() if not {"", path} & {symbol.path for symbol in named}}
    stubs = ctx.toolchain.stub_symbols(after, [*named, *ctx.toolchain.introduced(before, silent)])
    if not stubs.files:
        return None
    modes = {entry.path: entry.mode for entry in ctx.repository.entries(tree, *stubs.files)}
    changes = [
        TreeChange(path, Entry(path, modes[path], ctx.repository.write_blob(text.encode())))
        for path, text in stubs.files.items()
    ]
    return ctx.repository.build_tree(tree, changes)


def with_own_signatures(
    ctx: MeasurementContext, start: str, tree: str, tests: Sequence[str], layout: Layout, *, kept: bool
) -> str | None:
    """Return the code before with the signatures of a tree that has tests and code in one; None where nothing is new.

    Its functions have the bodies that they had, or the stub where they are new. Nothing but sources is taken.

    Args:
        ctx: The run, or what measures without one.
        start: The code before.
        tree: Tests and code.
        tests: The files that it changes for its tests' sake.
        layout: Which files are tests.
        kept: Else what was there and changed gets the stub, too (`with_old_bodies`).
    """
    changed = [path for path in changed_paths(ctx, start, tree) if not layout.is_test_side(path)]
    sources = [path for path in changed if path.endswith(ctx.toolchain.sources)]
    found = ctx.toolchain.with_old_bodies(texts(ctx, start, sources), texts(ctx, tree, sources), kept=kept)
    if not found.files:
        return None
    there, now = ({one.path: one for one in ctx.repository.entries(each, *changed)} for each in (start, tree))
    changes = [
        TreeChange(path, Entry(path, now[path].mode, ctx.repository.write_blob(found.files[path].encode())))
        if path in found.files
        else TreeChange(path, there.get(path))
        for path in changed
    ]
    return compose(ctx, start, ctx.repository.build_tree(tree, changes), tests, layout).tree


def texts(ctx: MeasurementContext, tree: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the content of those of *paths* that *tree* has as files."""
    entries = [e for e in ctx.repository.entries(tree, *paths) if e.mode != GITLINK] if paths else []
    blobs = ctx.repository.blobs(entry.oid for entry in entries)
    return {entry.path: blobs[entry.oid].decode("utf-8", "replace") for entry in entries}


_PYTHON: Final = ".py"
_FUNCTION: Final = """

if "{name}" not in globals():

    def {name}(*_args, **_kwargs):
        raise NotImplementedError
"""
_CLASS: Final = """

if "{name}" not in globals():

    class {name}(Exception):
        def __init__(self, *_args, **_kwargs):
            raise NotImplementedError
"""


def with_stand_ins(
    ctx: MeasurementContext, tasks: Sequence[Task], production: str, errors: Iterable[CollectionError]
) -> str | None:
    """Return production with a stand-in for each new name that it lacks; None if none is lacking.

    What is there is never replaced. A class is an exception at the same time, so that a test may expect it.

    Args:
        ctx: The run, or what measures without one.
        tasks: The tasks that introduce the names.
        production: The tree.
        errors: Why files of tests cannot be imported over it: a name that a task's file lacks needs not be listed.
    """
    wanted = _names(tasks, errors)
    there = {entry.path: entry for entry in ctx.repository.entries(production, *wanted)} if wanted else {}
    known = texts(ctx, production, [*there])
    changes: list[TreeChange] = []
    for path, names in wanted.items():
        text = known.get(path, "") + "".join(_stand_in(name) for name in names)
        if path not in there or text != known.get(path):
            mode = there[path].mode if path in there else "100644"
            changes.append(TreeChange(path, Entry(path, mode, ctx.repository.write_blob(text.encode()))))
    return ctx.repository.build_tree(production, changes) if changes else None


def _names(tasks: Sequence[Task], errors: Iterable[CollectionError]) -> Mapping[str, list[str]]:
    """Return the new names by file: those that tasks list, and those that imports look for in a task's file."""
    files = [change for task in tasks for change in task.files if change.path.endswith(_PYTHON)]
    found: dict[str, list[str]] = {change.path: [] for change in files if change.action in MAKING}
    pairs = [(s.path or files[0].path, s.name) for task in tasks for s in task.symbols if s.new and (s.path or files)]
    missing = [error.fault.missing for error in errors if error.fault.missing is not None]
    pairs += [(change.path, one.name) for change in files for one in missing if is_module(change.path, one.owner)]
    for path, name in dict.fromkeys(pairs):
        top = name.partition(".")[0].strip()
        names = found.setdefault(path, []) if path.endswith(_PYTHON) else []
        if top.isidentifier() and not iskeyword(top) and top not in names:
            names.append(top)
    return found


def _stand_in(name: str) -> str:
    is_class = name[:1].isupper() and not name.isupper()
    return (_CLASS if is_class else _FUNCTION).format(name=name)


def with_undeclared(
    ctx: HasRepository, seen: Observation, composed: str, production: str, paths: Iterable[str]
) -> Observation:
    """Return the run with an error for each file with tests that production neither has nor declares.

    Args:
        ctx: What has the repository.
        seen: The run.
        composed: The tree that was measured.
        production: The tree that everything but the tests is of.
        paths: Files in question; what is no such file, as the id of a test, is passed over.
    """
    if seen.state is RunState.UNUSABLE:
        return seen
    shared = [path for path in paths if shares_file(path, seen.layout)]
    there = {entry.path for entry in ctx.repository.entries(composed, *shared)} if shared else set[str]()
    before = {entry.path for entry in ctx.repository.entries(production, *shared)} if shared else set[str]()
    known = {record.path for record in seen.records.values()} | seen.unread
    errors = [_error(path) for path in sorted(there - before - known)]
    return seen.model_copy(update={"collection_errors": (*seen.collection_errors, *errors)}) if errors else seen


def _error(path: str) -> CollectionError:
    said = "is in a file that the code does not have, and that no module declares"
    raised = Raised(kind=MISSING_FILE, bases=("ImportError",), message=said)
    return CollectionError(path=path, fault=Fault(chain=(raised,), missing=Missing(name=path)))


def with_varied(root: Path, tree: str, verdict: RedFacts, seen: Observation) -> RedFacts:
    """Return the facts in which tests that varied in any measurement of the tree are unstable; that is kept.

    A test that passes now and was seen failing over the same bytes is one of them, whatever it failed with.

    Args:
        root: The run's own folder.
        tree: The tests, composed with the production that they were measured over.
        verdict: What this measurement alone shows.
        seen: The new tests as they ended in it.

    Raises:
        UserError: the disk does not take it.
    """
    failed = kept_runs.seen_failing(root, tree)
    before = kept_runs.seen_varying(root, tree) | {entry for entry in failed if passes(seen, entry)}
    before = (before - {*verdict.unstable}) & {*verdict.new_ids}
    kept_runs.keep_varying(root, tree, {*verdict.unstable, *before})
    if not before:
        return verdict
    return verdict.model_copy(
        update={
            "unstable": tuple(sorted({*verdict.unstable, *before})),
            "varied_before": tuple(sorted(before)),
            "all_new_pass": False,
            "illegal": tuple(refusal for refusal in verdict.illegal if refusal.id not in {*before, ""}),
        }
    )


def spelled_out(report: ReadyTests, seen: Observation) -> ReadyTests:
    """Return the report with its ids as the suite has them, where they are an end of one alone.

    That is how runners print a test, and people name it; what two functions end in stays as it is.
    """

    def whole(name: str) -> str:
        found = meant(name, seen.records)
        return found[0] if len(found) == 1 else name

    tests = tuple(named.model_copy(update={"id": whole(named.id)}) for named in report.tests)
    criteria = tuple(shown.model_copy(update={"tests": tuple(map(whole, shown.tests))}) for shown in report.criteria)
    return report.model_copy(update={"tests": tests, "criteria": criteria})


def named_by(task: Task, seen: Observation) -> frozenset[str]:
    """Return the failing tests that the task names in its title, its criteria or its tests to change."""
    return asked_for((task.title, *task.acceptance_criteria), [test.id for test in task.tests_to_change], seen)


def claimed_by(task: Task, report: ReadyTests, changed: Collection[str], seen: Observation) -> frozenset[str]:
    """Return the failing tests, and uncollectable files, that @test claims as the task's own."""
    named = [test.id for test in report.tests if test.expected == "RED"]
    return claimed_tests(named, changed, [file.path for file in task.test_files], seen)


def newly_failing(report: ReadyTests, before: Observation, after: Observation) -> frozenset[str]:
    """Return the tests that @test reports as RED and that passed before and fail now.

    That is a row in a table beside the test, or a file of cases: the source of the test is what it was.
    """
    named = {test.id for test in report.tests if test.expected == "RED"}
    since = failing_since(before, after)
    return frozenset(entry for entry in since if not {entry, after.records[entry].function}.isdisjoint(named))


def is_borrowed(task: Task, entries: Collection[str], seen: Observation) -> bool:
    """Return whether one of these tests is neither named by the task nor in a file of its own tests."""
    own = {file.path for file in task.test_files}
    known = named_by(task, seen)
    paths = {entry: seen.records[entry].path if entry in seen.records else entry for entry in entries}
    return any(entry not in known and path not in own for entry, path in paths.items())
