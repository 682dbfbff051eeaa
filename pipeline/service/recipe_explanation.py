"""Explains a recipe's run: each decision with its row and what followed, and why each step stands as it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.engine.machine import TRUNK, action_value
from pipeline.outcomes import Outcome, Reason
from pipeline.runs.lease import FileLease
from pipeline.runs.recipe_run import RecipeRun
from pipeline.service.recipe_result import why_not_ready

if TYPE_CHECKING:
    from pathlib import Path


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class StepDecision(_Document):
    """One decision: the step, its signal, the row that fired, what was paid, and what followed of it."""

    number: int
    seq: int
    at: str
    step: str
    signal: str
    note: str
    row: str
    action: Mapping[str, str | None]
    paid: Mapping[str, int]
    exhausted: tuple[str, ...]
    then: tuple[str, ...]
    evidence: tuple[str, ...]


class StepStanding(_Document):
    """A step that is over and not ready, and why."""

    step: str
    checkpoint: str
    why: str


class RecipeExplainDocument(_Document):
    """What `explain --json` prints of a recipe's run: the decisions, oldest first."""

    schema_: Literal["redfirst.recipe-explain/1"] = Field(default="redfirst.recipe-explain/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    outcome: Outcome | None
    reason: Reason | None
    live: bool
    steps: tuple[StepStanding, ...]
    decisions: tuple[StepDecision, ...]


def explain_steps(folder: Path, *, last: bool = False) -> RecipeExplainDocument:
    """Return the decisions of a run, all or only the last one, and the steps that are not ready.

    Raises:
        UserError: the run is damaged.
    """
    run = RecipeRun.load(folder, driving=False)
    decisions = [
        StepDecision(
            number=number,
            seq=one.line.seq,
            at=one.line.at,
            step="" if one.event.lane == TRUNK else one.event.lane,
            signal=str(one.event.signal),
            note=one.event.note,
            row=one.decision.row,
            action=action_value(one.decision.action),
            paid=one.decision.counters,
            exhausted=one.decision.exhausted,
            then=tuple(_followed(effect.kind, effect.data) for effect in one.decision.effects),
            evidence=one.event.evidence,
        )
        for number, one in enumerate(run.history, 1)
    ]
    return RecipeExplainDocument(
        run_id=run.info.run_id,
        outcome=run.state.outcome,
        reason=run.state.reason,
        live=FileLease.is_held(folder),
        steps=tuple(
            StepStanding(step=name, checkpoint=how.value, why=why)
            for name, how in run.state.settled.items()
            if (why := why_not_ready(run, name))
        ),
        decisions=tuple(decisions[-1:] if last else decisions),
    )


def _followed(kind: str, data: Mapping[str, str]) -> str:
    """Return an effect in words."""
    words = kind.removeprefix("step_").removeprefix("run_").replace("_", " ")
    step = f"{data['step']} " if "step" in data else "the run is "
    more = data.get("checkpoint") or data.get("reason") or ""
    return f"{step}{words}{f': {more}' if more else ''}"
