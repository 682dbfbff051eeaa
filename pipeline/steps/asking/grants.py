"""Turns a task file into what its dispatches may change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.judge.evidence.named_tests import path_of
from pipeline.judge.policy.rights import Action, Grant, TestScope, lies_in
from pipeline.steps.evidence_records import baseline_of
from pipeline.testing.languages.table import LANGUAGES
from pipeline.testing.measure.composed_trees import shares_file
from pipeline.testing.measure.project_tools import Tools, tools_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.judge.evidence.observation import Layout, Observation
    from pipeline.judge.reports.tasks import Task
    from pipeline.process import Mount
    from pipeline.steps.context import Context


def production_grants(task: Task) -> tuple[Grant, ...]:
    """Return the task's production files as grants."""
    return tuple(Grant(change.path, change.action, change.origin) for change in task.files)


def suite_grants(task: Task, seen: Observation, sources: Sequence[str]) -> tuple[Grant, ...]:
    """Return the task's test files as grants; a file of a test that may change is one of them.

    A production file with test regions is none: what may change in it is for the gate to see.

    Args:
        task: Whose files they are.
        seen: A run of the tests, for where each one stands.
        sources: The endings of the language's files.
    """
    named = {file.path: Grant(file.path, file.action, file.origin) for file in task.test_files}
    for test in task.tests_to_change:
        path = path_of(test.id, seen.records, sources)
        if path is not None:
            named.setdefault(path, Grant(path, Action.MODIFY))
    return tuple(grant for path, grant in named.items() if not shares_file(path, seen.layout))


def test_scope(ctx: Context, task: Task) -> TestScope:
    """Return what counts as a test here: what the runner collected at the baseline, and this task's own files."""
    tree = ctx.repository.entries(ctx.run.info.start_tree)
    return scope_of(baseline_of(ctx), task, [entry.path for entry in tree], ctx.toolchain.sources)


def scope_of(seen: Observation, task: Task, tree: Sequence[str], sources: Sequence[str]) -> TestScope:
    """Return what counts as a test.

    Args:
        seen: What the runner collected, and where it looks.
        task: Whose files they are.
        tree: Every path before any agent. Where a folder of tests holds code as well, not everything in it is a test.
        sources: The endings of the language's files.
    """
    own = (change.path for change in task.files if not seen.layout.is_test_side(change.path))
    scope = scope_without_task(seen, tree, sources)
    return replace(scope, files=suite_grants(task, seen, sources), code=scope.code.union(own))


def scope_without_task(seen: Observation, tree: Sequence[str], sources: Sequence[str]) -> TestScope:
    """Return what counts as a test where nobody's task names any; see `scope_of`."""
    layout = seen.layout
    found = (_code_in(layout, folder, tree, sources) for folder in layout.testpaths)
    return TestScope(
        folders=layout.testpaths,
        code=frozenset(path for path in found if path is not None),
        names=layout.python_files,
        known=layout.collected,
    )


def _code_in(layout: Layout, folder: str, tree: Sequence[str], sources: Sequence[str]) -> str | None:
    """Return a file of production code among the tests of *folder*, None where there is none."""
    packages = tuple(f"/{one.package_file}" for one in LANGUAGES.values() if one.package_file)
    modules = (path for path in tree if path.endswith(tuple(sources)) and not path.endswith(packages))
    return next((path for path in modules if lies_in(path, folder) and not layout.is_test_side(path)), None)


async def project_tools(ctx: Context) -> Callable[[Mount], Tools]:
    """Return what it takes to run the project's tests on a view of the current task.

    Raises:
        UnmeasurableError: the project has no test environment, or none for the files of the task.
    """
    task = ctx.task()
    return await tools_for(ctx, [change.path for change in (*task.files, *task.test_files)])
