"""Writes recipes as files, and turns what a run was asked into what the next one is given. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from pipeline.characters import visible
from pipeline.matrix.recipes.model import SLUG, Input, Recipe, Step
from pipeline.matrix.recipes.reading import Problem
from pipeline.matrix.recipes.rules import AREAS, TEXTS
from pipeline.matrix.recipes.templates import Reference, literal, plain_changed, rewritten
from pipeline.yaml_text import core, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_WIDTH: Final = 120
_INLINE: Final = 60
"""Characters of a list that stands in one line."""


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they read, and short lists in one line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  (PyYAML's)
        """Return that everything is written out: a recipe has no anchors."""
        return True


def _text(_dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = visible(text, keep="\n") == text and core(text, "") == text
    style = '"' if not is_plain else "|" if "\n" in text else None
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=style)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    is_short = all(isinstance(one, str) for one in items) and sum(len(one) + 2 for one in items) <= _INLINE
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def recipe_text(recipe: Recipe) -> str:
    """Return the file of a whole recipe, without what is said by leaving it out."""
    return document_text(recipe.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def document_text(document: Mapping[str, object]) -> str:
    """Return the file that says *document*, its keys in their order."""
    return written(document, _Dumper, _WIDTH)


class Marker:
    """Puts the placeholder of an input wherever its value stands in a text, and knows where that was.

    Args:
        wanted: The value of each input, by name.
    """

    def __init__(self, wanted: Mapping[str, str]) -> None:
        self.places: dict[str, list[str]] = {name: [] for name in wanted}
        """Where each value was found."""
        self._wanted = wanted
        self._within: dict[str, list[str]] = {name: [] for name in wanted}
        self._names = {value: name for name, value in wanted.items()}
        self._pattern = re.compile("|".join(map(_bounded, self._names)) or r"(?!)")

    def stands_in(self, text: str) -> bool:
        """Return whether a value stands in a text that has no placeholders."""
        return self._pattern.search(text) is not None

    def text(self, place: str, text: str) -> str:
        """Return a text of a recipe with placeholders for the values."""
        return plain_changed(text, lambda plain: self._marked(place, plain))

    def problems(self) -> Iterator[Problem]:
        """Yield what keeps an input from meaning one thing: a value that is nowhere, or that is a part of a word."""
        for name, value in self._wanted.items():
            if self._within[name]:
                where = ", ".join(dict.fromkeys(self._within[name]))
                message = f"{name}={value}: it is also a part of a longer word in {where}: give more of the words"
                yield Problem("input_invalid", "/inputs", message)
            elif not self.places[name]:
                yield Problem("input_invalid", "/inputs", f"{name}={value}: it is in no prompt and no input of the run")

    def _marked(self, place: str, plain: str) -> str:
        said, end = "", 0
        between: list[str] = []
        for match in self._pattern.finditer(plain):
            name = self._names[match[0]]
            self.places[name].append(place)
            between.append(plain[end : match.start()])
            said += f"{literal(between[-1])}{{{{inputs.{name}}}}}"
            end = match.end()
        between.append(plain[end:])
        for value, name in self._names.items():
            if any(value in part for part in between):
                self._within[name].append(place)
        return said + literal(between[-1])


def unclear(wanted: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what is wrong with inputs before any text is looked at."""
    for name, value in wanted.items():
        if re.fullmatch(SLUG, name) is None:
            message = f"{name!r} is no name of an input: small letters, digits and - only, and a letter first"
            yield Problem("input_invalid", "/inputs", message)
        if not value.strip():
            yield Problem("input_invalid", "/inputs", f"the input {name!r} has no value that could be found")
        for other, longer in wanted.items():
            if other != name and value and value in longer:
                message = f"{name}={value}: it is in the value of {other!r}, too, so which is meant cannot be told"
                yield Problem("input_invalid", "/inputs", message)


def with_inputs(
    recipe: Recipe, values: Mapping[str, str], wanted: Mapping[str, str]
) -> tuple[Recipe, Mapping[str, list[str]], tuple[Problem, ...]]:
    """Return a recipe with inputs for what stood in its texts, where that was, and what is wrong.

    An input of the run whose value has such a value in it is put in where it is named.

    Args:
        recipe: The whole recipe of a run.
        values: The inputs of that run.
        wanted: The value that shall become an input, by the name of the input.
    """
    problems = list(unclear(wanted))
    there = {one.name: one for one in recipe.inputs}
    for name in there.keys() & wanted.keys():
        if values.get(name) != wanted[name]:
            message = f"the input {name!r} was {values.get(name)!r} in that run, and not {wanted[name]!r}"
            problems.append(Problem("input_invalid", "/inputs", message))
    if problems:
        return recipe, {}, tuple(problems)
    marker = Marker(wanted)
    given = {name: values[name] for name in there if name not in wanted and marker.stands_in(values[name])}

    def words(one: Reference) -> str:
        return literal(given[one.input]) if one.input in given else f"{{{{{one.text}}}}}"

    def of_step(step: Step) -> Step:
        return _texts_changed(step, lambda text: marker.text(f"step {step.id}", rewritten(text, words)))

    steps = tuple(map(of_step, recipe.steps))
    output = None if recipe.output is None else marker.text("output", rewritten(recipe.output, words))
    for name in there.keys() & wanted.keys():
        marker.places[name].append(f"input {name}")
    areas = [text for step in steps for key in AREAS for text in getattr(step, key) or ()]
    new = tuple(
        Input(
            name=name, required=True, type="path" if any(f"{{{{inputs.{name}}}}}" in one for one in areas) else "text"
        )
        for name in wanted
        if name not in there
    )
    kept = tuple(one for one in recipe.inputs if one.name not in given)
    found = recipe.model_copy(update={"inputs": (*kept, *new), "steps": steps, "output": output})
    return found, marker.places, tuple(marker.problems())


def _texts_changed(step: Step, change: Callable[[str], str]) -> Step:
    """Return a step with *change* of each of its texts that may hold placeholders."""
    found: dict[str, Any] = {}
    for key in (*TEXTS, "for_each", *AREAS):
        value = getattr(step, key)
        if value is not None:
            found[key] = change(value) if isinstance(value, str) else tuple(map(change, value))
    return step.model_copy(update=found)


_WORD: Final = r"\w"


def _bounded(value: str) -> str:
    before = rf"(?<!{_WORD})" if re.match(_WORD, value) else ""
    after = rf"(?!{_WORD})" if re.search(rf"{_WORD}$", value) else ""
    return f"{before}{re.escape(value)}{after}"
