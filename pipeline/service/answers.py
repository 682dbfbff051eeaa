"""Records a person's answer to a run that waits. The run then stands queued, and anybody may drive it on.

Nothing is driven here, so no box is built and no agent has to be there. Two answers at once cannot both count: each
is given under the lease of the run, to the gate that is open then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.boxes.nobox import NoBox
from pipeline.engine.events import Answerer, GateAnswered, InputGiven
from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason
from pipeline.runs.lease import FileLease
from pipeline.runs.recipe_run import RecipeRun
from pipeline.runs.records import is_of_recipe
from pipeline.runs.run import Run
from pipeline.service import composition, gates, recipe_driving, recipe_gates
from pipeline.service.packets import require_question, require_seen
from pipeline.service.ports import build_context
from pipeline.service.recipe_ports import context_of
from pipeline.service.run_config import refuse_recursion

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.steps.context import Context
    from pipeline.steps.recipe_context import RecipeContext

Say = Callable[[str], None]


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


def approve(
    repository: Repository,
    folder: Path,
    by: Answerer,
    *,
    at: str | None = None,
    given: Mapping[str, str] | None = None,
    seen: str | None = None,
    say: Say = lambda _: None,
) -> AnsweredDocument:
    """Let a run through its gate, and leave it queued.

    Args:
        repository: As seen from the worktree that keeps the run.
        folder: Of the run.
        by: Who approves.
        at: The gate that is meant, of a recipe's run the step; None for the only one that waits.
        given: What a recipe's question asks for (`answer`).
        seen: The digest of the packet that was looked at; None where nobody says.
        say: Takes what is worth telling.

    Raises:
        UserError: no gate waits, or not the one that is meant; what it asks about cannot be shown, or is not what was
            seen (`stale`); what was edited cannot be used; another process drives the run (`locked`).
    """
    return answered(
        repository,
        folder,
        say,
        lambda ctx: approve_issue(ctx, by, at, seen),
        lambda ctx: approve_step(ctx, by, at, given or {}, seen),
    )


def reject(
    repository: Repository,
    folder: Path,
    by: Answerer,
    feedback: str,
    *,
    to: str | None = None,
    at: str | None = None,
    seen: str | None = None,
    proof: tuple[str, str] | None = None,
    say: Say = lambda _: None,
) -> AnsweredDocument:
    """Send a run back from its gate, and leave it queued (see `approve`).

    Raises:
        UserError: as `approve`; or the feedback says nothing, or the gate leads to no such place.
    """
    return answered(
        repository,
        folder,
        say,
        lambda ctx: reject_issue(ctx, by, feedback, to, at, seen, proof),
        lambda ctx: reject_step(ctx, by, feedback, at, seen),
    )


def answer(
    repository: Repository,
    folder: Path,
    by: Answerer,
    text: str,
    *,
    at: str | None = None,
    seen: str | None = None,
    say: Say = lambda _: None,
) -> AnsweredDocument:
    """Answer the question that a run waits with, and leave it queued (see `approve`).

    Raises:
        UserError: it waits for no answer, or the text says nothing; and as `approve`.
    """
    return answered(
        repository,
        folder,
        say,
        lambda ctx: answer_issue(ctx, by, text, seen),
        lambda ctx: approve_step(ctx, by, at, {recipe_gates.ANSWER: text}, seen),
    )


def answer_issue(ctx: Context, by: Answerer, text: str, seen: str | None) -> None:
    """Write down the answer to the question of an issue's run, under its lease, and let whoever drives it go on."""
    question = require_question(ctx.run)
    name = ctx.run.info.run_id
    if not text.strip(" .\t\n"):  # a line of advice as it was printed has dots there
        raise UserError("The answer says nothing.", Reason.USAGE, actions=(f'redfirst answer {name} "..."',))
    require_seen(ctx.repository, ctx.run, None, seen)
    number = len(ctx.run.journal.of(InputGiven)) + 1
    asked = ctx.read(question).rstrip()
    artifact = ctx.write(f"answer-{number}.md", f"{asked}\n\n## Answer of a person\n\n{text.strip()}\n")
    ctx.run.give_input(question, artifact, by)
    ctx.run.queue()
    ctx.go_on()


def approve_issue(ctx: Context, by: Answerer, at: str | None, seen: str | None) -> None:
    """Let an issue's run through its gate, under its lease."""
    gates.approve(ctx, by, at, lambda: require_seen(ctx.repository, ctx.run, at, seen))


def approve_step(
    ctx: RecipeContext, by: Answerer, step: str | None, given: Mapping[str, str], seen: str | None
) -> None:
    """Let a recipe's run through a gate, under its lease."""
    recipe_gates.approve(ctx, by, step, given, lambda gate: require_seen(ctx.repository, ctx.run, gate, seen))


def reject_issue(
    ctx: Context,
    by: Answerer,
    feedback: str,
    to: str | None,
    at: str | None,
    seen: str | None,
    proof: tuple[str, str] | None = None,
) -> None:
    """Send an issue's run back, under its lease: what cannot be shown can be rejected."""

    def look() -> None:
        if seen is not None:
            require_seen(ctx.repository, ctx.run, at, seen)

    gates.reject(ctx, by, feedback, to, at, look, proof)


def reject_step(ctx: RecipeContext, by: Answerer, feedback: str, step: str | None, seen: str | None) -> None:
    """Say no at a gate of a recipe's run, under its lease."""

    def look(gate: str) -> None:
        if seen is not None:
            require_seen(ctx.repository, ctx.run, gate, seen)

    recipe_gates.reject(ctx, by, step, feedback, look)


def answered(
    repository: Repository,
    folder: Path,
    say: Say,
    of_issue: Callable[[Context], None],
    of_recipe: Callable[[RecipeContext], None],
) -> AnsweredDocument:
    """Answer a run by what answers one of an issue, or one of a recipe's own steps; nothing is driven."""
    run = under_lease(repository, folder, say, of_issue, of_recipe)
    name = run.info.run_id
    return AnsweredDocument(
        run_id=name,
        answer=_said(run),
        queued=run.queued,
        outcome=run.state.outcome,
        reason=run.state.reason,
        safe_next_actions=(f"redfirst resume {name}",) if run.queued else (f"redfirst show {name}",),
    )


def _said(run: Run | RecipeRun) -> str:
    """Return what was answered last."""
    given, answered = run.journal.of(InputGiven), run.journal.of(GateAnswered)
    last = max((*given, *answered), key=lambda line: line.seq).data
    return "answered" if isinstance(last, InputGiven) else last.answer


def under_lease(
    repository: Repository,
    folder: Path,
    say: Say,
    of_issue: Callable[[Context], None],
    of_recipe: Callable[[RecipeContext], None],
) -> Run | RecipeRun:
    """Do what changes a run that rests, under its lease, and put it away again; where it goes on then it is queued."""
    environ = dict(os.environ)
    refuse_recursion(environ)
    lease = FileLease.take(folder)
    try:
        if is_of_recipe(folder):
            steps = RecipeRun.load(folder, driving=True)
            here = context_of(repository, steps, gates.config_of(steps), NoBox(), environ, say)
            of_recipe(here)
            recipe_driving.put_away(here)
            steps.queue()
            return steps
        run = Run.load(folder, driving=True)
        ctx = build_context(repository, run, gates.config_of(run), NoBox(), environ, say)
        of_issue(ctx)
        composition.put_away(ctx)
        run.queue()  # behind what was written
        return run
    finally:
        lease.release()
