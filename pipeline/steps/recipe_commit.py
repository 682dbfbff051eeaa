"""Puts what a step of a recipe made on the user's branch, as one commit: all of it, or nothing.

The order is that of PUBLISH (`steps/publish.py`), so that a crash anywhere leaves all as it was, or is brought to its
end when the run goes on: the commit as an object, kept by a ref and named in the journal; then index and files; then
compare-and-swap of the branch; then `published`. Where the user has committed since, it is made anew there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from pipeline.config.commits import styled
from pipeline.git import SigningError
from pipeline.recipes.step_table import StepEvent, StepSignal
from pipeline.routing.vocabulary import Signal
from pipeline.runs.run_ref import drop_publication
from pipeline.steps.publication.bases import Blocked, choose
from pipeline.steps.publication.commits import assisted_by, message_of, signature
from pipeline.steps.publication.moving import intend, is_published, move
from pipeline.steps.publication.publisher import intended, note_published, under_way

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pipeline.runs.events import PublishIntended
    from pipeline.steps.publication.bases import Base
    from pipeline.steps.recipe_context import RecipeContext

_TRIES: Final = 3
"""How often the branch may be moved by others between our look at it and our move."""


@dataclass(frozen=True)
class Wanted:
    """A commit to be: its tree, its title, what else is said of it, and the ids of the issues that it files."""

    tree: str
    title: str
    body: str
    filed: tuple[str, ...] = ()


Made: TypeAlias = Wanted | StepEvent | None


async def put_on_branch(
    ctx: RecipeContext, make: Callable[[Base], Awaitable[Made]]
) -> PublishIntended | StepEvent | None:
    """Return what the branch holds now, None where there is nothing to publish.

    Where the branch cannot be moved it is the event that says why, and nothing of the user's has changed.

    Args:
        ctx: The step that publishes.
        make: Returns the commit as it is on a base, None where it would change nothing, or why there is none.
    """
    moved_on = ""
    for _ in range(_TRIES):
        tried, first = intended(ctx), not under_way(ctx)
        if not tried and ctx.stopping != "no":
            return _stopped(ctx)
        if not tried or not is_published(ctx, tried[-1].commits[-1]):
            base = choose(ctx)
            if isinstance(base, Blocked):
                return StepEvent(signal=StepSignal.BRANCH_MOVED, note=base.why)
            if not tried or (tried[-1].base or ctx.run.info.start_commit) != base.commit:
                made = await make(base)
                if not isinstance(made, Wanted):
                    return made
                refused = _intended(ctx, base, made)
                if refused is not None:
                    return refused
            refusal = move(ctx, intended(ctx)[-1].commits[-1], base, first=first)
            if refusal is not None and refusal.signal is Signal.TIP_MOVED:
                moved_on = refusal.note
                continue
            if refusal is not None:
                return StepEvent(signal=StepSignal(refusal.signal.value), note=refusal.note)
        said = note_published(ctx)
        drop_publication(ctx.repository, ctx.run)
        return said
    return StepEvent(signal=StepSignal.BRANCH_MOVED, note=f"{moved_on}, again and again")


def _intended(ctx: RecipeContext, base: Base, wanted: Wanted) -> StepEvent | None:
    """Make the commit, to be published next; return why it cannot be."""
    repository, start = ctx.repository, ctx.run.info.start_commit
    message = message_of(wanted.title, f"{wanted.body}\n\n{_by(ctx)}".strip(), _trailers(ctx))
    try:
        who, key = signature(ctx), repository.signing_key()
        ticket = ctx.run.info.issue or ctx.run.info.run_id
        message = styled(message, ctx.config.commits, ticket, f"{who.name} <{who.email}>")
        commit = repository.commit_tree(wanted.tree, (base.commit,), message, who, sign=key)
    except SigningError as error:
        return _stopped(ctx) if ctx.stopping != "no" else StepEvent(signal=StepSignal.SIGNING_FAILED, note=str(error))
    if ctx.stopping != "no":  # the last moment: what is intended is brought to its end
        return _stopped(ctx)
    intend(ctx, (commit,), wanted.filed, None if base.commit == start else base.commit)
    return None


def _by(ctx: RecipeContext) -> str:
    return f"Step {ctx.step.id} of the recipe {ctx.run.recipe.name}, {ctx.run.info.run_id}."


def _trailers(ctx: RecipeContext) -> list[tuple[str, str]]:
    """Return the trailers of a commit of the run: of its agents those whom the step depends on."""
    machine, state = ctx.run.machine, ctx.run.state
    above = {name for id_ in machine.ancestors(ctx.step.id) for name in machine.names(state, id_)}
    used = {record.backend for record in ctx.run.records.values() if record.lane in above}
    return [("Run-Id", ctx.run.info.run_id), *assisted_by(used)]


def _stopped(ctx: RecipeContext) -> StepEvent:
    return StepEvent(signal=StepSignal.CANCELLED, note=f"{ctx.lane_name} is published when the run goes on")
