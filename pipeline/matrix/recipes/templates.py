"""Fills placeholders in the texts of a recipe: `{{inputs.topic}}`, `{{steps.look.output}}`, `{{item}}`. No logic.

A value is put in as it is and is never read again, so a value with braces stays text. `{{{{` is two braces.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pipeline.matrix.scheduling.patterns import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import JsonValue

    from pipeline.matrix.recipes.model import Step

_PLACEHOLDER: Final = re.compile(r"\{\{\{\{|\{\{(.*?)\}\}|\{\{", re.DOTALL)
_WORDS: Final = re.compile(
    r"inputs\.(?P<input>[\w-]+)|steps\.(?P<step>[\w-]+)\.(?P<what>output|payload)(?P<path>(?:\.[\w-]+)*)"
    r"|item(?P<below>(?:\.[\w-]+)*)"
)


@dataclass(frozen=True)
class Reference:
    """What a placeholder stands for.

    Args:
        text: As it is written, without braces.
        input: The name of an input, if it is one.
        step: The id of a step, if it is what that left.
        what: `output` or `payload` of the step.
        path: The keys below the payload, or below the item.
    """

    text: str
    input: str | None = None
    step: str | None = None
    what: str | None = None
    path: tuple[str, ...] = ()

    @property
    def is_item(self) -> bool:
        """Return whether it is the item of a `for_each`."""
        return self.input is None and self.step is None


def references(text: str) -> tuple[tuple[Reference, ...], tuple[str, ...]]:
    """Return the placeholders of a text, and those that are none that is known."""
    if "{{" not in text:
        return (), ()
    known: list[Reference] = []
    unknown: list[str] = []
    for match in _PLACEHOLDER.finditer(text):
        if match[0] == "{{{{":
            continue
        reference = None if match[1] is None else _reference(match[1].strip())
        if reference is None:
            unknown.append((match[1] or "").strip())
        else:
            known.append(reference)
    return tuple(known), tuple(unknown)


def _reference(words: str) -> Reference | None:
    match = _WORDS.fullmatch(words)
    if match is None:
        return None
    below = match["path"] if match["step"] else match["below"]
    path = tuple((below or "").split(".")[1:])
    return Reference(words, match["input"], match["step"], match["what"], path)


def only_reference(text: str) -> Reference | None:
    """Return the placeholder that is the whole text."""
    known, unknown = references(text)
    is_whole = re.fullmatch(r"\{\{[^{}]*\}\}", text.strip()) is not None
    return known[0] if is_whole and known and not unknown else None


def filled(text: str, value_of: Callable[[Reference], str]) -> str:
    """Return the text with the value of each placeholder in its place; of a sound recipe all are known."""
    return _replaced(text, value_of, "{{")


def rewritten(text: str, words_for: Callable[[Reference], str]) -> str:
    """Return the text with other words, which may hold placeholders, for each placeholder; braces stay as written."""
    return _replaced(text, words_for, "{{{{")


def plain_changed(text: str, change: Callable[[str], str]) -> str:
    """Return the text with *change* of each part that is no placeholder; what that returns may hold some.

    A part is handed over as it reads: four braces are two.
    """
    said, plain, end = "", "", 0
    for match in _PLACEHOLDER.finditer(text):
        plain += text[end : match.start()]
        end = match.end()
        if match[0] == "{{{{":
            plain += "{{"
        else:
            said, plain = f"{said}{change(plain)}{match[0]}", ""
    return said + change(plain + text[end:])


def listed(value: str) -> list[str]:
    """Return the items of an input that is a list of ids: what no id has parts them."""
    return re.split(r"[\s,]+", value.strip(" ,\n\t")) if value.strip(" ,\n\t") else []


def literal(value: str) -> str:
    """Return how a value is written so that nothing in it is a placeholder."""
    return value.replace("{{", "{{{{")


def texts_changed(at: str, value: object, change: Callable[[str, str], str]) -> object:
    """Return a value of lists and mappings with *change* of each text in it, by its place below *at* and its words."""
    if isinstance(value, str):
        return change(at, value)
    if isinstance(value, dict):
        known = cast("dict[str, object]", value)
        return {key: texts_changed(f"{at}/{key}", one, change) for key, one in known.items()}
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return [texts_changed(f"{at}/{number}", one, change) for number, one in enumerate(items)]
    return value


def _replaced(text: str, value_of: Callable[[Reference], str], braces: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[0] == "{{{{":
            return braces
        reference = None if match[1] is None else _reference(match[1].strip())
        return match[0] if reference is None else value_of(reference)

    return _PLACEHOLDER.sub(value, text) if "{{" in text else text


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
