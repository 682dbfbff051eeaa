"""Publishes for a step of a recipe: the changes of the writers that it depends on become one commit on the branch.

It was measured as it is published: whatever passes over the commit that it is put on passes over it, too. What other
steps wrote is no part of it: nobody said that it belongs there.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from pipeline.measure.measuring import UnmeasurableError, changed_paths
from pipeline.recipes.model import Kind
from pipeline.recipes.rules import going_along
from pipeline.recipes.step_table import Checkpoint, StepEvent, StepSignal
from pipeline.reports.markdown import bullets, sections
from pipeline.steps.publication.commits import Planned
from pipeline.steps.publication.holding import held_md, hold_over
from pipeline.steps.publication.manual_ways import onto_line
from pipeline.steps.publication.publisher import since
from pipeline.steps.publication.rebuilding import refusal_of_files
from pipeline.steps.publication.trees import put_on
from pipeline.steps.recipe_commit import Wanted, put_on_branch
from pipeline.steps.recipe_outcome import left_open
from pipeline.steps.recipe_project import has_tests, prepared
from pipeline.steps.recipe_trees import tree_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.runs.events import PublishIntended
    from pipeline.steps.publication.bases import Base
    from pipeline.steps.recipe_commit import Made
    from pipeline.steps.recipe_context import RecipeContext

_SHOWN: Final = 3
_MEASURED: Final = "suite.md"


async def run(ctx: RecipeContext) -> StepEvent:
    """Return PUBLISHED, also where nothing was changed; NOT_MET where a test breaks; or what is in the way."""
    try:
        done = await put_on_branch(ctx, partial(_made, ctx))
    except UnmeasurableError as error:
        return StepEvent(signal=StepSignal.ENV_BROKEN, note=str(error))
    return done if isinstance(done, StepEvent) else _told(ctx, done)


async def _made(ctx: RecipeContext, base: Base) -> Made:
    """Return the commit as it is on *base*; why it is none, where it does not go there or does not hold there.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    repository = ctx.repository
    before, after = _before(ctx), _after(ctx)
    if before == after:
        return None
    refused = refusal_of_files(ctx, base, planned(ctx))
    if refused is not None:
        merge = f"; the changes merge as text; to have that measured and published: {onto_line(ctx)}"
        return StepEvent(signal=StepSignal.BRANCH_MOVED, note=refused.why + (merge if refused.mergeable else ""))
    under = repository.tree_of(base.commit)
    put = put_on(repository, under, before, after)
    if put.conflicts:
        why = f"{ctx.run.info.branch} has other words where {ctx.lane_name} changes {', '.join(put.conflicts)}"
        return StepEvent(signal=StepSignal.BRANCH_MOVED, note=why)
    broken = await _broken(ctx, put.tree, under)
    if broken is not None:
        return broken
    left = bullets(
        f"{name}: {one.id} [{one.severity}] {one.headline}" for name in _of_this(ctx) for one in left_open(ctx, name)
    )
    return Wanted(put.tree, ctx.with_values(ctx.step.publish or ""), f"Left open by @check:\n\n{left}" if left else "")


async def _broken(ctx: RecipeContext, tree: str, under: str) -> StepEvent | None:
    """Return that the result breaks what passes over the tree that it is put on; None where it does not.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    if not has_tests(ctx):
        ctx.write(_name(ctx, _MEASURED), "Nothing is known to run tests here: nothing was measured.\n")
        return None
    await prepared(ctx)
    held = await hold_over(ctx, tree, under, datetime.fromisoformat(ctx.run.info.started_at).date())
    name = ctx.write(_name(ctx, _MEASURED), held_md(held))
    if not held.lost:
        return None
    more = f"; and {len(held.lost) - _SHOWN} more" if len(held.lost) > _SHOWN else ""
    note = f"not published: {'; '.join(held.lost[:_SHOWN])}{more}"
    return StepEvent(signal=StepSignal.NOT_MET, note=note, evidence=(name,))


def planned(ctx: RecipeContext) -> tuple[Planned, ...]:
    """Return what the step would put on the branch, as the tree that it leads from and to in the run."""
    return (Planned(_before(ctx), _after(ctx), "", ctx.lane_name),)


def _before(ctx: RecipeContext) -> str:
    """Return the files as the steps that published before have left them."""
    state, machine = ctx.run.state, ctx.run.machine
    published = [one for one in machine.order if machine.steps[one].kind is Kind.PUBLISH and one != ctx.step.id]
    return tree_with(ctx, _writers(ctx, (one for one in published if state.settled.get(one) is Checkpoint.READY)))


def _after(ctx: RecipeContext) -> str:
    """Return the same with what this step publishes."""
    state, machine = ctx.run.state, ctx.run.machine
    published = [one for one in machine.order if machine.steps[one].kind is Kind.PUBLISH]
    mine = (one for one in published if one == ctx.step.id or state.settled.get(one) is Checkpoint.READY)
    return tree_with(ctx, _writers(ctx, mine))


def _of_this(ctx: RecipeContext) -> list[str]:
    """Return the names of the steps that this one publishes."""
    machine, state = ctx.run.machine, ctx.run.state
    return [name for id_ in machine.ancestors(ctx.step.id) for name in machine.names(state, id_)]


def _writers(ctx: RecipeContext, publishing: Iterable[str]) -> list[str]:
    """Return the names of all steps that these depend on, and of what those were written over, in order."""
    machine = ctx.run.machine
    above = {id_ for one in publishing for id_ in machine.ancestors(one)}
    along = going_along(machine.steps, machine.plan, above)
    return [name for id_ in along for name in machine.names(ctx.run.state, id_)]


def _told(ctx: RecipeContext, done: PublishIntended | None) -> StepEvent:
    """Leave what is on the branch now, for people and for the steps behind; return PUBLISHED."""
    branch = ctx.run.info.branch
    if done is None:
        note, paths, commit = "nothing was changed, so nothing was published", (), None
    else:
        commit = done.commits[-1]
        paths = changed_paths(ctx, *(ctx.repository.tree_of(each) for each in (f"{commit}^", commit)))
        note = f"{commit[:12]} on {branch}: {ctx.repository.subject(commit)}"
        if done.base is not None and done.base != since(ctx):
            note += f"; on top of {done.base[:12]}, and measured there"
    name = ctx.lane_name
    ctx.write(_name(ctx, f"{name}.md"), f"{note}\n{sections(('Files', bullets(f'`{path}`' for path in paths)))}")
    payload = ctx.write_json(_name(ctx, f"{name}.json"), {"commit": commit, "branch": branch, "files": list(paths)})
    return StepEvent(signal=StepSignal.PUBLISHED, note=note, evidence=(payload,))


def _name(ctx: RecipeContext, name: str) -> str:
    return f"steps/{ctx.lane_name}/{name}"
