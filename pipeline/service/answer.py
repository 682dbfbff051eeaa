"""Records a person's answer to a run that waits. The run then stands queued, and anybody may drive it on.

Nothing is driven here, so no box is built and no agent has to be there. Two answers at once cannot both count: each
is given under the lease of the run, to the gate that is open then.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.boxes.nobox import NoBox
from pipeline.boxes.orphans import end_lost
from pipeline.config.model import Config
from pipeline.config.tables import Gates
from pipeline.engine.events import Answerer, ConfigChanged, GateAnswered, InputGiven
from pipeline.engine.run import sha256_hex
from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal
from pipeline.runs.checkout import PrivateCheckout
from pipeline.runs.drafts import PLAN, edit_words, open_drafts, take_edits, task_file
from pipeline.runs.gates import WAYS_BACK
from pipeline.runs.lease import FileLease
from pipeline.runs.recipe_run import RecipeRun, load_run
from pipeline.runs.records import is_of_recipe
from pipeline.runs.roster import Roster, claimant, is_named, orphans
from pipeline.runs.run import Run
from pipeline.runs.run_ref import drop_publication, keep
from pipeline.runs.store import give_back
from pipeline.service import in_the_way
from pipeline.service.driving import put_away, undo_edits
from pipeline.service.gate_edits import check_edits, refuse_removal
from pipeline.service.given_proof import placed
from pipeline.service.open_gates import ANSWER, StepGate, meant, require_gate
from pipeline.service.packets import require_question, require_seen
from pipeline.service.ports import context_of, place_of_run
from pipeline.service.removal import what_stays
from pipeline.service.run_config import refuse_recursion
from pipeline.steps import failure, recipe_table
from pipeline.steps.asking.proofs import PROOF
from pipeline.steps.asking.task_drafts import in_order
from pipeline.steps.context import Context
from pipeline.steps.publication.moving import take_back
from pipeline.steps.publication.publisher import Given
from pipeline.steps.recipe_context import RecipeContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.git import Repository
    from pipeline.runs.roster import Claimant
    from pipeline.runs.spending import AnyRun
    from pipeline.service.start import Act

_SIGNALS = {
    "plan": Signal.REJECTED_TO_PLAN,
    "split": Signal.REJECTED_TO_SPLIT,
    "fix": Signal.REJECTED_TO_FIX,
}


@dataclass(frozen=True)
class Approval:
    """A run may go through its gate; what is on disk now counts and is journalled with its hash (contract 5).

    Args:
        by: Who approves.
        at: The gate that is meant, of a recipe's run the step; None for the only one that waits.
        given: What a recipe's question asks for (`answer`).
        seen: The digest of the packet that was looked at; None where nobody says.
    """

    by: Answerer
    at: str | None = None
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    seen: str | None = None

    def give(self, ctx: Context | RecipeContext) -> None:
        """Let a run through its gate, under its lease.

        Raises:
            UserError: no gate waits, or not the one that is meant; what it asks about cannot be shown, or is not what
                was seen (`stale`); what was edited cannot be used; what is not committed would be in the way.
        """
        if isinstance(ctx, RecipeContext):
            self._approve_step(ctx)
        else:
            self._approve_issue(ctx)

    def _approve_issue(self, ctx: Context) -> None:
        gate = require_gate(ctx.run, self.at)
        refuse_removal(ctx)
        require_seen(ctx.repository, ctx.run, self.at, self.seen)
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
        ctx.run.answer_gate("approved", event, hashes, self.by, edited=taken)

    def _approve_step(self, ctx: RecipeContext) -> None:
        gate = meant(ctx.run, self.at)
        unknown = sorted(self.given.keys() - {ANSWER})
        if unknown or (self.given and not gate.asks):
            takes = f'{ANSWER}="..."' if gate.asks else "no value"
            raise UserError(
                f"Approval point {gate.step} takes {takes}, and not {', '.join(unknown or self.given)}.", Reason.USAGE
            )
        answer = self.given.get(ANSWER, "")
        if gate.asks and _is_empty(answer):
            raise UserError(
                f"Approval point {gate.step} asks a question: {gate.question or 'see its recipe'}",
                Reason.USAGE,
                actions=(gate.answers[0].command,),
            )
        require_seen(ctx.repository, ctx.run, gate.step, self.seen)
        ctx.go_on()
        ctx.say(f"{gate.step}: approved")
        event = recipe_table.approved(ctx.seen_from(gate.step), answer)
        ctx.run.answer_gate("approved", event, _hashes(ctx, gate), self.by)


@dataclass(frozen=True)
class Rejection:
    """A run is sent back from its gate; what cannot be shown can be rejected.

    Args:
        by: Who rejects.
        feedback: What is wrong.
        at: The gate that is meant, of a recipe's run the step; None for the only one that waits.
        to: Where an issue's run goes; None for where the gate leads first.
        seen: The digest of the packet that was looked at; None where nobody says.
        proof: The path and the text of a test that fails over the result.
    """

    by: Answerer
    feedback: str
    at: str | None = None
    to: str | None = None
    seen: str | None = None
    proof: tuple[str, str] | None = None

    def give(self, ctx: Context | RecipeContext) -> None:
        """Send a run back, under its lease; the step of a recipe has failed where it leads nowhere.

        Raises:
            UserError: no gate is open, or not the one that is meant; the feedback says nothing; this gate cannot send a
                run there; or the proof is no test that could be added.
        """
        if isinstance(ctx, RecipeContext):
            self._reject_step(ctx)
        else:
            self._reject_issue(ctx)

    def _reject_issue(self, ctx: Context) -> None:
        gate = require_gate(ctx.run, self.at)
        ways = WAYS_BACK[gate]
        if _is_empty(self.feedback):
            raise UserError("--feedback says nothing: the next draft has nothing to go by.", Reason.USAGE)
        where = self.to or ways[0]
        if where not in ways:
            raise UserError(
                f"From approval point {gate} a run goes back to {', '.join(ways)}, and not to {where!r}.", Reason.USAGE
            )
        if self.proof is not None and where != "fix":
            raise UserError("A proof goes along with --to fix only: it becomes the fix task.", Reason.USAGE)
        test = placed(ctx, self.proof) if self.proof is not None else None
        self._look(ctx, self.at)
        ctx.go_on()
        number = len(ctx.run.journal.of(GateAnswered)) + 1
        feedback = self.feedback.strip()
        name = ctx.write(f"feedback-{number}.md", f"# Feedback of a person, at approval point {gate}\n\n{feedback}\n")
        names = [name]
        if test is not None:
            names.append(ctx.write_json(f"feedback-{number}-{PROOF}", test.model_dump(mode="json")))
        event = Event(signal=_SIGNALS[where], note=feedback.splitlines()[0], evidence=tuple(names))
        ctx.run.answer_gate(f"rejected to {where}", event, by=self.by)

    def _reject_step(self, ctx: RecipeContext) -> None:
        gate = meant(ctx.run, self.at)
        if _is_empty(self.feedback):
            raise UserError("--feedback says nothing: what is done next has nothing to go by.", Reason.USAGE)
        self._look(ctx, gate.step)
        ctx.go_on()
        number = len(ctx.run.journal.of(GateAnswered)) + 1
        event = recipe_table.rejected(ctx.seen_from(gate.step), self.feedback, number)
        ctx.run.answer_gate("rejected", event, _hashes(ctx, gate), self.by)
        to = ctx.run.machine.step_of(gate.step).back_to
        again = to is not None and gate.step not in ctx.run.state.settled
        ctx.say(f"{gate.step}: rejected -> {f'{to} and what is behind it are done again' if again else 'failed'}")

    def _look(self, ctx: Context | RecipeContext, at: str | None) -> None:
        if self.seen is not None:
            require_seen(ctx.repository, ctx.run, at, self.seen)


@dataclass(frozen=True)
class Reply:
    """The question that a run waits with is answered.

    Args:
        by: Who answers.
        text: The answer.
        at: Of a recipe's run the step that asks; None for the only one.
        seen: The digest of the packet that was looked at; None where nobody says.
    """

    by: Answerer
    text: str
    at: str | None = None
    seen: str | None = None

    def give(self, ctx: Context | RecipeContext) -> None:
        """Write down the answer, under the lease of the run, and let whoever drives it go on.

        Raises:
            UserError: the run waits for no answer, or the text says nothing; and as an approval.
        """
        if isinstance(ctx, RecipeContext):
            Approval(self.by, self.at, {ANSWER: self.text}, self.seen).give(ctx)
            return
        question = require_question(ctx.run)
        name = ctx.run.info.run_id
        if _is_empty(self.text):
            raise UserError("The answer says nothing.", Reason.USAGE, actions=(f'redfirst answer {name} "..."',))
        require_seen(ctx.repository, ctx.run, None, self.seen)
        number = len(ctx.run.journal.of(InputGiven)) + 1
        asked = ctx.read(question).rstrip()
        artifact = ctx.write(f"answer-{number}.md", f"{asked}\n\n## Answer of a person\n\n{self.text.strip()}\n")
        ctx.run.give_input(question, artifact, self.by)
        ctx.run.queue()
        ctx.go_on()


def _is_empty(text: str) -> bool:
    return not text.strip(" .\t\n")  # a line of advice as it was printed has dots there


def _hashes(ctx: RecipeContext, gate: StepGate) -> dict[str, str]:
    """Return the sha256 of what a person was shown, by its name in the run."""
    names = (str(Path(path).relative_to(ctx.run.folder)) for path in gate.read)
    return {name: sha256_hex(ctx.run.read(name)) for name in names}


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


class AnsweredDocument(BaseModel):
    """How a run stands that was answered and is not driven: `queued`, or by outcome and reason."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["redfirst.answered/1"] = Field(default="redfirst.answered/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    answer: str
    queued: bool
    outcome: Outcome | None
    reason: Reason | None
    safe_next_actions: tuple[str, ...]


