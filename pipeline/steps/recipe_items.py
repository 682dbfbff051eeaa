"""What the list of a `for_each` comes to: how many steps, and what each of them may change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipeline.recipes.templates import filled, references
from pipeline.scheduling.patterns import EVERYTHING, fault, parsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from pipeline.recipes.model import Step
    from pipeline.recipes.templates import Reference
    from pipeline.scheduling.patterns import Pattern
    from pipeline.steps.recipe_context import RecipeContext


def below(value: JsonValue, keys: tuple[str, ...]) -> JsonValue:
    """Return what lies below keys in a value, None where there is nothing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def counts_of(ctx: RecipeContext, payload: JsonValue) -> dict[str, int]:
    """Return how many steps each `for_each` over the payload of this step becomes."""
    return {step.id: len(items) for step, items in _lists(ctx, payload)}


def areas_of(ctx: RecipeContext, payload: JsonValue) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return what each of these steps may change, where that depends on its item."""
    return {
        step.id: tuple(_texts(step, ctx.run.info.inputs, item) for item in items)
        for step, items in _lists(ctx, payload)
        if _names_item(step)
    }


def area_faults(ctx: RecipeContext, payload: JsonValue) -> list[str]:
    """Return what is wrong with the patterns that the items of a payload make."""
    areas = areas_of(ctx, payload)
    texts = [(step, text) for step, area in areas.items() for one in area for text in one]
    return [f"{text!r}, which {step} may change: {why}" for step, text in texts if (why := fault(text)) is not None]


def area_of(ctx: RecipeContext) -> tuple[Pattern, ...]:
    """Return what the step that is given this may change."""
    return tuple(parsed(text) for text in _texts(ctx.step, ctx.run.info.inputs, ctx.item()))


def _lists(ctx: RecipeContext, payload: JsonValue) -> list[tuple[Step, list[JsonValue]]]:
    machine = ctx.run.machine
    found = [(machine.steps[id_], below(payload, keys)) for id_, keys in machine.lists_of(ctx.step.id)]
    return [(step, items) for step, items in found if isinstance(items, list)]


def _names_item(step: Step) -> bool:
    return any(one.is_item for text in step.write_set or () for one in references(text)[0])


def _texts(step: Step, inputs: Mapping[str, str], item: JsonValue) -> tuple[str, ...]:
    def value(one: Reference) -> str:
        if one.input is not None:
            return inputs[one.input]
        found = below(item, one.path)
        return found if isinstance(found, str) else json.dumps(found)

    return tuple(filled(text, value) for text in ((EVERYTHING,) if step.write_set is None else step.write_set))
