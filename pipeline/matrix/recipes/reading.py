"""Reads a recipe from its text: YAML within limits, then types, each fault with its place."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, cast

from pydantic import BaseModel, ValidationError

from pipeline.judge.reports.decode import pointer_of
from pipeline.judge.reports.schema_errors import explain, keys_at, place_of
from pipeline.matrix.recipes.model import LARGEST_STEPS, Extension, Recipe
from pipeline.yaml_text import Document, YamlError, core, read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Args:
        rule: A stable word for it.
        pointer: Where, as a JSON pointer into the file.
        message: A sentence.
        accepted: The words that are accepted there, where these are few.
        hint: The nearest of them, for a word that looks misspelt.
        line: Where in the file, from 1; 0 where nobody has looked yet.
        column: Where in the line, from 1.
        path: The file, where it is another one than the one that was looked at.
    """

    rule: str
    pointer: str
    message: str
    accepted: tuple[str, ...] = ()
    hint: str = ""
    line: int = 0
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        hint = f"; did you mean {self.hint!r}?" if self.hint else ""
        accepted = f" (accepted: {', '.join(self.accepted)})" if self.accepted and not self.hint else ""
        place = f"{self.line}:{self.column}: " if self.line else ""
        place = f"{self.path}:{place}" if self.path else place
        return f"{place}{self.message}{hint}{accepted} [{self.rule}]"


def misspelt(rule: str, pointer: str, message: str, word: str, accepted: Iterable[str]) -> Problem:
    """Return the problem of a word that is none of the accepted ones."""
    words = tuple(accepted)
    near = get_close_matches(word, words, n=1)
    return Problem(rule, pointer, message, words, near[0] if near else "")


LARGEST: Final = 1 << 20
"""Characters of a file."""
_MOST_VALUES: Final = 100_000
_TEXTS: Final = frozenset({"default", "description", "prompt", "output", "publish", "tests", "run", "id", "name"})
"""Keys whose scalars are texts, whatever they look like: a default of 3 is the text "3"."""


@dataclass(frozen=True)
class Read:
    """What a text says: a file that is well typed, or what is wrong with it; and where everything stands."""

    file: Recipe | Extension | None
    problems: tuple[Problem, ...]
    document: Document | None = None

    def placed(self, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """Return problems with line and column, in the order of the file; those of other files behind them."""
        if self.document is None:
            return problems
        found = [problem if problem.path else self._placed(problem, self.document) for problem in problems]
        return tuple(sorted(found, key=lambda problem: (problem.path, problem.line, problem.column)))

    @staticmethod
    def _placed(problem: Problem, document: Document) -> Problem:
        line, column = document.place(problem.pointer)
        return replace(problem, line=line, column=column)


def read_recipe(text: str) -> Read:
    """Return the file that *text* says, or everything that is wrong with its form."""
    if len(text) > LARGEST:
        return Read(None, (Problem("too_large", "", f"the file has more than {LARGEST} characters", line=1, column=1),))
    try:
        document = read(text, scalar=_scalar, most=_MOST_VALUES)
    except YamlError as error:
        return Read(None, (Problem("not_yaml", "", error.message, line=error.line, column=error.column),))
    if document.mapping is None:
        return Read(None, (Problem("wrong_type", "", "a recipe is a list of `key: value` lines", line=1, column=1),))
    for key in ("steps", "edits"):
        items = document.mapping.get(key)
        if isinstance(items, list) and len(cast("list[object]", items)) > LARGEST_STEPS:
            message = f"there are more than {LARGEST_STEPS} {key}"
            return _broken(document, (Problem("too_many_steps", f"/{key}", message),))
    file = _typed(document.mapping)
    if isinstance(file, Recipe | Extension):
        return Read(file, (), document)
    return _broken(document, tuple(file))


def without_faults(found: Read) -> Recipe | Extension | None:
    """Return a file of what is well typed, so that all faults are told at once; None where too little is."""
    if found.document is None or found.document.mapping is None:
        return None
    value: object = found.document.mapping
    for problem in found.problems:
        value = _left_out(value, problem.pointer.split("/")[1:])
    file = _typed(cast("dict[str, object]", value))
    return file if isinstance(file, Recipe | Extension) else None


def _left_out(value: object, parts: list[str]) -> object:
    """Return a value without what lies at a place, or as it is, where there is nothing."""
    if not parts:
        return value
    name = parts[0].replace("~1", "/").replace("~0", "~")
    if isinstance(value, dict):
        known = cast("dict[str, object]", value)
        if len(parts) == 1:
            return {key: one for key, one in known.items() if key != name}
        return {key: _left_out(one, parts[1:]) if key == name else one for key, one in known.items()}
    items = cast("list[object]", value) if isinstance(value, list) and len(parts) > 1 else None
    if items is None:
        return cast("object", value)
    return [_left_out(one, parts[1:]) if str(at) == name else one for at, one in enumerate(items)]


def _typed(value: dict[str, object]) -> Recipe | Extension | list[Problem]:
    model = Extension if "extends" in value else Recipe
    try:
        return model.model_validate_json(json.dumps(value))
    except ValidationError as error:
        return faults(error, value, model)


def _broken(document: Document, problems: tuple[Problem, ...]) -> Read:
    found = Read(None, (), document)
    return Read(None, found.placed(problems), document)


def _scalar(text: str, key: str) -> object:
    return text if key in _TEXTS else core(text, key)


def faults(error: ValidationError, value: dict[str, object], model: type[BaseModel]) -> list[Problem]:
    """Return what is wrong with a value that is none of the model, each with what is accepted there."""
    schema = model.model_json_schema()
    found = {pointer_of(place_of(fault, value)): fault for fault in error.errors()}
    texts = {fault.pointer: fault.text for fault in explain(error.errors(), value, schema)}
    return [
        _fault(pointer, fault, texts[pointer], value, schema)
        for pointer, fault in found.items()
        # a list whose every entry is wrong is called empty, too
        if fault["type"] != "too_short" or not any(other.startswith(f"{pointer}/") for other in found)
    ]


def _fault(
    pointer: str, fault: ErrorDetails, text: str, value: dict[str, object], schema: dict[str, object]
) -> Problem:
    name = next((part for part in reversed(fault["loc"]) if isinstance(part, str)), "")
    match fault["type"]:
        case "extra_forbidden":
            keys = keys_at(place_of(fault, value)[:-1], value, schema)
            return misspelt("unknown_key", pointer, f"the key {name!r} is unknown", name, keys)
        case "missing":
            return Problem("missing_key", pointer, f"the key {name!r} is required here")
        case "literal_error":
            words = [
                word.strip("'\" ")
                for word in str(fault.get("ctx", {}).get("expected", "")).replace(" or ", ", ").split(",")
            ]
            rule = "unknown_role" if pointer.endswith("/agent") or "/review" in pointer else "unknown_word"
            said = fault["input"] if isinstance(fault["input"], str) else json.dumps(fault["input"], default=str)
            return misspelt(rule, pointer, f"{said!r} is not known as {name}", str(said), words)
        case "string_pattern_mismatch":
            what = f"{fault['input']!r} is no name: small letters, digits and - only, and a letter first"
            return Problem("bad_id", pointer, what)
        case _:
            return Problem("wrong_type", pointer, text)