def answerer(repository: Repository, via: str = "cli") -> Answerer:
    """Return who answers: as git calls them, else by their login."""
    try:
        return Answerer(actor=repository.identity()[0], via=via)
    except UserError:
        return Answerer(actor=os.environ.get("USER", "somebody"), via=via)


def record(
    repository: Repository, folder: Path, act: Act, say: Callable[[str], None] = lambda _: None
) -> AnsweredDocument:
    """Answer a run that rests, under its lease, and put it away again; where it goes on then it is queued.

    Args:
        repository: As seen from the worktree that keeps the run.
        folder: Of the run.
        act: The answer.
        say: Takes what is worth telling.

    Raises:
        UserError: the answer cannot be given; or another process drives the run (`locked`).
    """
    environ = dict(os.environ)
    refuse_recursion(environ)
    with FileLease.take(folder):
        run = load_run(folder, driving=True)
        kind = RecipeContext if isinstance(run, RecipeRun) else Context
        ctx = context_of(kind, repository, run, config_of(run), NoBox(), environ, say)
        act.give(ctx)
        put_away(ctx)
        run.queue()  # behind what was written
    name = run.info.run_id
    return AnsweredDocument(
        run_id=name,
        answer=_last_answer(run),
        queued=run.queued,
        outcome=run.state.outcome,
        reason=run.state.reason,
        safe_next_actions=(f"redfirst resume {name}",) if run.queued else (f"redfirst show {name}",),
    )


