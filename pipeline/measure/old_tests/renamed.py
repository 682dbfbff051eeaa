"""Finds test files that @test renamed as the task permits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.measure.composed_trees import HasRepository
    from pipeline.reports.tasks import Task


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
