"""Begins a run, or goes on with one: builds its ports, takes its lease, lets it be driven (architecture 3, hop 1)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from pipeline import VERSION
from pipeline.agents.dispatch.roles import prompts_hash
from pipeline.agents.dispatch.transcript import secrets_of_run
from pipeline.app import run_config, run_flags
from pipeline.app.driving import Interruption, commit_onto, finish, look_for_conflicts, put_away
from pipeline.app.gate_packets import require_no_gate, require_unasked
from pipeline.app.ports import box_of, context_of, isolation, place_of_run, require_runner
from pipeline.app.recipe_choice import Chosen, inputs_kept, issue_recipe, pairs, roles_of, sound, steps_of, with_recipe
from pipeline.app.recipe_choice import change_of as change_seen
from pipeline.app.trust_requests import refuse_misfit, unrun_hooks
from pipeline.config.load import Loaded, without_effect
from pipeline.config.sources import Layer
from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError, check_all, with_others
from pipeline.matrix.engine.journal import stamp, utc_now
from pipeline.matrix.recipes.model import Kind, Recipe
from pipeline.matrix.recipes.step_table import ANY, GIVEN, ROWS, At
from pipeline.matrix.routing.state import EVERYBODY, PARALLEL, Phases
from pipeline.outcomes import COMPLETED, Reason
from pipeline.run.files import disk
from pipeline.run.gates import WAYS_BACK, begun_again
from pipeline.run.ignored import forget_ignored, include_ignored
from pipeline.run.info import PREVIOUS_PATCH, RECIPE, ChangeSeen, RunInfo
from pipeline.run.journal_kinds import GatesAsked, PublishOnto
from pipeline.run.lease import FileLease
from pipeline.run.preconditions import Start, examine, examine_recipe
from pipeline.run.recipe_run import RecipeRun, load_run
from pipeline.run.records import OF_RECIPE
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import next_name
from pipeline.run.store import state_of_run, workflow_folder
from pipeline.steps import recipe_publish
from pipeline.steps.context import Context
from pipeline.steps.publication.commits import Planned, planned
from pipeline.steps.recipe_context import RecipeContext
from pipeline.testing.measure.measuring import forget_cache
from pipeline.vocabulary import ISSUE_ROLES, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.app.live_view import Display
    from pipeline.app.run_config import RunOptions
    from pipeline.config.layers import Flags
    from pipeline.repo import Repository
    from pipeline.steps.publication.publisher import Base

_MOST_BESIDE: Final = 12
"""As many tasks as `limits.parallel` may name."""


class Act(Protocol):
    """What a person does to a run that rests, so that it goes on: an answer, or that it is resumed."""

    def give(self, ctx: Context | RecipeContext) -> None:
        """Journal it, under the lease of the run.

        Raises:
            UserError: it cannot be done; the run is as it was.
        """
        ...


@dataclass(frozen=True)
class Resumption:
    """A run is gone on with.

    Args:
        onto: What its commits are put on; files that both changed are merged.
        gates: Where it stops, too; of an issue's run.
        step: Of a recipe's run the step that is done again, with all behind it, and nothing else.
        recipe: The recipe that counts from here on, by name or path: what it says otherwise is done again.
    """

    onto: str | None = None
    gates: tuple[str, ...] = ()
    step: str | None = None
    recipe: str | None = None

    def give(self, ctx: Context | RecipeContext) -> None:
        """Let the unfinished steps be asked again.

        Raises:
            UserError: the run waits for a person's answer, its commits cannot be put there, or what the user has not
                committed would be in the way of what is still to be paid.
        """
        if isinstance(ctx, RecipeContext):
            self._resume_steps(ctx)
        else:
            self._resume_issue(ctx)

    def _resume_issue(self, ctx: Context) -> None:
        require_unasked(ctx.run)
        look_for_conflicts(ctx)
        base = None if self.onto is None else commit_onto(ctx, self.onto, partial(planned, ctx))
        if ctx.state.reason is Reason.ENVIRONMENT:
            _renew(ctx)
        ctx.go_on()
        new = tuple(gate for gate in WAYS_BACK if gate in self.gates and gate not in ctx.state.gates)
        if new:
            ctx.run.tell(GatesAsked(gates=new))
        for gate in new:
            behind = bool(ctx.state.tasks) if gate == "plan" else ctx.state.current is not None and gate == "split"
            ctx.say(f"    it waits for you at approval point {gate}{_BEHIND if behind else ''}")
        if base is not None:
            ctx.note(PublishOnto(commit=base))

    def _resume_steps(self, ctx: RecipeContext) -> None:
        base = None if self.onto is None else _onto(ctx, self.onto)
        if self.step is None and self.recipe is None:
            require_no_gate(ctx.run)
            if ctx.run.state.reason is Reason.ENVIRONMENT:
                _renew(ctx)
        ctx.go_on()
        if base is not None:
            ctx.note(PublishOnto(commit=base))


def _renew(ctx: Context | RecipeContext) -> None:
    """Take what a person may have mended: caches, and the ignored files that tests need."""
    forget_cache(ctx)
    forget_ignored(ctx.checkout.root)
    include_ignored(ctx.repository, ctx.checkout.root)


_BEHIND: Final = " once it comes there again: that is behind it now"


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

    return commit_onto(ctx, revision, work)


@dataclass(frozen=True)
class _Beginning:
    """What a run is begun with, when all that it needs is there."""

    loaded: Loaded
    recipe: Chosen
    values: Mapping[str, str]
    start: Start
    roles: tuple[Role, ...] = ISSUE_ROLES
    phases: Phases | None = None
    """What of the recipe the matrix goes by; None where the recipe's own steps drive the run."""
    change: ChangeSeen | None = None
    previous: tuple[str, str] | None = None


