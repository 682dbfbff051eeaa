"""The composition root of a driver: builds the ports, takes the lease, drives, answers (architecture 3, hop 1)."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, cast

import anyio

from pipeline import VERSION
from pipeline.boxes.orphans import end_lost
from pipeline.config.agents import Backend
from pipeline.config.folders import state_folder
from pipeline.dispatch.dispatcher import Dispatcher
from pipeline.dispatch.roles import load_roles, load_templates, prompts_hash
from pipeline.engine.events import ConfigChanged
from pipeline.engine.journal import stamp, utc_now
from pipeline.errors import UserError
from pipeline.languages.projects.detection import choose
from pipeline.languages.table import DEFAULT
from pipeline.measure.measuring import forget_cache
from pipeline.outcomes import Outcome, Reason
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal
from pipeline.runs.checkout import PrivateCheckout
from pipeline.runs.files import disk, full_disk
from pipeline.runs.info import RunInfo
from pipeline.runs.lease import FileLease
from pipeline.runs.preconditions import examine
from pipeline.runs.roster import next_name
from pipeline.runs.run import Run
from pipeline.runs.run_ref import keep
from pipeline.runs.store import state_of_run, workflow_folder
from pipeline.service.isolation import box_of, isolation
from pipeline.service.orchestrator import drive_issue, tell
from pipeline.service.run_config import (
    RunOptions,
    config_hash,
    limits_of,
    load_config,
    matrix_hash,
    refuse_recursion,
    require_programs,
)
from pipeline.steps import STEPS
from pipeline.steps.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.boxes.box import ProvableBox
    from pipeline.config.model import Config
    from pipeline.git import Repository
    from pipeline.languages.protocol import Toolchain


async def start(repository: Repository, options: RunOptions, say: Callable[[str], None]) -> Context:
    """Start a run and drive it until it ends or is parked; return its context.

    Raises:
        UserError: a precondition does not hold; then nothing was written.
    """
    refuse_recursion(options.environ)
    tip = repository.resolve("HEAD") or ""
    config = load_config(repository, tip, options)
    require_programs(config, options.environ)
    base = options.base or config.base
    start_point = examine(repository, options.issue, base)
    repository.identity()
    box = await box_of(config)
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
        dumped = config.model_dump(mode="json")
        info = RunInfo(
            run_id=folder.name,
            workflow_version=VERSION,
            workflow_hash=matrix_hash(),
            redfirst_version=VERSION,
            issue=options.issue,
            branch=start_point.branch,
            base_branch=start_point.base_branch,
            start_commit=start_point.commit,
            start_tree=start_point.tree,
            config=dumped,
            config_hash=config_hash(dumped),
            prompts_hash=prompts_hash(),
            limits=limits_of(config),
            gates=options.gates,
            park_on_blockers=config.final_review.on_blockers == "park",
            started_at=stamp(utc_now()),
        )
        run = Run.create(folder, info, sandbox=isolation(config, box))
        ctx = build_context(repository, run, config, box, options.environ, say)
        ctx.start = start_point
        facts = ", ".join(f"{name} {value}" for name, value in ctx.box_facts.items())
        say(f"{run.info.run_id}: {options.issue} on {start_point.branch}, {facts}")
        return await finish(ctx)
    finally:
        lease.release()


async def go_on(
    repository: Repository,
    folder: Path,
    options: RunOptions,
    say: Callable[[str], None],
    prepare: Callable[[Context], None],
) -> Context:
    """Go on with an existing run: *prepare* answers its gate, or resumes it.

    Of a run that has ended while its driver died before it had put everything away, that is done.

    Raises:
        UserError: the run is driven by another process, has ended, or is damaged.
    """
    refuse_recursion(options.environ)
    lease = FileLease.take(folder)
    try:
        run = Run.load(folder, driving=True)
        ended = run.state.has_ended
        if ended and not place_of_run(repository, run, options.environ).exists():
            done = run.state.outcome in {Outcome.COMPLETED, Outcome.COMPLETED_WITH_BLOCKERS}
            then = f"redfirst show {run.info.run_id}" if done else f"redfirst run {run.info.issue}"
            said = "It is done; look at it" if done else "Start again"
            raise UserError(
                f"{run.info.run_id} has ended ({run.state.outcome}, {run.state.reason}). {said}: {then}",
                Reason.USAGE,
                actions=(then, f"redfirst show {run.info.run_id}"),
            )
        config = load_config(repository, run.info.start_commit, options)
        require_programs(config, options.environ)
        ctx = build_context(repository, run, config, await box_of(config), options.environ, say)
        if ended:
            return put_away(ctx)
        prepare(ctx)
        _note_config(ctx)
        _note_program(ctx)
        return await finish(ctx)
    finally:
        lease.release()


async def finish(ctx: Context) -> Context:
    """Drive the run; afterwards its ref holds everything and, when it has ended, its checkout is gone.

    Raises:
        UserError: something must be mended first; the run can be resumed then, which the error says.
    """
    try:
        end_lost(ctx.run.folder.glob("dispatches/*/process.json"))
        ctx.checkout.open(ctx.state.start)
        async with anyio.create_task_group() as group:
            group.start_soon(_listen, ctx, group.cancel_scope)
            await drive_issue(ctx, STEPS)
            group.cancel_scope.cancel()
        if ctx.state.outcome is None:  # the second signal took the running dispatch away
            event = Event(signal=Signal.CANCELLED, note="the user killed the running dispatch")
            tell(ctx, ctx.run.decide(event), event)
    except (UserError, OSError, ExceptionGroup) as error:
        told = _expected(error, ctx.run.folder)
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


def _expected(error: Exception, folder: Path) -> UserError | None:
    """Return what the user can mend, the first where two dispatches met it side by side; None where there is a bug."""
    if isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)
        inner = [_expected(each, folder) for each in group.exceptions]
        return inner[0] if all(each is not None for each in inner) else None
    if isinstance(error, UserError):
        return error
    return full_disk(error, folder) if isinstance(error, OSError) else None


async def _listen(ctx: Context, scope: anyio.CancelScope) -> None:
    """Take SIGINT and SIGTERM: the first stops at the next safe point, the second kills the dispatch (contract 1).

    Where only people are at work the first stops at once: their desks stay as they are.
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            if ctx.stopping == "no" and _only_people_work(ctx):
                ctx.stopping = "now"
                ctx.say("stopped; the desk stays, and is asked about again by: redfirst resume " + ctx.run.info.run_id)
                scope.cancel()
            elif ctx.stopping == "no":
                ctx.stopping = "soon"
                ctx.say("stopping at the next safe point; once more kills the running dispatch (its work is lost)")
            else:
                ctx.stopping = "now"
                ctx.say("killed: the running dispatch is lost; go on with: redfirst resume " + ctx.run.info.run_id)
                scope.cancel()


