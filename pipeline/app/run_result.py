"""Defines what `run --json` and its relatives print of a run of an issue, and of one of a recipe (contract 1)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pipeline.app.documents import FindingLine, finding_line
from pipeline.app.driving import output_of
from pipeline.app.gate_packets import StepGate, open_gates
from pipeline.app.next_lines import document_as_typed, landed, next_lines
from pipeline.data_types import Frozen
from pipeline.matrix.engine.journal_kinds import DecisionMade
from pipeline.matrix.recipes.next_steps import held_by, obligations
from pipeline.matrix.recipes.step_table import Checkpoint
from pipeline.matrix.routing.state import TaskStatus
from pipeline.outcomes import COMPLETED, Outcome, Reason, exit_code
from pipeline.run import summary_facts
from pipeline.run.activity_file import Doing, read_now
from pipeline.run.gates import OpenGate, gate_of, onto_advised, open_gate
from pipeline.run.journal_kinds import Published, PublishIntended
from pipeline.run.lease import FileLease
from pipeline.run.recipe_run import RecipeRun
from pipeline.run.spending import spent
from pipeline.steps.asking.reviews import all_last_reviews
from pipeline.steps.recipe_context import Words
from pipeline.steps.recipe_outcome import last_decision, left_open, summary_of

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.steps.context import Context


class TaskLine(Frozen):
    """One task of the present split."""

    id: str
    title: str
    state: TaskStatus


class RecipeLine(Frozen):
    """The recipe that the run is of; the hash is that of all its steps."""

    name: str
    version: int
    sha256: str


class RunDocument(Frozen):
    """How a run stands (contract 1)."""

    schema_: Literal["redfirst.run-result/1"] = Field(default="redfirst.run-result/1", alias="schema")
    ok: bool
    run_id: str
    issue: str
    outcome: Outcome
    reason: Reason
    exit_code: int
    note: str
    branch: str
    start_commit: str
    commits: tuple[str, ...]
    tasks: tuple[TaskLine, ...]
    follow_ups: tuple[str, ...]
    dropped_tests: tuple[str, ...]
    """A line for each task whose tests were written and are in no commit."""
    blockers: tuple[str, ...]
    advisory: tuple[str, ...]
    safe_next_actions: tuple[str, ...]
    run_dir: str
    sandbox: summary_facts.BoxFacts
    usage: summary_facts.UsageFacts
    seconds: float
    """How long it was driven, all its drivers together."""
    spent: str
    """What its dispatches took, in words."""
    gate: str | None = None
    at_gate: OpenGate | None = None
    not_before: str | None = None
    """When the limit of an account ends that the run is parked by."""
    recipe: RecipeLine | None = None
    """Null of a run that an older version began, which is of the recipe `issue`."""


def run_document(ctx: Context) -> RunDocument:
    """Return how the run stands now."""
    state, info = ctx.state, ctx.run.info
    outcome, reason = state.outcome or Outcome.CANCELLED, state.reason or Reason.INTERRUPTED
    published = ctx.run.journal.of(Published)
    intended = ctx.run.journal.of(PublishIntended)
    ledgers = [record.ledger for record in all_last_reviews(ctx).values()]
    code = exit_code(outcome, reason)
    return RunDocument.from_fields(
        info,
        ok=code == 0,
        issue=ctx.issue,
        outcome=outcome,
        reason=reason,
        exit_code=code,
        note=summary_facts.last_note(ctx.run),
        commits=published[-1].data.commits if published else (),
        tasks=tuple(
            TaskLine(id=t.id, title=t.spec.title, state=t.status)
            for t in state.tasks.values()
            if t.status is not TaskStatus.DROPPED
        ),
        follow_ups=intended[-1].data.follow_ups if published and intended else (),
        dropped_tests=summary_facts.dropped_tests(state),
        blockers=state.open_blockers,
        advisory=tuple(line for ledger in ledgers for line in ledger.advice(state.open_blockers)),
        safe_next_actions=next_lines(ctx.repository, ctx.run, landed(ctx.repository, ctx.run)),
        run_dir=str(ctx.run.folder),
        sandbox=summary_facts.box_facts_of(ctx.run),
        usage=summary_facts.usage_of(ctx.run),
        gate=gate_of(ctx.run),
        at_gate=open_gate(ctx.run),
        seconds=round(summary_facts.driven_s(ctx.run), 3),
        spent=str(spent(ctx.run)),
        not_before=summary_facts.not_before_of(ctx.run),
        recipe=None if info.recipe is None else RecipeLine.from_fields(info.recipe),
    )


class StepLine(Frozen):
    """One step, by its name: how it stands and why, and where what it left is.

    `held_by` are the steps because of which it cannot start.
    """

    step: str
    wave: int
    checkpoint: Checkpoint | None
    summary: str
    why: str
    held_by: tuple[str, ...]
    outcome: str | None


class SeamLine(Frozen):
    """A contract between steps that not all sides keep to; `open` are those that do not, or have not said so yet."""

    name: str
    provider: str
    consumers: tuple[str, ...]
    open: tuple[str, ...]


class LeftOpen(FindingLine):
    """A finding that the last review of a step leaves open at its end."""

    step: str


class Note(Frozen):
    """What a step tells a person, without waiting."""

    step: str
    text: str


class RecipeDocument(Frozen):
    """How a run of a recipe stands. While it is driven, or its driver died, `outcome`, `reason` and code are null."""

    schema_: Literal["redfirst.recipe-result/1"] = Field(default="redfirst.recipe-result/1", alias="schema")
    ok: bool
    run_id: str
    recipe: RecipeLine
    live: bool
    queued: bool
    """It was answered, and no process drives it yet."""
    outcome: Outcome | None
    reason: Reason | None
    exit_code: int | None
    note: str
    start_commit: str
    steps: tuple[StepLine, ...]
    waves: tuple[tuple[str, ...], ...]
    usable: tuple[str, ...]
    partial: tuple[str, ...]
    failed: tuple[str, ...]
    held: tuple[str, ...]
    needs_orchestrator: tuple[str, ...]
    seam_obligations: tuple[SeamLine, ...]
    blockers: tuple[LeftOpen, ...]
    notes: tuple[Note, ...]
    gates: tuple[StepGate, ...]
    output: str | None
    commits: tuple[str, ...]
    """What is on the branch by now, in order."""
    dispatches: int
    seconds: float
    """How long it was driven, all its drivers together."""
    spent: str
    not_before: str | None = None
    """When the limit of an account ends that it waits for, or is parked by."""
    now: tuple[Doing, ...]
    """What its driver is doing now."""
    run_dir: str
    safe_next_actions: tuple[str, ...]


def show_recipe_run(folder: Path, here: Repository) -> RecipeDocument:
    """Return how the run in *folder* stands, from what is on disk.

    Raises:
        UserError: it is damaged.
    """
    return shown_from(Words(RecipeRun.load(folder, driving=False)), here)


def shown_from(ctx: Words, here: Repository, *, driven: bool = False) -> RecipeDocument:
    """Return how a run stands; *driven*: its driver asks, when it is done."""
    found = recipe_document(ctx, driven=driven)
    return document_as_typed(found, here, ctx.run.folder.parents[1], found.run_id)


def recipe_document(ctx: Words, *, driven: bool = False) -> RecipeDocument:
    """Return how the run stands now.

    Args:
        ctx: The run.
        driven: Whether it is asked by the driver itself, when it is done.
    """
    run, state = ctx.run, ctx.run.state
    live = not driven and FileLease.is_held(run.folder)
    outcome, reason = (None, None) if live else (state.outcome, state.reason)
    names = [name for id_ in run.machine.order for name in run.machine.names(state, id_)]
    by = {how: tuple(name for name in names if state.settled.get(name) is how) for how in Checkpoint}
    decisions = run.journal.of(DecisionMade)
    code = exit_code(outcome, reason) if outcome is not None and reason is not None else None
    gates = open_gates(run)
    waves = run.machine.plan.waves
    return RecipeDocument.from_fields(
        run.info,
        ok=code in {0, None},
        recipe=RecipeLine.from_fields(run.facts),
        live=live,
        queued=run.queued and not live,
        outcome=outcome,
        reason=reason,
        exit_code=code,
        note=decisions[-1].data.note if decisions and outcome not in COMPLETED else "",
        steps=tuple(
            StepLine(
                step=name,
                wave=waves[run.machine.step_of(name).id],
                checkpoint=state.settled.get(name),
                summary=summary_of(ctx, name),
                why=why_not_ready(run, name),
                held_by=_held_by(run, name),
                outcome=f"steps/{name}/outcome.json" if name in state.settled else None,
            )
            for name in names
        ),
        waves=tuple(
            tuple(name for name in names if waves[run.machine.step_of(name).id] == wave)
            for wave in sorted({waves[run.machine.step_of(name).id] for name in names})
        ),
        usable=tuple(name for name in names if (how := state.settled.get(name)) is not None and how.is_usable),
        partial=by[Checkpoint.PARTIAL],
        failed=by[Checkpoint.FAILED],
        held=by[Checkpoint.HELD],
        needs_orchestrator=by[Checkpoint.NEEDS_ORCHESTRATOR],
        seam_obligations=tuple(SeamLine.from_fields(one, name=one.seam) for one in obligations(run.machine, state)),
        blockers=tuple(
            LeftOpen.from_fields(finding_line(finding), step=name) for name in names for finding in left_open(ctx, name)
        ),
        notes=tuple(
            Note(step=name, text=ctx.words_of(name).strip())
            for name in names
            if run.machine.step_of(name).gate == "note" and name in state.settled
        ),
        gates=gates,
        output=None if run.recipe.output is None else output_of(ctx),
        commits=tuple(commit for line in run.journal.of(Published) for commit in line.data.commits),
        dispatches=state.dispatches,
        seconds=round(summary_facts.driven_s(run, datetime.now(UTC) if live else None), 3),
        spent=str(spent(run)),
        not_before=summary_facts.not_before_of(run, datetime.now(UTC) if live else None),
        now=read_now(run.folder, run.journal.epoch) if live else (),
        run_dir=str(run.folder),
        safe_next_actions=(f"redfirst show {run.info.run_id} --log --follow",) if live else _actions(run, gates),
    )


def why_not_ready(run: RecipeRun, name: str) -> str:
    """Return why a step is over and not ready, in words: of one that is held, what is at the root of it."""
    checkpoint = run.state.settled.get(name)
    if checkpoint is None or checkpoint is Checkpoint.READY:
        return ""
    if checkpoint is Checkpoint.HELD:
        return "; ".join(f"{one} {_stands(run, one)}" for one in _roots(run, name))
    seams = run.state.open_seams.get(name, ())
    if seams:
        return f"it does not say that it keeps to {', '.join(seams)}"
    last = last_decision(run, name)
    return "" if last is None else ": ".join(filter(None, (last.signal, last.note)))


def _held_by(run: RecipeRun, name: str) -> tuple[str, ...]:
    if run.state.settled.get(name) is not Checkpoint.HELD:
        return ()
    return held_by(run.machine, run.state, run.machine.step_of(name))


def _roots(run: RecipeRun, name: str) -> tuple[str, ...]:
    """Return the steps that are not held themselves and because of which one is, directly or not."""
    found: dict[str, None] = {}
    open_, seen = [name], set[str]()
    while open_:
        for one in _held_by(run, open_.pop(0)):
            if one not in seen:
                seen.add(one)
                if run.state.settled.get(one) is Checkpoint.HELD:
                    open_.append(one)
                else:
                    found[one] = None
    return tuple(found)


def _stands(run: RecipeRun, name: str) -> str:
    checkpoint = run.state.settled.get(name)
    why = why_not_ready(run, name)
    word = f"is {checkpoint.value.replace('_', ' ')}" if checkpoint is not None else "has not begun"
    return f"{word} ({why})" if why else word


def _actions(run: RecipeRun, gates: tuple[StepGate, ...]) -> tuple[str, ...]:
    if run.state.has_ended:
        return ()
    abandon = f"redfirst abandon {run.info.run_id}"
    if run.state.reason is Reason.APPROVAL:
        return (*(one.command for gate in gates for one in gate.answers), abandon)
    return (onto_advised(run) or f"redfirst resume {run.info.run_id}", abandon)  # a plain one would park again


def counted_checkpoints(document: RecipeDocument) -> str:
    """Return how many steps stand how, in words."""
    counts = Counter(line.checkpoint.value if line.checkpoint else "not begun" for line in document.steps)
    return ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items())
