"""Lets a person resume, approve, reject or abandon a run."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pipeline.boxes.nobox import NoBox
from pipeline.boxes.orphans import end_lost
from pipeline.config.model import Config
from pipeline.config.tables import Gates
from pipeline.engine.events import ConfigChanged, GateAnswered
from pipeline.engine.run import sha256_hex
from pipeline.errors import UserError
from pipeline.measure.measuring import forget_cache
from pipeline.outcomes import Reason, status_word
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal, Step
from pipeline.runs.claimants import claimant
from pipeline.runs.drafts import PLAN, edit_words, open_drafts, take_edits, task_file
from pipeline.runs.events import PublishOnto
from pipeline.runs.facts import last_note
from pipeline.runs.gates import WAYS_BACK, gate_place
from pipeline.runs.lease import FileLease
from pipeline.runs.roster import Roster, is_named, orphans
from pipeline.runs.run import Run
from pipeline.runs.store import give_back
from pipeline.service import in_the_way
from pipeline.service.composition import put_away
from pipeline.service.gate_edits import check_edits, refuse_removal
from pipeline.service.given_proof import placed
from pipeline.service.orchestrator import undo_edits
from pipeline.service.ports import build_context, place_of_run
from pipeline.service.removal import what_stays
from pipeline.steps import failure
from pipeline.steps.asking.proofs import PROOF
from pipeline.steps.asking.task_drafts import in_order
from pipeline.steps.publication.commits import planned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.engine.events import Answerer
    from pipeline.git import Repository
    from pipeline.runs.claimants import Claimant
    from pipeline.runs.spending import AnyRun
    from pipeline.steps.context import Context

_BEHIND = " once it comes there again: that is behind it now"
_SIGNALS = {
    "plan": Signal.REJECTED_TO_PLAN,
    "split": Signal.REJECTED_TO_SPLIT,
    "fix": Signal.REJECTED_TO_FIX,
}


def resume(ctx: Context, onto: str | None = None, gates: tuple[str, ...] = ()) -> None:
    """Ask the unfinished step again; with *onto*, its commits are to be put on that commit; it stops at *gates*, too.

    Raises:
        UserError: the run waits for a person's answer, its commits cannot be put there, or what the user has not
            committed would be in the way of what is still to be paid.
    """
    if ctx.lane.step is Step.GATE:
        name = ctx.run.info.run_id
        raise UserError(
            f"{name} waits at {gate_place(ctx.run)}: redfirst approve {name}, or redfirst reject {name} "
            '--feedback "..."',
            Reason.APPROVAL,
            actions=(f"redfirst approve {name}", f'redfirst reject {name} --feedback "..."'),
        )
    if ctx.run.state.reason is Reason.INPUT:
        name = ctx.run.info.run_id
        raise UserError(
            f"{name} waits for an answer of yours: {last_note(ctx.run)}",
            Reason.INPUT,
            actions=(f"redfirst show {name} --packet", f'redfirst answer {name} "..."'),
        )
    in_the_way.look(ctx)
    base = None if onto is None else in_the_way.onto(ctx, onto, partial(planned, ctx))
    if ctx.state.reason is Reason.ENVIRONMENT:
        forget_cache(ctx)
    ctx.go_on()
    new = tuple(gate for gate in WAYS_BACK if gate in gates and gate not in ctx.state.gates)
    if new:
        ctx.run.ask_gates(new)
    for gate in new:
        ctx.say(f"    it waits for you at approval point {gate}{_BEHIND if _is_behind(ctx, gate) else ''}")
    if base is not None:
        ctx.note(PublishOnto(commit=base))


def _is_behind(ctx: Context, gate: str) -> bool:
    """Return whether a run has gone through a gate, so that it waits there only where it goes back."""
    return bool(ctx.state.tasks) if gate == "plan" else ctx.state.current is not None and gate == "split"


def approve(ctx: Context, by: Answerer, at: str | None, look: Callable[[], object]) -> None:
    """Let the run through its gate; what is on disk now counts and is journalled with its hash (contract 5).

    Args:
        ctx: The run.
        by: Who approves.
        at: The gate that is meant; None for whichever it waits at.
        look: Raises a UserError where what is approved cannot be shown, or is not what they looked at.

    Raises:
        UserError: no gate is open, it is not the one that is meant, what a person edited cannot be used, or what they
            have not committed would be in the way of what is still to be paid; the run stays parked.
    """
    gate = require_gate(ctx.run, at)
    refuse_removal(ctx)
    look()
    contents = {name: ctx.run.read(name) for name in open_drafts(ctx.state) if ctx.path(name).exists()}
    texts = {name: ctx.read(name) for name in open_drafts(ctx.state)}
    tasks = {task_id: ctx.task(task_id) for task_id in ctx.state.queue}
    check_edits(ctx, texts, tasks)
    in_the_way.look(ctx)
    specs = tuple(
        ctx.state.tasks[task.id].spec.model_copy(
            update={"title": task.title, "evidence": task.evidence.value, "depends_on": task.depends_on}
        )
        for task in tasks.values()
    )
    specs = in_order(ctx, tuple(tasks.values()), specs)
    names = [PLAN, *map(task_file, ctx.state.queue)]
    undo_edits(ctx)
    hashes = {name: sha256_hex(ctx.run.read(name)) for name in names if ctx.path(name).exists()}
    _require_unchanged(ctx, contents)
    changed = gate == "split" and specs != tuple(ctx.state.tasks[task_id].spec for task_id in ctx.state.queue)
    ctx.go_on()
    taken = take_edits(ctx.run, contents)
    for name, kept in taken.items():
        ctx.say(f"    {edit_words(name, kept, 'you')}")
    event = Event(signal=Signal.APPROVED, tasks=specs if changed else ())
    ctx.run.answer_gate("approved", event, hashes, by, edited=taken)


def _require_unchanged(ctx: Context, contents: Mapping[str, bytes]) -> None:
    """Return when the files are as they were before they were checked.

    Raises:
        UserError: an editor has saved one in between.
    """
    saved = [name for name, content in contents.items() if ctx.run.read(name) != content]
    if saved:
        then = f"redfirst approve {ctx.run.info.run_id}"
        raise UserError(
            f"{', '.join(saved)} was saved while it was checked, so nothing is approved. Look at it, then: {then}",
            Reason.USAGE,
            path=str(ctx.path(saved[0])),
            actions=(then,),
        )


def reject(
    ctx: Context,
    by: Answerer,
    feedback: str,
    to: str | None,
    at: str | None,
    look: Callable[[], object],
    proof: tuple[str, str] | None = None,
) -> None:
    """Send the run back from its gate; *proof* is the path and the text of a test that fails over the result.

    Raises:
        UserError: no gate is open, it is not the one that is meant (*at*), the feedback is empty, this gate cannot
            send a run there, or the proof is no test that could be added.
    """
    gate = require_gate(ctx.run, at)
    ways = WAYS_BACK[gate]
    if not feedback.strip(" .\t\n"):  # a line of advice as it was printed has dots there
        raise UserError("--feedback says nothing: the next draft has nothing to go by.", Reason.USAGE)
    where = to or ways[0]
    if where not in ways:
        raise UserError(
            f"From approval point {gate} a run goes back to {', '.join(ways)}, and not to {where!r}.", Reason.USAGE
        )
    if proof is not None and where != "fix":
        raise UserError("A proof goes along with --to fix only: it becomes the fix task.", Reason.USAGE)
    test = placed(ctx, proof) if proof is not None else None
    look()
    ctx.go_on()
    number = len(ctx.run.journal.of(GateAnswered)) + 1
    name = ctx.write(
        f"feedback-{number}.md", f"# Feedback of a person, at approval point {gate}\n\n{feedback.strip()}\n"
    )
    names = [name]
    if test is not None:
        names.append(ctx.write_json(f"feedback-{number}-{PROOF}", test.model_dump(mode="json")))
    event = Event(signal=_SIGNALS[where], note=feedback.strip().splitlines()[0], evidence=tuple(names))
    ctx.run.answer_gate(f"rejected to {where}", event, by=by)


def require_gate(run: Run, at: str | None) -> str:
    """Return the gate that a run waits at.

    Raises:
        UserError: it waits at none, or not at the one that is meant.
    """
    here, name = run.state.trunk, run.info.run_id
    if here.step is not Step.GATE or here.gate is None:
        outcome = run.state.outcome
        stands = "queued" if run.queued else status_word(outcome, run.state.reason) if outcome else "running"
        answered = " It was answered already." if run.queued else ""
        look = f"redfirst show {name}"
        ended = run.state.has_ended
        then = f"Look at it: {look}" if ended else f"To go on: redfirst resume {name}"
        raise UserError(
            f"{name} does not wait at an approval point ({stands}, {here.step}).{answered} {then}",
            Reason.USAGE,
            actions=(look,) if ended else (f"redfirst resume {name}",),
        )
    if at not in {None, here.gate}:
        raise UserError(
            f"{name} waits at {gate_place(run)}, not at approval point {at}: nothing was answered. Look at what it "
            f"waits for: redfirst show {name}",
            Reason.USAGE,
            actions=(f"redfirst show {name}",),
        )
    return here.gate


def free_orphan(repository: Repository, name: str) -> Claimant | None:
    """Give back the claim of a run whose folder was deleted; return who had it, None if *name* means no such run.

    Raises:
        UserError: git keeps its worktree as locked, so it may be on a disk that is not there now.
    """
    roster = Roster(repository)
    if any(_is_unfinished(run.folder) for run in roster.fitting(name)):
        return None
    for issue, claim in orphans(repository).items():
        if not is_named(claim, issue, name):
            continue
        found = claimant(roster, issue, claim)
        if found.locked is not None:
            raise found.refusal()
        give_back(repository, issue, claim.run)
        return found
    return None


def _is_unfinished(folder: Path) -> bool:
    try:
        return not Run.load(folder, driving=False).state.has_ended
    except UserError:
        return True  # damaged: for `abandon` to salvage


def abandon(
    repository: Repository, folder: Path, say: Callable[[str], None], prepare: Callable[[Run], None] = lambda _: None
) -> Context:
    """End the run without a commit; return its context.

    Args:
        repository: As seen from the worktree that keeps it.
        folder: Of the run.
        say: Takes what is worth telling.
        prepare: What is done before, under the lease; it may raise, and then nothing is ended.

    Raises:
        UserError: it is driven by another process, or has ended already.
    """
    lease = FileLease.take(folder)
    try:
        run = _load_or_salvage(folder, say)
        prepare(run)
        environ = dict(os.environ)
        ended = run.state.has_ended
        if ended and not place_of_run(repository, run, environ).exists():
            raise UserError(
                f"{run.info.run_id} has ended already ({run.state.outcome}).",
                Reason.USAGE,
                actions=(f"redfirst show {run.info.run_id}",),  # its last lines say what is left to do, or to remove
            )
        # Nothing is run: no box is needed, and the configuration of today may be what is broken.
        ctx = build_context(repository, run, config_of(run), NoBox(), environ, say)
        end_lost(folder.glob("dispatches/*/process.json"))
        if not ended:
            for path in failure.abandon(ctx):
                say(f"{path} was changed meanwhile and is left as it is")
            run.abandon()
        done = put_away(ctx)
        if (stays := what_stays(repository, run)) is not None:
            say(stays)
        return done
    finally:
        lease.release()


def _load_or_salvage(folder: Path, say: Callable[[str], None]) -> Run:
    try:
        return Run.load(folder, driving=True)
    except UserError as error:
        run = Run.salvage(folder)
        say(error.message)
        say("Giving up what can be read of it. The damaged journal is kept beside the new one.")
        return run


def config_of(run: AnyRun) -> Config:
    """Return the configuration that a run was last driven with, as far as it is on record."""
    try:
        return Config.model_validate(_recorded(run))
    except ValidationError:  # another version's
        return Config()


def gates_config_of(run: AnyRun) -> Gates:
    """Return what that configuration says of gates, whichever version wrote its other tables."""
    try:
        return Gates.model_validate(_recorded(run).get("gates", {}))
    except ValidationError:
        return Gates()


def _recorded(run: AnyRun) -> Mapping[str, Any]:
    changed = [line.data.config for line in run.journal.of(ConfigChanged) if line.data.config]
    return changed[-1] if changed else run.info.config