async def start(repository: Repository, options: RunOptions, say: Display) -> Context | RecipeContext:
    """Begin a run of an issue, or of a recipe's own steps, and drive it until it ends or is parked.

    Raises:
        UserError: a precondition does not hold, or a signal came before; then nothing was written.
    """
    stands_there = not options.issue or Path.cwd().is_relative_to(repository.worktree)
    again = None if stands_there else f"cd {shlex.quote(str(repository.worktree))} && redfirst run {options.issue}"
    interruption = Interruption()
    with interruption.listening("no run was begun", again):
        run_config.refuse_recursion(options.environ)
        of_recipe = options.recipe and not options.issue
        begin = _examined_recipe(repository, options) if of_recipe else _examined(repository, options, say)
        config = begin.loaded.config
        box = await box_of(config, begin.roles)
        await interruption.checkpoint()
        folder = workflow_folder(repository) / next_name(repository, options.issue or begin.recipe.recipe.name)
        with disk(folder):
            folder.mkdir(exist_ok=True)  # there already, where another driver is about to begin or died before it did
        with FileLease.take(folder):
            if (folder / "run.json").exists():
                look = f"redfirst show {folder.name} --log --follow"
                raise UserError(
                    f"Another process has just begun {folder.name}. Watch it: {look}", Reason.LOCKED, actions=(look,)
                )
            info, facts = _info(repository, folder, options, begin), isolation(config, box, begin.roles)
            of_run, of_driver = (RecipeRun, RecipeContext) if begin.phases is None else (Run, Context)
            run = of_run.create(folder, info, sandbox=facts)
            run.write_artifact(RECIPE, begin.recipe.document(begin.values))
            if begin.previous is not None:
                run.write_artifact(PREVIOUS_PATCH, begin.previous[1])
            ctx = context_of(of_driver, repository, run, config, box, options.environ, say, begin.roles)
            _say_begun(ctx, begin)
            if not isinstance(ctx, RecipeContext):
                ctx.start = begin.start
            return await finish(ctx, say, interruption)


def _examined(repository: Repository, options: RunOptions, say: Display) -> _Beginning:
    """Return what a run of an issue is begun with: all that does not hold is told at once."""
    tip = repository.resolve("HEAD") or ""
    loaded = run_config.read_config(repository, tip, options.flags, options.environ)
    config = loaded.config
    checks = (
        repository.identity,
        partial(run_config.require_usable, repository, loaded, options.environ),
        partial(run_config.require_programs, config, options.environ),
        partial(require_runner, repository, config),
        partial(refuse_misfit, config, options.issue),
    )
    options = with_recipe(repository, tip, config, options)
    chosen = partial(issue_recipe, repository, tip, options)
    try:
        begin = examine(repository, options.issue, options.base or config.base)
    except UserError as error:
        if error.reason is Reason.ISSUE_NOT_FOUND:
            raise  # alone: for the right id all else may be as it should
        raise with_others(error, chosen, *checks) from None
    try:
        recipe, values = chosen()
    except UserError as error:
        raise with_others(error, *checks) from None
    check_all(*checks)
    for hook in unrun_hooks(repository, config):
        say(hook.told())
    previous = (
        None if options.previous is None else run_flags.previous_patch(repository, options.previous, options.issue)
    )
    return _Beginning(loaded, recipe, values, begin, phases=recipe.phases, previous=previous)


