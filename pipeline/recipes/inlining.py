"""Puts the steps of other recipes in the place of the steps that name them. Pure.

A step `look` of a recipe that stands for the step `sub` is called `sub--look`. What waited for `sub` waits for all that
nobody waits for in it; its inputs are the words that `with` gives, placeholders and all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.recipes.overlay import Place
from pipeline.recipes.problems import Problem, misspelt
from pipeline.recipes.templates import Reference, literal, only_reference, rewritten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipeline.recipes.model import Recipe, Step

_TEXTS: Final = ("prompt", "run", "tests", "publish", "file_issues", "for_each", "read_set", "write_set")


class _NoOutputError(LookupError):
    """A step names what the recipe in that place does not give."""


def with_parts(recipe: Recipe, parts: Mapping[str, Recipe]) -> tuple[Recipe, tuple[Place, ...], tuple[Problem, ...]]:
    """Return *recipe* with the steps of *parts* in the place of those that name them, and where each comes from.

    Args:
        recipe: A recipe whose own steps are sound.
        parts: What each step of the kind `recipe` stands for, by the id of that step; sound, with all steps put in.
    """
    problems = tuple(problem for number, step in enumerate(recipe.steps) for problem in _misfit(number, step, parts))
    if problems:
        return recipe, tuple(Place(f"/steps/{number}") for number in range(len(recipe.steps))), problems
    ends = {step.id: _ends(step, parts) for step in recipe.steps}
    words = _outer(recipe, parts)
    steps: list[Step] = []
    places: list[Place] = []
    found: list[Problem] = []
    for number, step in enumerate(recipe.steps):
        at = f"/steps/{number}"
        part = parts.get(step.id)
        put_in = [step] if part is None else _inside(step, part)
        for one in put_in:
            try:
                steps.append(_rewired(one, ends, words))
            except _NoOutputError as error:
                found.append(Problem("unknown_reference", at, str(error)))
            places.append(Place(at) if part is None else Place(at, whole=False, step=one.id))
    output = recipe.output
    try:
        output = None if output is None else rewritten(output, words)
    except _NoOutputError as error:
        found.append(Problem("unknown_reference", "/output", str(error)))
    if found:
        return recipe, tuple(Place(f"/steps/{number}") for number in range(len(recipe.steps))), tuple(found)
    return recipe.model_copy(update={"steps": tuple(steps), "output": output}), tuple(places), ()


def _misfit(number: int, step: Step, parts: Mapping[str, Recipe]) -> Iterator[Problem]:
    """Yield what is wrong with how a step calls the recipe that it names."""
    part = parts.get(step.id)
    if part is None:
        return
    at, given = f"/steps/{number}", step.with_ or {}
    if any(one.phase is not None for one in part.steps):
        message = f"{step.recipe!r} has phases of an issue: such a recipe is extended, not put into another"
        yield Problem("phase_order", f"{at}/recipe", message)
    if any(one.type == "change" for one in part.inputs):
        message = f"{step.recipe!r} is about a change: such a recipe is extended, not put into another"
        yield Problem("wrong_type", f"{at}/recipe", message)
    names = [one.name for one in part.inputs]
    for name in given:
        if name not in names:
            yield misspelt("input_invalid", f"{at}/with/{name}", f"{step.recipe!r} has no input {name!r}", name, names)
    for one in part.inputs:
        if one.required and one.name not in given:
            message = f"{step.recipe!r} requires the input {one.name!r}: with: {{{one.name}: VALUE}}"
            yield Problem("input_invalid", at, message)


def _ends(step: Step, parts: Mapping[str, Recipe]) -> tuple[str, ...]:
    """Return the ids that stand for a step where others wait for it."""
    part = parts.get(step.id)
    if part is None:
        return (step.id,)
    waited_for = {name for one in part.steps for name in one.depends_on}
    return tuple(_id(step, one.id) for one in part.steps if one.id not in waited_for)


def _id(step: Step, inner: str) -> str:
    return f"{step.id}--{inner}"


def _words_of(step: Step, part: Recipe) -> Callable[[Reference], str]:
    """Return what the placeholders of a part say in the place of *step*."""
    values = {one.name: literal(one.default or "") for one in part.inputs} | dict(step.with_ or {})

    def words(one: Reference) -> str:
        if one.input is not None:
            return values[one.input]
        return _reference(one, _id(step, one.step)) if one.step is not None else f"{{{{{one.text}}}}}"

    return words


def _inside(step: Step, part: Recipe) -> list[Step]:
    """Return the steps of a part with their ids and inputs as they are in the place of *step*."""
    words = _words_of(step, part)
    found: list[Step] = []
    for inner in part.steps:
        above = tuple(_id(step, name) for name in inner.depends_on) or step.depends_on
        changed: dict[str, Any] = {"id": _id(step, inner.id), "depends_on": above}
        if not inner.depends_on and step.accepts == "partial":
            changed["accepts"] = step.accepts
        for key in ("apply_from", "back_to"):
            if getattr(inner, key) is not None:
                changed[key] = _id(step, getattr(inner, key))
        if inner.accept is not None and inner.accept.tests is not None:
            changed["accept"] = inner.accept.model_copy(update={"tests": _id(step, inner.accept.tests)})
        found.append(texts_changed(inner, lambda text: rewritten(text, words)).model_copy(update=changed))
    return found


def _rewired(step: Step, ends: Mapping[str, tuple[str, ...]], words: Callable[[Reference], str]) -> Step:
    above = tuple(dict.fromkeys(end for name in step.depends_on for end in ends.get(name, (name,))))
    return texts_changed(step, lambda text: rewritten(text, words)).model_copy(update={"depends_on": above})


def _outer(recipe: Recipe, parts: Mapping[str, Recipe]) -> Callable[[Reference], str]:
    """Return what a placeholder says once the parts are put in: what a part gives is its `output`."""
    outputs = {
        step.id: rewritten(part.output, _words_of(step, part))
        for step in recipe.steps
        if (part := parts.get(step.id)) is not None and part.output is not None
    }

    def words(one: Reference) -> str:
        if one.step is None or one.step not in parts:
            return f"{{{{{one.text}}}}}"
        name = parts[one.step].name
        if one.step not in outputs:
            raise _NoOutputError(f"{{{{{one.text}}}}}: the recipe {name!r} has no `output`")
        if one.what == "output":
            return rewritten(outputs[one.step], words)
        source = only_reference(outputs[one.step])
        if source is None or source.step is None:
            raise _NoOutputError(f"{{{{{one.text}}}}}: the `output` of {name!r} is not that of one step")
        path = "".join(f".{key}" for key in (*source.path, *one.path))
        return words(
            Reference(f"steps.{source.step}.payload{path}", None, source.step, "payload", (*source.path, *one.path))
        )

    return words


def _reference(one: Reference, step: str) -> str:
    return f"{{{{steps.{step}.{one.what}{''.join(f'.{name}' for name in one.path)}}}}}"


def texts_changed(step: Step, change: Callable[[str], str]) -> Step:
    """Return a step with *change* of each of its texts that may hold placeholders."""
    found: dict[str, Any] = {}
    for key in _TEXTS:
        value = getattr(step, key)
        if value is not None:
            found[key] = change(value) if isinstance(value, str) else tuple(map(change, value))
    if step.with_ is not None:
        found["with_"] = {name: change(text) for name, text in step.with_.items()}
    return step.model_copy(update=found)
