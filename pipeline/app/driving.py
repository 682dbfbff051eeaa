"""Drives a run to its end, or to where it parks: the engine's loop over the steps of its machine (architecture 3).

Afterwards the run's ref holds everything and, when it has ended, its checkout is gone.

Before the run is there nothing is left of the attempt. While it is driven, what costs nothing to do again (a
measurement, a sandbox that is tried) is stopped at once, and so is a person's desk, which stays. A dispatch of an agent
may end first, since it is paid for; a second signal ends it. What has begun to be published is brought to its end.

Before anything more is paid, the user's changes are found that would be in the way of the publication: what they have
not committed in files that the run writes refuses to go on; anywhere else it is told, and stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import signal
from typing import TYPE_CHECKING, Final, TypeVar, cast

import anyio

from pipeline.agents.dispatch.caches import remove_caches
from pipeline.app.live_view import Display, Standing, shown
from pipeline.characters import on_one_line
from pipeline.errors import UserError
from pipeline.interrupts import NUMBERS, leave_terminal
from pipeline.matrix.engine.journal_kinds import PointPassed
from pipeline.matrix.engine.loop import drive
from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.recipes.next_steps import held_by
from pipeline.matrix.recipes.step_table import At, Checkpoint, StepEvent, StepSignal, StepsState
from pipeline.matrix.routing.state import Event, RunState, TaskStatus
from pipeline.outcomes import Reason
from pipeline.process import BoxError
from pipeline.progress import few
from pipeline.repo import GitError
from pipeline.run import tracker
from pipeline.run.drafts import put_back, vain_edit
from pipeline.run.files import full_disk
from pipeline.run.gates import gate_of, gate_place
from pipeline.run.hub import HeldElsewhereError
from pipeline.run.journal_kinds import PublishIntended
from pipeline.run.run_ref import keep, trees_of
from pipeline.run.store import WORKFLOW, release_claim
from pipeline.run.summary_facts import task_words
from pipeline.sandbox.boxes.orphans import end_lost
from pipeline.sandbox.escapes import EscapeError
from pipeline.steps.asking.dispatches import stopped, waiting_for
from pipeline.steps.publication import moving
from pipeline.steps.publication.commits import Planned, planned_subjects
from pipeline.steps.publication.follow_ups import planned_titles
from pipeline.steps.publication.publisher import Base, Blocked, Publisher, choose
from pipeline.steps.publication.summary import write_summary
from pipeline.steps.recipe_context import CollisionError, RecipeContext, Words
from pipeline.steps.recipe_outcome import write_outcome
from pipeline.steps.table import RUNNERS, STEPS
from pipeline.testing.measure.measuring import UnmeasurableError, forget_cache
from pipeline.vocabulary import Loop, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path
    from types import FrameType

    from pipeline.matrix.routing.advance import Decision
    from pipeline.steps.context import Context, DriverContext


class Interruption:
    """The signals that a driver has got, and what follows of them at each moment."""

    def __init__(self) -> None:
        self._count = 0
        self._told = False
        self._ctx: DriverContext | None = None
        self._scope = anyio.CancelScope()
        self._loop = asyncio.get_running_loop()

    @contextlib.contextmanager
    def listening(self, before: str, again: str | None = None) -> Generator[None]:
        """Take the signals while the body runs, which must drive a run or begin to.

        Args:
            before: What is true of a run that this driver did not come to drive.
            again: The command that begins it once more, where it is not the one that was given.

        Raises:
            UserError: reason `interrupted`: a signal came before there was a run to drive.
        """
        numbers = [number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
        numbers += [] if signal.SIGINT in numbers else [signal.SIGINT]  # one that is sent by name is meant
        old = {number: signal.signal(number, self._hear) for number in numbers}
        try:
            with self._scope:
                yield
                return
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
        raise UserError(f"Interrupted: {before}.", Reason.INTERRUPTED, actions=(again,) if again else ())

    async def checkpoint(self) -> None:
        """Stop here if a signal came while nothing was waited for."""
        if self._count:
            self._scope.cancel()
        await anyio.lowlevel.checkpoint()

    @contextlib.contextmanager
    def driving(self, ctx: DriverContext) -> Generator[None]:
        """Let the signals stop what the body drives, and nothing around it."""
        self._ctx, self._scope = ctx, anyio.CancelScope()
        if self._count:
            ctx.learnt.stopping = "soon"
        try:
            with self._scope:
                yield
        finally:
            self._scope = anyio.CancelScope()  # over: what is left to do is short, and must be done

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
        self._count += 1
        if self._ctx is not None and self._ctx.stopping == "no":
            self._ctx.learnt.stopping = "soon"
        self._loop.call_soon_threadsafe(self._react)  # no word and no cancellation in the midst of another one

    def _react(self) -> None:
        working = [] if self._ctx is None else waiting_for(self._ctx, person=False)
        if self._ctx is None or not working or self._count > 1:
            self._scope.cancel()
        elif not self._told:
            self._told = True
            names = " and ".join(working)
            self._ctx.say(f"it stops once {names} answered. A second Ctrl-C stops now: it is asked again later")


ContextT = TypeVar("ContextT", bound="Context | RecipeContext")

_UNSTOPPABLE = frozenset({Step.PUBLISH, Step.FAILURE, Step.GATE})


async def finish(ctx: ContextT, display: Display, interruption: Interruption) -> ContextT:
    """Drive a run under its lease, and put it away.

    Raises:
        UserError: something must be mended first; the run can be resumed then, which the error says.
    """
    try:
        end_lost(ctx.run.folder.glob("dispatches/*/process.json"))
        ctx.checkout.open(ctx.run.info.start_tree)
        standing = Standing(ctx.run, ctx.progress, ctx.config.budget)
        with interruption.driving(ctx):
            async with shown(standing, display):
                await (_drive_steps(ctx) if isinstance(ctx, RecipeContext) else _drive_issue(ctx))
        if ctx.run.state.outcome is None:  # a signal took away what was going on
            if isinstance(ctx, RecipeContext):
                lanes = ctx.run.state.lanes
                lane = next(name for name in lanes if name != TRUNK or len(lanes) == 1)
                note = "what had not answered is asked again"
                ctx.run.decide(StepEvent(signal=StepSignal.CANCELLED, lane=lane, note=note))
            else:
                ctx.run.decide(stopped(ctx))
    except (UserError, GitError, OSError, ExceptionGroup) as error:
        told = _expected(error, ctx.run.folder)
        if told is None:
            raise
        if told.reason is Reason.DISK:
            forget_cache(ctx)
        if told.reason is Reason.SUPERSEDED:  # nobody here is to go on with it
            release_claim(ctx.repository, ctx.run.info.issue or "", ctx.run.info.run_id)
        else:
            told.actions = (*told.actions, f"redfirst resume {ctx.run.info.run_id}")
        if told is not error:
            raise told from error
        raise
    put_away(ctx)
    try:
        await keep_at_hub(ctx)
    except UserError as error:
        if error.reason is not Reason.HUB_UNAVAILABLE:
            raise
        ctx.say(f"    {error.message}")  # the run itself is as it is
    return ctx


async def keep_at_hub(ctx: DriverContext) -> None:
    """Let other machines go on from where the run stands now, before anything more is paid.

    Raises:
        UserError: the run goes on elsewhere, or the hub is out of reach for too long.
    """
    if ctx.hub is None:
        return
    try:
        await ctx.hub.checkpoint(ctx.run)
    except HeldElsewhereError as error:
        name = ctx.run.info.run_id
        raise UserError(
            f"{error} has the issue of {name} at the hub. This driver stops. See who drives it: redfirst fleet runs",
            Reason.SUPERSEDED,
            actions=("redfirst fleet runs",),
        ) from error


def put_away(ctx: ContextT) -> ContextT:
    """Let the run's files and its ref say how it stands; when it is over, remove what it had outside the repository."""
    if isinstance(ctx, RecipeContext):
        _write_outcomes(ctx)
        if ctx.run.recipe.output is not None:
            ctx.run.write_artifact("output.md", output_of(ctx))
    keep(ctx.repository, ctx.run, whole=True)
    if ctx.run.state.has_ended:
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
    if isinstance(error, GitError):
        return error.told()
    return full_disk(error, folder) if isinstance(error, OSError) else None