def _only_people_work(ctx: Context) -> bool:
    records = ctx.run.records.values()
    open_ones = [record for record in records if record.dispatch not in ctx.run.results]
    return bool(open_ones) and all(record.backend == Backend.HUMAN.value for record in open_ones)


def place_of_run(repository: Repository, run: Run, environ: Mapping[str, str]) -> Path:
    """Return the folder outside the repository that is the run's own."""
    return state_of_run(state_folder(environ), repository, run.info.run_id)


def build_context(
    repository: Repository,
    run: Run,
    config: Config,
    box: ProvableBox,
    environ: Mapping[str, str],
    say: Callable[[str], None],
) -> Context:
    """Return the ports of one driver."""
    checkout = PrivateCheckout(repository, place_of_run(repository, run, environ))
    search_path = environ.get("PATH", os.defpath)
    dispatcher = Dispatcher(
        run_folder=run.folder,
        repository=repository,
        checkout=checkout,
        config=config,
        box=box,
        roles=load_roles(),
        templates=load_templates(),
        search_path=search_path,
        run_id=run.info.run_id,
        results=run.results,
        environ=environ,
        say=say,
    )
    return Context(
        run=run,
        repository=repository,
        checkout=checkout,
        config=config,
        box=box,
        dispatcher=dispatcher,
        toolchain=_toolchain(repository, config, run.info.start_commit),
        search_path=search_path,
        environ=environ,
        say=say,
        box_facts=isolation(config, box),
        secrets=dispatcher.secrets,
    )


def _toolchain(repository: Repository, config: Config, start: str) -> Toolchain:
    tracked = (entry.path for entry in repository.entries(start))
    return choose(repository.worktree, config.toolchains, tracked) or DEFAULT.toolchain


def _note_config(ctx: Context) -> None:
    """Journal what the user changed since the run was last driven; limits count from here on."""
    dumped = ctx.config.model_dump(mode="json")
    lines = ctx.run.journal.of(ConfigChanged)
    known = lines[-1].data.config_hash if lines else ctx.run.info.config_hash
    if config_hash(dumped) != known:
        ctx.run.change_limits({**limits_of(ctx.config)}, config_hash(dumped))


def _note_program(ctx: Context) -> None:
    """Say what of the program is not what the run began with; it goes on with what is installed now."""
    info = ctx.run.info
    other = ["prompts"] if info.prompts_hash != prompts_hash() else []
    other += ["rows of the routing matrix"] if info.workflow_hash != matrix_hash() else []
    if other:
        ctx.say(
            f"    the run began with other {' and '.join(other)} (redfirst {info.redfirst_version}); it goes on with "
            f"those of redfirst {VERSION}"
        )