def _last_answer(run: AnyRun) -> str:
    given, answered = run.journal.of(InputGiven), run.journal.of(GateAnswered)
    last = max((*given, *answered), key=lambda line: line.seq, default=None)
    return "answered" if last is None or isinstance(last.data, InputGiven) else last.data.answer


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
    repository: Repository,
    folder: Path,
    say: Callable[[str], None],
    prepare: Callable[[Run | RecipeRun], None] = lambda _: None,
) -> Context | RecipeRun:
    """End a run without a commit: it can never go on, what its steps left stays where it is.

    Args:
        repository: As seen from the worktree that keeps it.
        folder: Of the run.
        say: Takes what is worth telling.
        prepare: What is done before, under the lease; it may raise, and then nothing is ended.

    Raises:
        UserError: it is driven by another process, or has ended already.
    """
    with FileLease.take(folder):
        run = RecipeRun.load(folder, driving=True) if is_of_recipe(folder) else _load_or_salvage(folder, say)
        prepare(run)
        environ = dict(os.environ)
        ended = run.state.has_ended
        if ended and not place_of_run(repository, run, environ).exists():
            raise UserError(
                f"{run.info.run_id} has ended already ({run.state.outcome}).",
                Reason.USAGE,
                actions=(f"redfirst show {run.info.run_id}",),  # its last lines say what is left to do, or to remove
            )
        if isinstance(run, RecipeRun):
            if not ended:
                take_back(Given(run, repository))
                drop_publication(repository, run)
                run.abandon()
            keep(repository, run, whole=True)
            PrivateCheckout(repository, place_of_run(repository, run, environ)).close()
            return run
        # Nothing is run: no box is needed, and the configuration of today may be what is broken.
        ctx = context_of(Context, repository, run, config_of(run), NoBox(), environ, say)
        end_lost(folder.glob("dispatches/*/process.json"))
        if not ended:
            for path in failure.abandon(ctx):
                say(f"{path} was changed meanwhile and is left as it is")
            run.abandon()
        done = put_away(ctx)
        if (stays := what_stays(repository, run)) is not None:
            say(stays)
        return done


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