# --- the run of an issue ---------------------------------------------------------------------------------------------


async def _drive_issue(ctx: Context) -> None:
    """Drive the run until it ends or is parked; its ref holds every tree that it comes to."""
    kept = trees_of(ctx.run)

    async def step(state: RunState, lane: str) -> Event:
        here = ctx.seen_from(lane)
        if ctx.stopping != "no" and state.lanes[lane].step not in _UNSTOPPABLE:
            return _of_lane(lane, stopped(here))
        undo_edits(ctx)
        await keep_at_hub(ctx)
        try:
            event = await STEPS[state.lanes[lane].step](here)
        except EscapeError as error:  # whatever the step did: what it measured changed the user's repository
            name = here.write_json("evidence/escape.json", error.escape.document())
            event = Event(signal=Signal.ESCAPE, note=str(error), evidence=(name,))
        except UnmeasurableError as error:
            event = error.event
        return _of_lane(lane, event)

    def decided(decision: Decision, event: Event) -> None:
        nonlocal kept
        _tell_decision(ctx, decision, event)
        for effect in decision.effects:
            if effect.kind == PointPassed.KIND:
                name = ctx.run.info.run_id
                ctx.say(f"    point {effect.data['point']}: {name} goes on; look at it: redfirst show {name}")
        if event.lane not in ctx.run.state.lanes:
            remove_caches(ctx.checkout.root / "caches", event.lane)
        if gate_of(ctx.run) == "commit":
            write_summary(ctx, planned=planned_subjects(ctx), to_file=planned_titles(ctx))
        if (now := trees_of(ctx.run)) != kept:
            keep(ctx.repository, ctx.run)
            kept = now

    await drive(ctx.run, step, decided, ends_all=lambda event: event.signal is Signal.ESCAPE)


