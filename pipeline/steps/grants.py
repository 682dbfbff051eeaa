"""From a task file to what its dispatches may change (architecture 6, Policy)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.policy.scope import Action, Grant, TestScope
from pipeline.steps.sanity import baseline_of

if TYPE_CHECKING:
    from pipeline.reports.tasks import Task
    from pipeline.steps.context import Context


def production_grants(task: Task) -> tuple[Grant, ...]:
    """Return the task's production files as grants."""
    return tuple(Grant(change.path, change.action, change.origin) for change in task.files)


def suite_grants(task: Task) -> tuple[Grant, ...]:
    """Return the task's test files as grants; a file of a test that may change is one of them."""
    named = {file.path: Grant(file.path, Action(file.action)) for file in task.test_files}
    for test in task.tests_to_change:
        path = test.id.partition("::")[0]
        named.setdefault(path, Grant(path, Action.MODIFY))
    return tuple(named.values())


def test_scope(ctx: Context, task: Task) -> TestScope:
    """Return what counts as a test here: what the runner collected at the baseline, and this task's own files."""
    layout = baseline_of(ctx).layout
    return TestScope(
        files=suite_grants(task),
        folders=layout.testpaths,
        code=frozenset(change.path for change in task.files if not layout.is_test_side(change.path)),
        names=layout.python_files,
        known=layout.collected,
    )
