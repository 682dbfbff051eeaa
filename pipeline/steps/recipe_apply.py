"""Puts the patch of a step that worked in a scratch copy on what a step sees: all of it, or nothing.

By hashes: each file has to be as the scratch step saw it, or as it left it. Two changes of one file are not merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.measure.measuring import changed_paths
from pipeline.recipes.step_table import Checkpoint, StepEvent, StepSignal
from pipeline.reports.markdown import bullets, sections
from pipeline.reports.untrusted_text import one_line
from pipeline.steps.publication.trees import put_on
from pipeline.steps.recipe_trees import base_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.steps.recipe_context import RecipeContext


async def run(ctx: RecipeContext) -> StepEvent:
    """Return the tree with the patch, or the files that are in its way."""
    state, name, tree = ctx.run.state, ctx.lane_name, ctx.base
    in_the_way: dict[str, None] = {}
    for source in ctx.run.machine.names(state, ctx.step.apply_from or ""):
        if state.settled.get(source) is Checkpoint.READY and source in state.trees:
            put = put_on(ctx.repository, tree, base_of(ctx, source), state.trees[source])
            in_the_way |= dict.fromkeys((*put.conflicts, *put.merged))
            tree = put.tree
    if in_the_way:
        words = _md("Nothing was applied: these files are not as they were when it began.", "In the way", in_the_way)
        evidence = (ctx.write(f"steps/{name}/{name}.md", words),)
        note = f"not as they were: {', '.join(list(in_the_way)[:3])}"
        return StepEvent(signal=StepSignal.NOT_MET, note=note, evidence=evidence)
    words = _md(f"The patch of {ctx.step.apply_from} is applied.", "Changed", changed_paths(ctx, ctx.base, tree))
    patch = ctx.write(f"steps/{name}/{name}.patch", ctx.repository.patch(ctx.base, tree))
    evidence = (ctx.write(f"steps/{name}/{name}.md", words), patch)
    return StepEvent(signal=StepSignal.MET, tree=tree, evidence=evidence)


def _md(said: str, title: str, paths: Iterable[str]) -> str:
    return f"{said}\n{sections((title, bullets(f'`{one_line(path)}`' for path in paths) or 'Nothing.'))}"
