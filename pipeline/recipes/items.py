"""Computes what the items of a list come to: what each step of a `for_each` may change. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipeline.recipes.templates import filled, references
from pipeline.scheduling.patterns import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from pipeline.recipes.model import Step
    from pipeline.recipes.templates import Reference

Area = tuple[str, ...]


def below(value: JsonValue, keys: tuple[str, ...]) -> JsonValue:
    """Return what lies below keys in a value, None where there is nothing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def areas_by_item(step: Step, values: Mapping[str, str], items: Iterable[JsonValue]) -> tuple[Area, ...]:
    """Return what the step of each item may change, nothing where that does not depend on the item."""
    if not any(one.is_item for text in step.write_set or () for one in references(text)[0]):
        return ()
    return tuple(area_texts(step, values, item) for item in items)


def area_texts(step: Step, values: Mapping[str, str], item: JsonValue) -> Area:
    """Return the patterns of a step, with the values of inputs and with its item."""

    def value(one: Reference) -> str:
        if one.input is not None:
            return values[one.input]
        found = below(item, one.path)
        return found if isinstance(found, str) else json.dumps(found)

    return tuple(filled(text, value) for text in ((EVERYTHING,) if step.write_set is None else step.write_set))
