"""Hands over from one role to the next: findings that did not block, and work that was sent back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engine.events import DecisionMade
from pipeline.routing.vocabulary import Step
from pipeline.steps.asking.reviews import remarks
from pipeline.steps.evidence.records import read_evidence

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.steps.context import Context

_CUT_AGAIN: Final = frozenset({"diagnose/SPEC", "diagnose/SPLIT_NEEDED"})


def handed_on(ctx: Context, *, judged: bool = False) -> dict[str, list[Path]]:
    """Return the artifact with what @check remarked on plan and split, and with `judged` on the task's tests, too."""
    found = remarks(ctx, Step.REVIEW_PLAN, Step.REVIEW_SPLIT)
    overruled = _overruling(ctx)
    if overruled:
        found = {"remarks": [*found.get("remarks", []), *map(ctx.path, overruled)]}
    evidence = read_evidence(ctx, ctx.state.task.id) if judged else None
    if evidence is None or evidence.judged_by is None:
        return found
    return {"remarks": [*found.get("remarks", []), ctx.path(evidence.judged_by)]}


def _overruling(ctx: Context) -> list[str]:
    """Return the diagnoses that had the tasks of the present plan cut again: plan.md still says what they refute."""
    lines = ctx.run.journal.of(DecisionMade)
    planned = max((number for number, line in enumerate(lines) if line.data.row == "plan/DRAFTED"), default=0)
    cut = [line for line in lines[planned:] if line.data.row in _CUT_AGAIN]
    return [name for line in cut for name in line.data.evidence[:1] if name.endswith(".md")]


def came_back_tree(ctx: Context) -> str | None:
    """Return what this step handed in when it was asked last, None where it begins or where that was nothing.

    The tree is the one in question only while the step itself is: another one has had its turn since otherwise.
    """
    line = ctx.arrival()
    step = ctx.lane.step
    by = line.data.step if line is not None else ""
    asked_before = by == step.value or (by == Step.DIAGNOSE.value and ctx.lane.origin is step)
    return ctx.lane.in_question if asked_before else None
