"""Knows the project's tests for a recipe's run: which there are, how they ran at the start, how they are run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.evidence.freeze import canonical
from pipeline.evidence.observation import Observation
from pipeline.languages.protocol import Selection
from pipeline.measure import setup
from pipeline.measure.measuring import measure
from pipeline.measure.project_tools import tools_for
from pipeline.policy.scope import TestScope
from pipeline.runs.worktree_include import include_ignored
from pipeline.steps.asking.grants import scope_without_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.dispatch.request import Tools
    from pipeline.process import Mount
    from pipeline.steps.recipe_context import RecipeContext

_COLLECTED: Final = "evidence/tests-at-start.json"


async def prepared(ctx: RecipeContext) -> None:
    """Make ready what measurements need besides a tree, once for each run.

    Raises:
        UnmeasurableError: the setup command failed.
    """
    async with ctx.looking:
        include_ignored(ctx.repository, ctx.checkout.root)
        await setup.run_once(ctx, ctx.write)


def has_tests(ctx: RecipeContext) -> bool:
    """Return whether anything is known to run tests here; else names alone say what one is."""
    return ctx.config.toolchains.use is not None or ctx.toolchain.detect(ctx.repository.worktree)


async def collected(ctx: RecipeContext) -> Observation:
    """Return which tests there are at the start, none of them run; found out before any role is asked.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    async with ctx.looking:
        if not ctx.path(_COLLECTED).is_file():
            start = ctx.run.info.start_tree
            what = "which tests there are before any change"
            found = await measure(ctx, start, Selection.nothing(), warm=True, what=what)
            ctx.write(_COLLECTED, canonical(found))
        return Observation.model_validate_json(ctx.run.read(_COLLECTED))


async def scope_of(ctx: RecipeContext) -> TestScope:
    """Return what counts as a test here, and is no writer's to change.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    if not has_tests(ctx):
        return TestScope()
    tree = [entry.path for entry in ctx.repository.entries(ctx.run.info.start_tree)]
    return scope_without_task(await collected(ctx), tree, ctx.toolchain.sources)


async def tools_of(ctx: RecipeContext) -> Callable[[Mount], Tools] | None:
    """Return what it takes to run the project's tests on a view; None where nothing is known to run any.

    Raises:
        UnmeasurableError: the project has no test environment.
    """
    return await tools_for(ctx, ()) if has_tests(ctx) else None
