"""Checks what placeholders and patterns of a recipe name: it must be there, and be known when it is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.recipes.problems import Problem, misspelt
from pipeline.recipes.templates import Reference, only_reference, references
from pipeline.scheduling import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.recipes.model import Step

AREAS: Final = ("read_set", "write_set")
_TEXTS: Final = ("prompt", "run", "tests", "publish", "file_issues")


@dataclass(frozen=True)
class Scope:
    """What may be named at a place.

    Args:
        inputs: The names of the inputs.
        steps: The ids of all steps.
        above: The ids of those that have ended by then.
        has_item: Whether the step is one of a `for_each`.
    """

    inputs: tuple[str, ...]
    steps: tuple[str, ...]
    above: frozenset[str]
    has_item: bool = False


def input_names(step: Step) -> tuple[str, ...]:
    """Return the inputs that a step names anywhere."""
    texts = [text for key in (*_TEXTS, *AREAS) for _, text in _said("", getattr(step, key))]
    return tuple(dict.fromkeys(one.input for text in texts for one in references(text)[0] if one.input is not None))


def of_step(at: str, step: Step, scope: Scope) -> Iterator[Problem]:
    """Yield what is wrong with the placeholders and patterns of a step."""
    for key in _TEXTS:
        for place, text in _said(f"{at}/{key}", getattr(step, key)):
            yield from of_text(place, text, scope)
    for key in AREAS:
        for place, text in _said(f"{at}/{key}", getattr(step, key)):
            yield from _of_area(place, text, scope)
    for place, text in _said(f"{at}/file_issues", step.file_issues):
        yield from _payload_alone(place, text)
    if step.for_each is not None:
        yield from of_text(f"{at}/for_each", step.for_each, Scope(scope.inputs, scope.steps, scope.above))
        if only_reference(step.for_each) is None:
            yield Problem("wrong_type", f"{at}/for_each", "`for_each` is one placeholder: a list")


def _payload_alone(at: str, text: str) -> Iterator[Problem]:
    one = only_reference(text)
    if one is None or one.step is None or one.what != "payload":
        message = "`file_issues` is one placeholder, or a list of them: payloads of other steps"
        yield Problem("wrong_type", at, message)


def of_text(at: str, text: str, scope: Scope) -> Iterator[Problem]:
    """Yield what is wrong with the placeholders of a text."""
    found, unknown = references(text)
    for words in unknown:
        message = f"{{{{{words}}}}} is no placeholder; these are inputs.NAME, steps.ID.output, steps.ID.payload, item"
        yield Problem("unknown_reference", at, message)
    for one in found:
        yield from _named(at, one, scope)


def _of_area(at: str, text: str, scope: Scope) -> Iterator[Problem]:
    found, unknown = references(text)
    if found:
        yield from of_text(at, "".join(f"{{{{{one.text}}}}}" for one in found if one.step is None), scope)
    if unknown or any(one.step is not None for one in found):
        message = "a pattern may hold inputs and {{item}} only: it is compared before any step has run"
        yield Problem("unknown_reference", at, message)
        return
    why = patterns.fault(re.sub(r"\{\{.*?\}\}", "x", text) if found else text)
    if why is not None:
        yield Problem("bad_pattern", at, f"{text!r}: {why}")


def _named(at: str, one: Reference, scope: Scope) -> Iterator[Problem]:
    if one.input is not None and one.input not in scope.inputs:
        yield misspelt("unknown_reference", at, f"there is no input {one.input!r}", one.input, scope.inputs)
    elif one.step is not None and one.step not in scope.steps:
        yield misspelt("unknown_reference", at, f"there is no step {one.step!r}", one.step, scope.steps)
    elif one.step is not None and one.step not in scope.above:
        message = f"the step {one.step!r} need not have ended here: put it into `depends_on`"
        yield Problem("not_an_ancestor", at, message)
    elif one.is_item and not scope.has_item:
        yield Problem("unknown_reference", at, "{{item}} is known only where the step has a `for_each`")


def _said(at: str, value: str | tuple[str, ...] | None) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield at, value
    else:
        yield from ((f"{at}/{number}", text) for number, text in enumerate(value or ()))
