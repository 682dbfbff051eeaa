"""Runs a recipe whose steps are its own: begins a run of it, or goes on with one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.measure.measuring import forget_cache
from pipeline.outcomes import Reason
from pipeline.recipes.step_table import At
from pipeline.runs.checkout import PrivateCheckout
from pipeline.runs.events import PublishOnto
from pipeline.runs.files import disk
from pipeline.runs.lease import FileLease
from pipeline.runs.recipe_run import RecipeRun
from pipeline.runs.roster import next_name
from pipeline.runs.run_ref import drop_publication, keep_recipe_run
from pipeline.runs.store import workflow_folder
from pipeline.service import in_the_way
from pipeline.service.interruption import Interruption
from pipeline.service.isolation import box_of, isolation
from pipeline.service.ports import place_of_run
from pipeline.service.recipe_again import reopening, require_unended
from pipeline.service.recipe_change import change_of
from pipeline.service.recipe_choice import pairs
from pipeline.service.recipe_driving import finish
from pipeline.service.recipe_gates import require_no_gate
from pipeline.service.recipe_ports import context_of, made
from pipeline.service.recipe_start import inputs_kept, roles_of, sound, start_of
from pipeline.service.run_config import read_config, refuse_recursion, require_programs, require_usable
from pipeline.service.run_flags import flags_of, kept_flags, usable
from pipeline.steps import recipe_publish
from pipeline.steps.publication.moving import take_back
from pipeline.steps.publication.publisher import Given

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.service.progress import Display
    from pipeline.service.run_config import RunOptions
    from pipeline.steps.publication.bases import Base
    from pipeline.steps.publication.commits import Planned
    from pipeline.steps.recipe_context import RecipeContext


async def start(repository: Repository, options: RunOptions, say: Display) -> RecipeContext:
    """Begin a run of a recipe, and drive it until it ends or is parked.

    Raises:
        UserError: it cannot begin; then nothing was written.
    """
    interruption = Interruption()
    with interruption.listening("no run was begun"):
        refuse_recursion(options.environ)
        tip = repository.resolve("HEAD")
        if tip is None:
            raise UserError("This repository has no commit yet. Commit the project first.", Reason.USAGE)
        recipe, values = sound(repository, options.recipe, options, lambda _: pairs(options.inputs))
        loaded = read_config(repository, tip, options.flags, options.environ)
        roles = roles_of(recipe.recipe)
        begin = start_of(
            repository,
            recipe.recipe,
            tip,
            options.base or loaded.config.base,
            partial(require_usable, repository, loaded, options.environ, roles),
            partial(require_programs, loaded.config, options.environ, roles),
        )
        change = change_of(repository, recipe.recipe, values, tip, options.base or loaded.config.base)
        box = await box_of(loaded.config, roles)
        await interruption.checkpoint()
        folder = workflow_folder(repository) / next_name(repository, recipe.recipe.name)
        with disk(folder):
            folder.mkdir(exist_ok=True)
        lease = FileLease.take(folder)
        try:
            run = made(repository, folder, options, recipe, values, loaded.config, begin, change, box)
            ctx = context_of(repository, run, loaded.config, box, options.environ, say)
            facts = ", ".join(f"{key} {value}" for key, value in isolation(ctx.config, box, roles).items())
            say(f"{run.info.run_id}: {recipe.recipe.name}, {facts}")
            if repository.status():
                say("    every step reads the commit you stand on, without your uncommitted changes")
            return await finish(ctx, say, interruption)
        finally:
            lease.release()


def resume(ctx: RecipeContext) -> None:
    """Go on with a run: what is ready stays, what is not is asked again.

    Raises:
        UserError: only a person's answer takes it further.
    """
    require_no_gate(ctx.run)
    if ctx.run.state.reason is Reason.ENVIRONMENT:
        forget_cache(ctx)
    ctx.go_on()


async def go_on(
    repository: Repository,
    folder: Path,
    options: RunOptions,
    say: Display,
    prepare: Callable[[RecipeContext], None] = resume,
    *,
    step: str | None = None,
    changed: str | None = None,
    onto: str | None = None,
) -> RecipeContext:
    """Go on with a run that *prepare* resumes, or whose gate it answers; return how it then stands.

    Args:
        repository: As seen from the worktree that keeps it.
        folder: Of the run.
        options: What the user asked for.
        say: Takes progress.
        prepare: Takes the run further, unless one of the following is given.
        step: The step that is done again, with all behind it, and nothing else; None: what is not ready.
        changed: The recipe that counts from here on, by name or path: what it says otherwise is done again.
        onto: The commit that its commits are put on; files that both changed are merged.

    Raises:
        UserError: it has ended, is driven by another process, or is damaged; there is no such step, recipe or commit.
    """
    interruption = Interruption()
    with interruption.listening(f"{folder.name} is as it was"):
        refuse_recursion(options.environ)
        lease = FileLease.take(folder)
        try:
            run = RecipeRun.load(folder, driving=True)
            # one that ended while its driver died before it had put everything away: that is done now
            left = run.state.has_ended and place_of_run(repository, run, options.environ).exists()
            if not left or any(said is not None for said in (step, changed, onto)):
                require_unended(run)
            other = None if changed is None else sound(repository, changed, options, partial(inputs_kept, run.inputs))
            again = reopening(run, step, other)
            flags = options.flags.over(flags_of(run))
            loaded = read_config(repository, run.info.start_commit, usable(flags), options.environ)
            roles = roles_of(run.recipe if other is None else other[0].recipe)
            require_usable(repository, loaded, options.environ, roles)
            require_programs(loaded.config, options.environ, roles)
            box = await box_of(loaded.config, roles)
            ctx = context_of(repository, run, loaded.config, box, options.environ, say)
            flags = kept_flags(options.flags, ctx.secrets)
            ctx.go_on = partial(run.resume, sandbox=isolation(loaded.config, box, roles), flags=flags, reopened=again)
            base = None if onto is None else _onto(ctx, onto)
            if not left:
                prepare(ctx) if again is None else ctx.go_on()
            if base is not None:
                ctx.note(PublishOnto(commit=base))
            return await finish(ctx, say, interruption)
        finally:
            lease.release()


def _onto(ctx: RecipeContext, revision: str) -> str:
    """Return the commit that a person wants what steps publish put on.

    Raises:
        UserError: no step is there to publish, there is no such commit, or files meet that cannot be merged.
    """
    waiting = [name for name, lane in ctx.run.state.lanes.items() if lane.at in {At.PUBLISH, At.FILE}]
    if not waiting:
        name = ctx.run.info.run_id
        raise UserError(
            f"No step of {name} waits to put a commit on {ctx.run.info.branch}, so that --onto can mean nothing here. "
            f"Nothing was changed. Look at it: redfirst show {name}",
            Reason.USAGE,
            actions=(f"redfirst show {name}", f"redfirst resume {name}"),
        )

    def work(_: Base) -> list[Planned]:
        publishing = [name for name in waiting if ctx.run.state.lanes[name].at is At.PUBLISH]
        return [one for name in publishing for one in recipe_publish.planned(ctx.seen_from(name))]

    return in_the_way.onto(ctx, revision, work)


def abandon(
    repository: Repository,
    folder: Path,
    environ: Mapping[str, str],
    prepare: Callable[[RecipeRun], None] = lambda _: None,
) -> RecipeRun:
    """Give a run up: it can never go on, what its steps left stays where it is.

    Raises:
        UserError: it is driven by another process, has ended, or is damaged.
    """
    lease = FileLease.take(folder)
    try:
        run = RecipeRun.load(folder, driving=True)
        if run.state.has_ended:
            raise UserError(f"{folder.name} has ended ({run.state.outcome}, {run.state.reason}).", Reason.USAGE)
        prepare(run)
        take_back(Given(run, repository))
        drop_publication(repository, run)
        run.abandon()
        keep_recipe_run(repository, run, whole=True)
        PrivateCheckout(repository, place_of_run(repository, run, environ)).close()
        return run
    finally:
        lease.release()