def _of_lane(lane: str, event: Event) -> Event:
    return event if event.lane == lane else event.model_copy(update={"lane": lane})


def undo_edits(ctx: Context) -> None:
    """Put back what a person edited when it has no effect, and say so: what is on disk is what counts."""
    for name, kept in put_back(ctx.run).items():
        if kept is None:
            ctx.say(f"{name} was removed, and is put back")
        else:
            says = vain_edit(ctx.run, name).says
            ctx.say(f"{name} was edited, which has no effect now: {says}. It is put back; yours is {ctx.path(kept)}")


def _tell_decision(ctx: Context, decision: Decision, event: Event) -> None:
    """Say a decision on the progress stream: step, signal, what follows; of a run that was stopped its end says it."""
    if event.signal is Signal.CANCELLED:
        return
    task = f" {task_words(ctx.state, decision.task)}" if decision.task else ""
    paid = "".join(f" ({key.split('@', 1)[0]} {count})" for key, count in decision.counters.items())
    waits = gate_place(ctx.run)
    after = ctx.run.state.lanes.get(event.lane, ctx.lane)
    followed = ctx.state.outcome.value if ctx.state.outcome else after.step.value
    followed += f" at {waits}" if waits else ""
    last = Loop.UNUSABLE in decision.exhausted
    note = f": {on_one_line(event.note)}" if event.note and (event.role is None or last) else ""
    said = event.signal.value + note
    if event.signal is Signal.NOT_ASKED:
        recipe = ctx.run.info.recipe
        said = f"the recipe {recipe.name if recipe is not None else 'issue'} leaves this out"
    ctx.say(f"[{decision.step.phase}] {decision.step.value}{task}: {said} -> {followed}{paid}")


# --- the run of a recipe's own steps ---------------------------------------------------------------------------------


