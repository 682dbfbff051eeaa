"""The composition root of a driver: builds the ports, takes the lease, drives, answers."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pipeline import VERSION
from pipeline.boxes.orphans import end_lost
from pipeline.config.load import without_effect
from pipeline.dispatch.roles import prompts_hash
from pipeline.errors import UserError, check_all, with_others
from pipeline.git import GitError
from pipeline.measure.measuring import forget_cache
from pipeline.outcomes import Outcome, Reason
from pipeline.runs.files import disk, full_disk
from pipeline.runs.info import PREVIOUS_PATCH
from pipeline.runs.lease import FileLease
from pipeline.runs.next_actions import begun_again
from pipeline.runs.preconditions import examine
from pipeline.runs.roster import next_name
from pipeline.runs.run import Run
from pipeline.runs.run_ref import keep
from pipeline.runs.store import workflow_folder
from pipeline.service.conventions import refuse_misfit, unrun_hooks
from pipeline.service.interruption import Interruption
from pipeline.service.isolation import box_of
from pipeline.service.new_run import issue_limits, made
from pipeline.service.orchestrator import drive_issue
from pipeline.service.ports import build_context, place_of_run, require_runner
from pipeline.service.previous_work import previous_patch
from pipeline.service.progress import IssueStanding, shown
from pipeline.service.recipe_choice import issue_recipe, with_recipe
from pipeline.service.run_config import (
    RunOptions,
    changed_file,
    load_config,
    matrix_hash,
    read_config,
    refuse_recursion,
    require_programs,
    require_usable,
)
from pipeline.service.run_flags import change_of, flags_of, kept_flags, require_hidden, require_own, usable
from pipeline.steps.asking.stopping import stopped
from pipeline.steps.table import STEPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.config.layers import Flags
    from pipeline.config.load import Loaded
    from pipeline.git import Repository
    from pipeline.service.progress import Display
    from pipeline.steps.context import Context


async def start(repository: Repository, options: RunOptions, say: Display) -> Context:
    """Start a run and drive it until it ends or is parked; return its context.

    Raises:
        UserError: a precondition does not hold, or a signal came before; then nothing was written.
    """
    stands_there = Path.cwd().is_relative_to(repository.worktree)
    again = None if stands_there else f"cd {shlex.quote(str(repository.worktree))} && redfirst run {options.issue}"
    interruption = Interruption()
    with interruption.listening("no run was begun", again):
        return await _start(repository, options, say, interruption)


async def _start(repository: Repository, options: RunOptions, say: Display, interruption: Interruption) -> Context:
    refuse_recursion(options.environ)
    tip = repository.resolve("HEAD") or ""
    flags = options.flags
    loaded = read_config(repository, tip, flags, options.environ)
    config = loaded.config
    checks = (
        repository.identity,
        partial(require_usable, repository, loaded, options.environ),
        partial(require_programs, config, options.environ),
        partial(require_runner, repository, config),
        partial(refuse_misfit, config, options.issue),
    )
    options = with_recipe(repository, tip, config, options)
    chosen = partial(issue_recipe, repository, tip, options)
    try:
        start_point = examine(repository, options.issue, options.base or config.base)
    except UserError as error:
        if error.reason is Reason.ISSUE_NOT_FOUND:
            raise  # alone: for the right id all else may be as it should
        raise with_others(error, chosen, *checks) from None
    try:
        recipe, inputs = chosen()
    except UserError as error:
        raise with_others(error, *checks) from None
    check_all(*checks)
    for hook in unrun_hooks(repository, config):
        say(hook.told())
    previous = None
    if options.previous is not None:
        previous = previous_patch(repository, options.previous, options.issue)
    box = await box_of(config)
    await interruption.checkpoint()
    folder = workflow_folder(repository) / next_name(repository, options.issue)
    with disk(folder):
        folder.mkdir(exist_ok=True)  # there already, where another driver is about to begin or died before it did
    lease = FileLease.take(folder)
    try:
        if (folder / "run.json").exists():
            raise UserError(
                f"Another process has just begun {folder.name}. Watch it: redfirst show {folder.name} --log --follow",
                Reason.LOCKED,
                actions=(f"redfirst show {folder.name} --log --follow",),
            )
        run = made(
            Run,
            repository,
            folder,
            options,
            config,
            box,
            recipe,
            inputs,
            workflow_hash=matrix_hash(),
            issue=options.issue,
            branch=start_point.branch,
            base_branch=start_point.base_branch,
            start_commit=start_point.commit,
            start_tree=start_point.tree,
            limits=issue_limits(loaded, recipe.recipe),
            gates=options.gates,
            points=tuple(config.gates.points),
            park_on_blockers=config.final_review.on_blockers == "park",
            phases=recipe.phases,
            previous=previous[0] if previous is not None else None,
        )
        if previous is not None:
            run.write_artifact(PREVIOUS_PATCH, previous[1])
        ctx = build_context(repository, run, config, box, options.environ, say)
        ctx.start = start_point
        facts = ", ".join(f"{name} {value}" for name, value in ctx.box_facts.items())
        by = "" if recipe.recipe.name == "issue" else f" by the recipe {recipe.recipe.name}"
        say(f"{run.info.run_id}: {options.issue} on {start_point.branch}{by}, {facts}")
        for line in without_effect(loaded):
            say(f"    {line}")
        return await finish(ctx, say, interruption)
    finally:
        lease.release()


async def go_on(
    repository: Repository,
    folder: Path,
    options: RunOptions,
    say: Display,
    prepare: Callable[[Context], None],
) -> Context:
    """Go on with an existing run: *prepare* answers its gate, or resumes it.

    Of a run that has ended while its driver died before it had put everything away, that is done.

    Raises:
        UserError: the run is driven by another process, has ended, or is damaged; or a signal came before.
    """
    interruption = Interruption()
    with interruption.listening(f"{folder.name} is as it was"):
        return await _go_on_with(repository, folder, options, say, prepare, interruption)


async def _go_on_with(
    repository: Repository,
    folder: Path,
    options: RunOptions,
    say: Display,
    prepare: Callable[[Context], None],
    interruption: Interruption,
) -> Context:
    refuse_recursion(options.environ)
    lease = FileLease.take(folder)
    try:
        run = Run.load(folder, driving=True)
        ended = run.state.has_ended
        if ended and not place_of_run(repository, run, options.environ).exists():
            done = run.state.outcome in {Outcome.COMPLETED, Outcome.COMPLETED_WITH_BLOCKERS}
            then = f"redfirst show {run.info.run_id}" if done else begun_again(run)
            said = "It is done; look at it" if done else "Start again"
            raise UserError(
                f"{run.info.run_id} has ended ({run.state.outcome}, {run.state.reason}). {said}.",
                Reason.USAGE,
                actions=tuple(dict.fromkeys((then, f"redfirst show {run.info.run_id}"))),
            )
        given = options.flags
        if not place_of_run(repository, run, options.environ).exists():
            require_own(run, given)
        flags = given.over(flags_of(run))
        loaded = load_config(repository, run.info.start_commit, usable(flags), options.environ)
        require_hidden(flags, loaded)
        config = loaded.config
        require_programs(config, options.environ)
        ctx = build_context(repository, run, config, await box_of(config), options.environ, say)
        if ended:
            return put_away(ctx)
        await interruption.checkpoint()
        ctx.go_on = partial(_go_on, ctx, loaded, given)
        prepare(ctx)
        return await finish(ctx, say, interruption)
    finally:
        lease.release()


async def finish(ctx: Context, display: Display, interruption: Interruption) -> Context:
    """Drive the run; afterwards its ref holds everything and, when it has ended, its checkout is gone.

    Raises:
        UserError: something must be mended first; the run can be resumed then, which the error says.
    """
    try:
        end_lost(ctx.run.folder.glob("dispatches/*/process.json"))
        ctx.checkout.open(ctx.state.start)
        with interruption.driving(ctx):
            async with shown(IssueStanding(ctx), display):
                await drive_issue(ctx, STEPS)
        if ctx.state.outcome is None:  # a signal took away what was going on
            ctx.run.decide(stopped(ctx))
    except (UserError, GitError, OSError, ExceptionGroup) as error:
        told = expected_error(error, ctx.run.folder)
        if told is None:
            raise
        if told.reason is Reason.DISK:
            forget_cache(ctx)
        told.actions = (*told.actions, f"redfirst resume {ctx.run.info.run_id}")
        if told is not error:
            raise told from error
        raise
    return put_away(ctx)


def put_away(ctx: Context) -> Context:
    """Let the run's ref hold everything; when the run is over, remove what it had outside the repository."""
    keep(ctx.repository, ctx.run, whole=True)
    if ctx.state.has_ended:
        ctx.checkout.close()
    return ctx


