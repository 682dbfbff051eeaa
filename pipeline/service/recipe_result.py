"""How a run of a recipe stands, as a document."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.engine.events import DecisionMade
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.recipes.step_table import Checkpoint
from pipeline.runs.spending import spent
from pipeline.service.recipe_gates import StepGate, open_gates
from pipeline.service.recipe_run import output_of

if TYPE_CHECKING:
    from pipeline.runs.recipe_run import RecipeRun
    from pipeline.steps.recipe_context import Words


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class StepLine(_Document):
    """One step, by its name: how it stands, and where what it left is."""

    step: str
    checkpoint: Checkpoint | None
    summary: str
    outcome: str | None


class Note(_Document):
    """What a step tells a person, without waiting."""

    step: str
    text: str


class RecipeDocument(_Document):
    """How a run of a recipe stands."""

    schema_: Literal["redfirst.recipe-result/1"] = Field(default="redfirst.recipe-result/1", alias="schema")
    ok: bool
    run_id: str
    recipe: dict[str, object]
    outcome: Outcome
    reason: Reason
    exit_code: int
    note: str
    start_commit: str
    steps: tuple[StepLine, ...]
    usable: tuple[str, ...]
    partial: tuple[str, ...]
    failed: tuple[str, ...]
    held: tuple[str, ...]
    needs_orchestrator: tuple[str, ...]
    notes: tuple[Note, ...]
    gates: tuple[StepGate, ...]
    output: str | None
    dispatches: int
    spent: str
    run_dir: str
    safe_next_actions: tuple[str, ...]


def recipe_document(ctx: Words) -> RecipeDocument:
    """Return how the run stands now."""
    run, state = ctx.run, ctx.run.state
    outcome, reason = state.outcome or Outcome.CANCELLED, state.reason or Reason.INTERRUPTED
    names = [name for id_ in run.machine.order for name in run.machine.names(state, id_)]
    by = {how: tuple(name for name in names if state.settled.get(name) is how) for how in Checkpoint}
    decisions = run.journal.of(DecisionMade)
    code = exit_code(outcome, reason)
    gates = open_gates(run)
    facts = run.facts.model_dump() if run.facts is not None else {}
    return RecipeDocument(
        ok=code == 0,
        run_id=run.info.run_id,
        recipe=facts,
        outcome=outcome,
        reason=reason,
        exit_code=code,
        note=decisions[-1].data.note if decisions and outcome is not Outcome.COMPLETED else "",
        start_commit=run.info.start_commit,
        steps=tuple(
            StepLine(
                step=name,
                checkpoint=state.settled.get(name),
                summary=ctx.words_of(name).strip().partition("\n")[0][:200],
                outcome=f"steps/{name}/outcome.json" if name in state.settled else None,
            )
            for name in names
        ),
        usable=tuple(name for name in names if (how := state.settled.get(name)) is not None and how.is_usable),
        partial=by[Checkpoint.PARTIAL],
        failed=by[Checkpoint.FAILED],
        held=by[Checkpoint.HELD],
        needs_orchestrator=by[Checkpoint.NEEDS_ORCHESTRATOR],
        notes=tuple(
            Note(step=name, text=ctx.words_of(name).strip())
            for name in names
            if run.machine.step_of(name).gate == "note" and name in state.settled
        ),
        gates=gates,
        output=None if run.recipe.output is None else output_of(ctx),
        dispatches=state.dispatches,
        spent=str(spent(run)),
        run_dir=str(run.folder),
        safe_next_actions=_actions(run, gates),
    )


def _actions(run: RecipeRun, gates: tuple[StepGate, ...]) -> tuple[str, ...]:
    if run.state.has_ended:
        return ()
    abandon = f"redfirst abandon {run.info.run_id}"
    if run.state.reason is Reason.APPROVAL:
        return (*(one.command for gate in gates for one in gate.answers), abandon)
    return (f"redfirst resume {run.info.run_id}", abandon)


def counted_checkpoints(document: RecipeDocument) -> str:
    """Return how many steps stand how, in words."""
    counts = Counter(line.checkpoint.value if line.checkpoint else "not begun" for line in document.steps)
    return ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items())