def _examined_recipe(repository: Repository, options: RunOptions) -> _Beginning:
    """Return what a run of a recipe's own steps is begun with; one that commits needs more than one that reads."""
    tip = repository.resolve("HEAD")
    if tip is None:
        raise UserError("This repository has no commit yet. Commit the project first.", Reason.USAGE)
    chosen, values = sound(repository, options.recipe, options, lambda _: pairs(options.inputs))
    recipe, roles = chosen.recipe, roles_of(chosen.recipe)
    loaded = run_config.read_config(repository, tip, options.flags, options.environ)
    base = options.base or loaded.config.base
    checks = [
        partial(run_config.require_usable, repository, loaded, options.environ, roles),
        partial(run_config.require_programs, loaded.config, options.environ, roles),
    ]
    kinds = {step.kind for step in recipe.steps}
    if kinds & {Kind.PUBLISH, Kind.FILE_ISSUES}:
        checks = [repository.identity, *checks]
        try:
            begin = examine_recipe(repository, recipe.name, base, files_alone=Kind.PUBLISH not in kinds)
        except UserError as error:
            raise with_others(error, *checks) from None
    else:
        branch = repository.branch() or "HEAD"
        begin = Start(branch, branch, tip, repository.tree_of(tip))
    check_all(*checks)
    change = change_seen(repository, recipe, values, tip, base)
    return _Beginning(loaded, chosen, values, begin, roles, change=change)


def _info(repository: Repository, folder: Path, options: RunOptions, begin: _Beginning) -> RunInfo:
    """Return run.json of a new run; the folder outside the repository that is its own is there then."""
    config, phases, steps = begin.loaded.config, begin.phases, begin.phases is None
    dumped = config.model_dump(mode="json")
    secrets = secrets_of_run(repository.worktree, options.environ, config)
    own = state_of_run(state_folder(options.environ), repository, folder.name)
    with disk(own):
        own.mkdir(mode=0o700, parents=True, exist_ok=True)  # says that the run is ours, also after a crash
    return RunInfo(
        run_id=folder.name,
        workflow=OF_RECIPE if steps else "issue-to-commits",
        workflow_version=VERSION,
        workflow_hash=run_config.config_hash(repr((ROWS, ANY, GIVEN))) if steps else run_config.matrix_hash(),
        redfirst_version=VERSION,
        config=run_flags.kept_config(dumped, secrets),
        config_hash=run_config.config_hash(dumped),
        flags=run_flags.kept_flags(options.flags, secrets),
        prompts_hash=prompts_hash(),
        recipe=begin.recipe.facts,
        trigger=options.trigger,
        started_at=stamp(utc_now()),
        branch=begin.start.branch,
        base_branch=begin.start.base_branch,
        start_commit=begin.start.commit,
        start_tree=begin.start.tree,
        steps=steps_of(begin.recipe.recipe) if steps else None,
        inputs=dict(begin.values) if steps else {},
        change=begin.change,
        issue=options.issue or None,
        limits={} if steps else issue_limits(begin.loaded, begin.recipe.recipe),
        gates=() if steps else options.gates,
        points=() if steps else tuple(config.gates.points),
        park_on_blockers=not steps and config.final_review.on_blockers == "park",
        phases=EVERYBODY if phases is None else phases,
        previous=None if begin.previous is None else begin.previous[0],
    )


def issue_limits(loaded: Loaded, recipe: Recipe) -> dict[str, int]:
    """Return the limits of an issue's run; how many tasks are side by side the recipe says where the user does not."""
    limits = run_config.limits_of(loaded.config)
    if loaded.origins[f"limits.{PARALLEL}"].layer is Layer.DEFAULT and "max_concurrency" in recipe.model_fields_set:
        limits[PARALLEL] = min(recipe.max_concurrency, _MOST_BESIDE)
    return limits


def _say_begun(ctx: Context | RecipeContext, begin: _Beginning) -> None:
    facts = ", ".join(f"{name} {value}" for name, value in ctx.box_facts.items())
    name = begin.recipe.recipe.name
    if isinstance(ctx, RecipeContext):
        ctx.say(f"{ctx.run.info.run_id}: {name}, {facts}")
        if ctx.repository.status():
            ctx.say("    every step reads the commit you stand on, without your uncommitted changes")
        return
    by = "" if name == "issue" else f" by the recipe {name}"
    ctx.say(f"{ctx.run.info.run_id}: {ctx.issue} on {begin.start.branch}{by}, {facts}")
    for line in without_effect(begin.loaded):
        ctx.say(f"    {line}")