def expected_error(error: Exception, folder: Path) -> UserError | None:
    """Return what the user can mend, the first where two dispatches met it side by side; None where there is a bug."""
    if isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)
        inner = [expected_error(each, folder) for each in group.exceptions]
        return inner[0] if all(each is not None for each in inner) else None
    if isinstance(error, UserError):
        return error
    if isinstance(error, GitError):
        return error.told()
    return full_disk(error, folder) if isinstance(error, OSError) else None


def _go_on(ctx: Context, loaded: Loaded, given: Flags) -> None:
    """Journal that this driver goes on, with the flags it was given, and what is different since the last one."""
    run = ctx.run
    run.resume(sandbox=ctx.box_facts, flags=kept_flags(given, ctx.secrets))
    changed = change_of(run, loaded, ctx.secrets)
    if changed is not None:
        run.change_config(changed)
    said = [line for line in without_effect(loaded) if any(f"--set {key} " in line for key in given.values)]
    for line in (*(changed.changes if changed is not None else ()), *said, *_stale_file(ctx)):
        ctx.say(f"    {line}")
    _note_program(ctx)


def _stale_file(ctx: Context) -> tuple[str, ...]:
    """Return that the repository's configuration changed since the run began, which does not count for this run."""
    info = ctx.run.info
    name = changed_file(ctx.repository, info.start_commit)
    told = (
        f"{name} says something else than when this run began, and this run keeps that. Give a value of this run with "
        f"--set KEY=VALUE. Or begin anew: redfirst abandon {info.run_id}, {begun_again(ctx.run)}"
    )
    return () if name is None else (told,)


def _note_program(ctx: Context) -> None:
    """Say what of the program is not what the run began with; it goes on with what is installed now."""
    info = ctx.run.info
    other = ["prompts"] if info.prompts_hash != prompts_hash() else []
    other += ["rows of the routing matrix"] if info.workflow_hash != matrix_hash() else []
    if other:
        ctx.say(
            f"    the run began with other {' and '.join(other)} (redfirst {info.redfirst_version}). It goes on with "
            f"those of redfirst {VERSION}"
        )
