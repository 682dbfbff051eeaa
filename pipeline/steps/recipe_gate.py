"""Lets a person answer at a step of a recipe, or tells them something, and leaves the answer for later steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.recipes.step_table import StepEvent, StepSignal

if TYPE_CHECKING:
    from pipeline.steps.recipe_context import RecipeContext


async def run(ctx: RecipeContext) -> StepEvent:
    """Tell what the note says; it waits for nobody."""
    ctx.write(f"steps/{ctx.lane_name}/{ctx.lane_name}.md", f"{ctx.with_values(ctx.step.prompt or '').strip()}\n")
    return StepEvent(signal=StepSignal.OK)


def approved(ctx: RecipeContext, answer: str) -> StepEvent:
    """Return the event of a gate that a person has let the run through; *answer* is what they gave, if anything."""
    name = ctx.lane_name
    words = ctx.write(f"steps/{name}/{name}.md", f"{answer.strip() or 'Approved.'}\n")
    return StepEvent(signal=StepSignal.APPROVED, lane=name, evidence=(words,))


def rejected(ctx: RecipeContext, feedback: str, number: int) -> StepEvent:
    """Return the event of a gate at which a person has said no."""
    name = ctx.lane_name
    told = f"# Feedback of a person, at the gate {name}\n\n{feedback.strip()}\n"
    words = ctx.write(f"feedback-{number}.md", told)
    ctx.write(f"steps/{name}/{name}.md", f"Rejected.\n\n{feedback.strip()}\n")
    return StepEvent(signal=StepSignal.REJECTED, lane=name, note=feedback.strip().splitlines()[0], evidence=(words,))