async def go_on(
    repository: Repository, folder: Path, options: RunOptions, act: Act, say: Display
) -> Context | RecipeContext:
    """Go on with an existing run, by what somebody does to it, and drive it until it ends or is parked.

    Of a run that has ended while its driver died before it had put everything away, that is done.

    Raises:
        UserError: the run is driven by another process, has ended, or is damaged; or a signal came before.
    """
    interruption = Interruption()
    with interruption.listening(f"{folder.name} is as it was"):
        run_config.refuse_recursion(options.environ)
        with FileLease.take(folder):
            run = load_run(folder, driving=True)
            left = place_of_run(repository, run, options.environ).exists()
            again = act if isinstance(act, Resumption) else Resumption()
            if isinstance(run, RecipeRun):
                ctx = await _reopened(repository, run, options, say, again, left=left)
            else:
                ctx = await _opened(repository, run, options, say, left=left)
            if run.state.has_ended:
                return put_away(ctx)
            await interruption.checkpoint()
            act.give(ctx)
            return await finish(ctx, say, interruption)


async def _opened(repository: Repository, run: Run, options: RunOptions, say: Display, *, left: bool) -> Context:
    """Return the ports of a driver that goes on with a run of an issue, by the configuration of now."""
    if run.state.has_ended and not left:
        raise _ended(run)
    given = options.flags
    if not left:
        run_flags.require_own(run, given)
    flags = given.over(run_flags.flags_of(run))
    loaded = run_config.load_config(repository, run.info.start_commit, run_flags.usable(flags), options.environ)
    run_flags.require_hidden(flags, loaded)
    run_config.require_programs(loaded.config, options.environ)
    box = await box_of(loaded.config)
    ctx = context_of(Context, repository, run, loaded.config, box, options.environ, say)
    ctx.go_on = partial(_go_on, ctx, loaded, given)
    return ctx


async def _reopened(
    repository: Repository, run: RecipeRun, options: RunOptions, say: Display, asked: Resumption, *, left: bool
) -> RecipeContext:
    """Return the ports of a driver that goes on with a recipe's run, whose steps may be done again otherwise."""
    if not left or asked != Resumption():
        run_flags.require_unended(run)
    other = None
    if asked.recipe is not None:
        other = sound(repository, asked.recipe, options, partial(inputs_kept, run.inputs))
    again = run_flags.reopening(run, asked.step, other)
    flags = run_flags.usable(options.flags.over(run_flags.flags_of(run)))
    loaded = run_config.read_config(repository, run.info.start_commit, flags, options.environ)
    roles = roles_of(run.recipe if other is None else other[0].recipe)
    run_config.require_usable(repository, loaded, options.environ, roles)
    run_config.require_programs(loaded.config, options.environ, roles)
    box = await box_of(loaded.config, roles)
    ctx = context_of(RecipeContext, repository, run, loaded.config, box, options.environ, say, roles)
    kept = run_flags.kept_flags(options.flags, ctx.secrets)
    ctx.go_on = partial(run.resume, sandbox=ctx.box_facts, flags=kept, reopened=again)
    return ctx


def _ended(run: Run) -> UserError:
    done = run.state.outcome in COMPLETED
    then = f"redfirst show {run.info.run_id}" if done else begun_again(run)
    said = "It is done; look at it" if done else "Start again"
    return UserError(
        f"{run.info.run_id} has ended ({run.state.outcome}, {run.state.reason}). {said}.",
        Reason.USAGE,
        details={"outcome": run.state.outcome, "reason": run.state.reason},
        actions=tuple(dict.fromkeys((then, f"redfirst show {run.info.run_id}"))),
    )


def _go_on(ctx: Context, loaded: Loaded, given: Flags) -> None:
    """Journal that this driver goes on, with the flags it was given, and what is different since the last one."""
    run, info = ctx.run, ctx.run.info
    now = {"prompts": prompts_hash(), "matrix": run_config.matrix_hash()}
    began = {"prompts": info.prompts_hash, "matrix": info.workflow_hash}
    other = {what: found for what, found in now.items() if found != began[what]}
    program = {**other, "redfirst": VERSION} if other else {}
    run.resume(sandbox=ctx.box_facts, flags=run_flags.kept_flags(given, ctx.secrets), program=program)
    changed = run_flags.change_of(run, loaded, ctx.secrets)
    if changed is not None:
        run.tell(changed)
    said = [*changed.changes] if changed is not None else []
    said += [line for line in without_effect(loaded) if any(f"--set {key} " in line for key in given.values)]
    if (name := run_config.changed_file(ctx.repository, info.start_commit)) is not None:
        said.append(
            f"{name} says something else than when this run began, and this run keeps that. Give a value of this run "
            f"with --set KEY=VALUE. Or begin anew: redfirst abandon {info.run_id}, {begun_again(run)}"
        )
    if other:  # it goes on with what is installed now
        words = {"prompts": "prompts", "matrix": "rows of the routing matrix"}
        said.append(
            f"the run began with other {' and '.join(words[what] for what in other)} (redfirst "
            f"{info.redfirst_version}). It goes on with those of redfirst {VERSION}"
        )
    for line in said:
        ctx.say(f"    {line}")
