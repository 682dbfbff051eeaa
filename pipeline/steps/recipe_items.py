"""Counts what the list of a `for_each` comes to: how many steps, and what each of them may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.recipes.templates import area_texts, areas_by_item, below
from pipeline.scheduling.patterns import fault, parsed

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pipeline.recipes.model import Step
    from pipeline.scheduling.patterns import Pattern
    from pipeline.steps.recipe_context import RecipeContext


def counts_of(ctx: RecipeContext, payload: JsonValue) -> dict[str, int]:
    """Return how many steps each `for_each` over the payload of this step becomes."""
    return {step.id: len(items) for step, items in _lists(ctx, payload)}


def areas_of(ctx: RecipeContext, payload: JsonValue) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return what each of these steps may change, where that depends on its item."""
    found = {step.id: areas_by_item(step, ctx.run.inputs, items) for step, items in _lists(ctx, payload)}
    return {step: areas for step, areas in found.items() if areas}


def area_faults(ctx: RecipeContext, payload: JsonValue) -> list[str]:
    """Return what is wrong with the patterns that the items of a payload make."""
    areas = areas_of(ctx, payload)
    texts = [(step, text) for step, area in areas.items() for one in area for text in one]
    return [f"{text!r}, which {step} may change: {why}" for step, text in texts if (why := fault(text)) is not None]


def area_of(ctx: RecipeContext) -> tuple[Pattern, ...]:
    """Return what the step that is given this may change."""
    return tuple(parsed(text) for text in area_texts(ctx.step, ctx.run.inputs, ctx.item()))


def _lists(ctx: RecipeContext, payload: JsonValue) -> list[tuple[Step, list[JsonValue]]]:
    machine = ctx.run.machine
    found = [(machine.steps[id_], below(payload, keys)) for id_, keys in machine.lists_of(ctx.step.id)]
    return [(step, items) for step, items in found if isinstance(items, list)]
