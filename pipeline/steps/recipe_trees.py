"""Composes the files that a step of a recipe sees: those of the start, with what ready steps before it changed.

Which these are follows from the graph and from what is settled, never from time: whoever folds the journal comes to the
same trees. Steps whose areas meet never run side by side, so what they changed is put together path by path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.recipes.machine import before
from pipeline.recipes.step_table import Checkpoint
from pipeline.steps.publication.trees import above

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.git import TreeChange
    from pipeline.steps.recipe_context import RecipeContext


class CollisionError(Exception):
    """One step made a file where another one made a folder: there is no tree with both."""


def base_of(ctx: RecipeContext, name: str) -> str:
    """Return the tree that a step sees.

    Raises:
        CollisionError: there is none.
    """
    return tree_with(ctx, before(ctx.run.machine, ctx.run.state, name))


def tree_with(ctx: RecipeContext, names: Iterable[str]) -> str:
    """Return the start of the run with what these steps changed, as far as they are ready; in order.

    Raises:
        CollisionError: what they made does not go into one tree.
    """
    state, machine = ctx.run.state, ctx.run.machine
    ready = [name for name in names if name in state.trees and state.settled.get(name) is Checkpoint.READY]
    put = tuple((name, state.trees[name]) for name in ready if machine.writes(machine.step_of(name).id))
    if put not in ctx.put_together:
        changes: dict[str, TreeChange] = {}
        for name, _ in put:
            changes |= {change.path: change for change in changes_of(ctx, name)}
        _require_apart(changes)
        ctx.put_together[put] = ctx.repository.build_tree(ctx.run.info.seen_tree, changes.values())
    return ctx.put_together[put]


def changes_of(ctx: RecipeContext, name: str) -> tuple[TreeChange, ...]:
    """Return what a writer that is settled changed of what it saw.

    Raises:
        CollisionError: there is no tree that it saw.
    """
    return ctx.repository.diff(base_of(ctx, name), ctx.run.state.trees[name])


def _require_apart(changes: Mapping[str, TreeChange]) -> None:
    files = {path for path, change in changes.items() if change.entry is not None}
    for path in files:
        folder = next((folder for folder in above(path) if folder in files), None)
        if folder is not None:
            raise CollisionError(f"{folder} is a file of one step, and has {path} of another one in it")
