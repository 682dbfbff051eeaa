"""Measures tests that could not be imported over stubs of the new names, where each must fail.

That is measured after GREEN, when the file can be imported (matrix 5, granularity `file`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.evidence.compare import judge_stubs
from pipeline.evidence.red_classes import Symbol
from pipeline.git import GITLINK, Entry, TreeChange
from pipeline.languages.protocol import Selection
from pipeline.measure.composed_trees import compose, shares_file
from pipeline.measure.measuring import changed_paths, measure

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pipeline.evidence.observation import Layout
    from pipeline.measure.measuring import MeasurementContext
    from pipeline.reports.tasks import Task


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