async def _drive_steps(ctx: RecipeContext) -> None:
    _write_outcomes(ctx)
    await drive(
        ctx.run,
        lambda _state, lane: _step(ctx, lane),
        lambda _decision, event: _tell_event(ctx, event),
        ends_all=lambda event: event.signal is StepSignal.ESCAPE,
    )


async def _step(ctx: RecipeContext, lane: str) -> StepEvent:
    here = ctx.seen_from(lane)
    if lane != TRUNK:
        await keep_at_hub(ctx)
        if ctx.stopping != "no":
            return StepEvent(signal=StepSignal.CANCELLED, lane=lane, note=f"{lane} is asked when the run goes on")
    try:
        event = await RUNNERS[here.lane.at](here)
    except EscapeError as error:
        event = StepEvent(signal=StepSignal.ESCAPE, note=str(error))
    except CollisionError as error:
        event = StepEvent(signal=StepSignal.COLLISION, note=str(error))
    except (UnmeasurableError, BoxError) as error:
        event = StepEvent(signal=StepSignal.ENV_BROKEN, note=str(error))
    return event.model_copy(update={"lane": lane})


def _tell_event(ctx: RecipeContext, event: StepEvent) -> None:
    if event.tree is not None:
        keep(ctx.repository, ctx.run)
    _write_outcomes(ctx)
    if event.lane not in ctx.run.state.lanes:
        remove_caches(ctx.checkout.root / "caches", event.lane)
    if event.lane == TRUNK or event.signal is StepSignal.CANCELLED:
        return
    note = f": {on_one_line(event.note)}" if event.note else ""
    ctx.say(f"{event.lane}: {event.signal.value}{note} -> {_followed(ctx.run.state, event.lane)}")


def _followed(state: StepsState, name: str) -> str:
    """Return what became of a step, in words: how it stands, or where it goes on."""
    how, lane = state.settled.get(name), state.lanes.get(name)
    if how is not None:
        return how.value
    if state.outcome is not None:
        return state.outcome.value
    return "asked again" if lane is None or lane.at is At.ASK else lane.at.value


def _write_outcomes(ctx: RecipeContext) -> None:
    """Write the outcome of each step that is settled, those too that a crash left unwritten."""
    state = ctx.run.state
    for name, checkpoint in state.settled.items():
        if ctx.told_of.get(name) is not checkpoint:
            write_outcome(ctx, name, checkpoint)
            ctx.told_of[name] = checkpoint
            if checkpoint is Checkpoint.HELD:
                ctx.say(f"{name}: held by {', '.join(held_by(ctx.run.machine, state, ctx.run.machine.step_of(name)))}")


def output_of(ctx: Words) -> str:
    """Return what the recipe gives, as far as it is there."""
    return ctx.with_values(ctx.run.recipe.output or "").strip() + "\n"


_SHOWN: Final = 5


def look_for_conflicts(ctx: Context) -> None:
    """Say what of the user's is there that the run did not begin with.

    Raises:
        UserError: something is still to be paid, and as things stand it could not be published.
    """
    if ctx.run.journal.of(PublishIntended):
        return  # publication was tried, and may have left changes of its own; it says itself what is in the way
    ours = _written(ctx)
    dirty = _uncommitted(ctx)
    below = {path: [one for one in ours if path.endswith("/") and one.startswith(path)] for path in dirty}
    met = [path for path in dirty if path in ours or any(_is_there(ctx, one) for one in below[path])]
    if met and (ctx.lane.step in {Step.PUBLISH, Step.FAILURE} or ctx.lane.gate == "commit"):
        ctx.say(f"    not committed: {few(met, _SHOWN)}, where the run writes: publication will refuse to overwrite it")
    elif met:
        name, names, put = ctx.run.info.run_id, few(met, _SHOWN), moving.put_away(ctx.repository, met)
        raise UserError(
            f"You have changes in {names} that are not committed, and {name} writes there. It could not publish "
            f"over them. {put[0].upper()}{put[1:]}",
            Reason.DIRTY_TREE,
            details={"paths": met},
            actions=("git status", f"redfirst show {name}"),
        )
    own = f"{ctx.config.tracker.folder}/{ctx.issue}.md"
    if own in dirty:
        ctx.say(
            f"    {own}: you changed it after the run began, and that does not count: {ctx.run.info.run_id} goes by"
        )
        ctx.say("    the issue as it was at its start (issue.md). Commit or undo your change before it publishes")
    if elsewhere := [path for path in dirty if path not in {*met, own}]:
        ctx.say(f"    not committed: {few(elsewhere, _SHOWN)}: left as it is; what the run writes has to be elsewhere")
    base = choose(ctx)
    if isinstance(base, Blocked):
        ctx.say(f"    as things stand nothing could be published: {base.why}")
    elif base.commit != ctx.run.info.start_commit:
        _tell_of_commits(ctx, base, ours)


