"""Finds test files that @test renamed as the task permits, and builds the earlier tree with the new names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.git import TreeChange

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def as_if_renamed(ctx: HasRepository, tree: str, renames: Mapping[str, str]) -> str:
    """Return a tree in which these files have their new names and old content, so that only real changes differ."""
    there = {entry.path: entry for entry in ctx.repository.entries(tree, *renames)} if renames else {}
    if not there:
        return tree
    gone = [TreeChange(path, None) for path in there]
    come = [TreeChange(renames[path], replace(entry, path=renames[path])) for path, entry in there.items()]
    return ctx.repository.build_tree(tree, [*gone, *come])