def commit_onto(ctx: Publisher, revision: str, work: Callable[[Base], Sequence[Planned]]) -> str:
    """Return the commit that a person wants the run's commits put on.

    Args:
        ctx: Who publishes.
        revision: What the person calls it.
        work: Returns the commits as they are to be put on a base.

    Raises:
        UserError: there is no such commit, the run's cannot be put there, or files meet that cannot be merged.
    """
    repository, info = ctx.repository, ctx.run.info
    commit = repository.resolve(f"{revision}^{{commit}}")
    if commit is None:
        raise UserError(f"There is no commit {revision}: --onto takes a branch or a commit.", Reason.USAGE)
    tip = repository.resolve(f"refs/heads/{info.branch}") or info.start_commit
    for known, what in ((info.start_commit, "where the run began"), (tip, f"where {info.branch} is")):
        if not repository.is_ancestor(known, commit):
            raise UserError(
                f"{revision} ({commit[:12]}) does not hold {known[:12]}, {what}: nothing can be put on it.",
                Reason.BRANCH_MOVED,
                actions=(f"git log {commit[:12]}..{known[:12]}",),
            )
    base = Base(commit, tip, merging=True)
    refused = moving.refusal_of_files(ctx, base, work(base))
    if refused is not None:
        raise UserError(
            f"Nothing was changed: {refused.why}.",
            Reason.BRANCH_MOVED,
            details={"meetings": list(refused.details)},
            actions=(f"redfirst diff {info.run_id}", f"git log {info.start_commit[:12]}..{commit[:12]}"),
        )
    return commit


def _tell_of_commits(ctx: Context, base: Base, ours: frozenset[str]) -> None:
    branch, start = ctx.run.info.branch, ctx.run.info.start_commit
    met = sorted(ours.intersection(change.path for change in ctx.repository.diff(start, base.commit)))
    told = f"{branch} is at {base.tip[:12]} now"
    if met:
        ctx.say(f"    {told}; {few(met, _SHOWN)} changed there, and the run writes there, too")
    else:
        ctx.say(f"    {told}; the result is put on top of it, and measured there")


def _written(ctx: Context) -> frozenset[str]:
    """Return the paths that the run has changed so far, and those that its tasks name."""
    found = {change.path for change in ctx.repository.diff(ctx.state.start, ctx.state.head)}
    for state in ctx.state.tasks.values():
        if state.status is not TaskStatus.DROPPED:
            task = ctx.task(state.id)
            found.update(path for each in (*task.files, *task.test_files) for path in (each.path, each.origin) if path)
    return frozenset(found)


def _uncommitted(ctx: Context) -> list[str]:
    """Return what differs from HEAD in the worktree or is new there; tracker files only where the user changed them."""
    shown: set[str] = set()
    paths = tracker.shown_paths(ctx.run, ctx.repository.worktree)
    for name, known in tracker.shown_files(ctx.run).items():
        place = ctx.repository.worktree / paths[name]
        if place.is_file() and hashlib.sha256(place.read_bytes()).hexdigest() in known:
            shown.add(paths[name])
    return sorted(line[3:] for line in ctx.repository.status(WORKFLOW) if line[3:] not in shown)


def _is_there(ctx: Context, path: str) -> bool:
    place = ctx.repository.worktree / path
    return place.is_symlink() or place.exists()
