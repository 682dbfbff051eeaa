"""Finds everything that is wrong with a recipe at once: its form, what it extends, what the rules say."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import ValidationError

from pipeline.matrix.recipes.model import Edit, Extension, Recipe, Step
from pipeline.matrix.recipes.reading import Problem, faults, misspelt, read_recipe, without_faults
from pipeline.matrix.recipes.rules import problems_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True)
class Source:
    """A recipe as it was found.

    Args:
        name: What it is called there; a name inside that differs is a mistake. Empty for a file that was named itself.
        path: Where it is, as a person finds it; no two recipes have one.
        text: What it says.
    """

    name: str
    path: str
    text: str


class Library(Protocol):
    """Finds recipes by name."""

    def find(self, name: str) -> Source | None:
        """Return the recipe that is called so, also as `builtin:NAME`; None if there is none."""
        ...

    def names(self) -> tuple[str, ...]:
        """Return every name, for a hint."""
        ...


OPERATIONS: Final = ("insert_after", "insert_before", "replace", "remove", "change")
_WITH_STEP: Final = frozenset({"insert_after", "insert_before", "replace"})


@dataclass(frozen=True)
class Place:
    """Where a step comes from in the file that is looked at.

    Args:
        pointer: A place in that file.
        whole: The step itself stands there, with all its keys.
        step: What it is called where it stands, if that is elsewhere.
    """

    pointer: str
    whole: bool = True
    step: str = ""


class _Refused(Exception):  # noqa: N818  (it never leaves this module)
    def __init__(self, *problems: Problem) -> None:
        super().__init__()
        self.problems = problems


def extended(base: Recipe, changes: Extension) -> tuple[Recipe, tuple[Place, ...], tuple[Problem, ...]]:
    """Return *base* with the changes that can be made, where each step comes from, and what is wrong with the others.

    Who waited for a step waits for the one that is put behind it, too.
    """
    steps = list(base.steps)
    places = {step.id: Place("/extends", whole=False, step=f"{step.id} of {changes.extends}") for step in steps}
    problems: list[Problem] = []
    for number, edit in enumerate(changes.edits):
        at = f"/edits/{number}"
        try:
            steps = _edited(steps, edit, at)
        except _Refused as refused:
            problems += refused.problems
            continue
        if edit.step is not None:
            places[edit.step.id] = Place(f"{at}/step")
        elif edit.change is not None:
            places[edit.change] = Place(f"{at}/set")
    names = {one.name for one in changes.inputs}
    found: dict[str, Any] = {
        "name": changes.name,
        "version": changes.version,
        "inputs": (*(one for one in base.inputs if one.name not in names), *changes.inputs),
        "steps": tuple(steps),
    }
    for key in ("description", "max_concurrency", "output"):
        if getattr(changes, key) is not None:
            found[key] = getattr(changes, key)
    return base.model_copy(update=found), tuple(places[step.id] for step in steps), tuple(problems)


def _edited(steps: list[Step], edit: Edit, at: str) -> list[Step]:
    operation, number = _target(steps, edit, at)
    old = steps[number]
    match operation:
        case "insert_after":
            new = _new(edit, at, depends_on=(old.id,))
            behind = [_also_behind(step, old.id, new.id) for step in steps]
            return [*behind[: number + 1], new, *behind[number + 1 :]]
        case "insert_before":
            new = _new(edit, at, depends_on=old.depends_on)
            later = _with(old, depends_on=_once((*old.depends_on, new.id)))
            return [*steps[:number], new, later, *steps[number + 1 :]]
        case "replace":
            new = _new(edit, at, depends_on=old.depends_on)
            if new.id != old.id:
                raise _Refused(Problem("bad_id", f"{at}/step/id", f"what replaces {old.id!r} is called {old.id!r}"))
            return [*steps[:number], new, *steps[number + 1 :]]
        case "remove":
            return [_without(step, old) for step in steps if step.id != old.id]
        case _:
            return [*steps[:number], _changed(old, edit.keys or {}, at), *steps[number + 1 :]]


def _target(steps: list[Step], edit: Edit, at: str) -> tuple[str, int]:
    given = [name for name in OPERATIONS if getattr(edit, name) is not None]
    if not given:
        raise _Refused(Problem("no_kind", at, "this edit does nothing: say what it is", OPERATIONS))
    if len(given) > 1:
        raise _Refused(Problem("two_kinds", at, f"this edit is several things: {', '.join(given)}"))
    operation = given[0]
    needed = {"step"} if operation in _WITH_STEP else {"set"} if operation == "change" else set[str]()
    there = {key for key, value in (("step", edit.step), ("set", edit.keys)) if value is not None}
    lacking = [
        Problem("missing_key", at, f"the key {key!r} is required with {operation!r}") for key in sorted(needed - there)
    ]
    idle = [
        Problem("unknown_key", f"{at}/{key}", f"{key!r} means nothing with {operation!r}") for key in there - needed
    ]
    if lacking or idle:
        raise _Refused(*lacking, *idle)
    name = getattr(edit, operation)
    ids = [step.id for step in steps]
    if name not in ids:
        raise _Refused(misspelt("unknown_step", f"{at}/{operation}", f"there is no step {name!r}", name, ids))
    if edit.step is not None and edit.step.id in ids and operation != "replace":
        raise _Refused(Problem("duplicate_id", f"{at}/step/id", f"{edit.step.id!r} is there twice"))
    return operation, ids.index(name)


def _new(edit: Edit, at: str, *, depends_on: tuple[str, ...]) -> Step:
    if edit.step is None:
        raise _Refused(Problem("missing_key", at, "the key 'step' is required"))
    return edit.step if "depends_on" in edit.step.model_fields_set else _with(edit.step, depends_on=depends_on)


def _changed(step: Step, keys: dict[str, Any], at: str) -> Step:
    said = step.model_dump(mode="json", by_alias=True, exclude_unset=True) | keys
    if keys.get("id", step.id) != step.id:
        raise _Refused(Problem("bad_id", f"{at}/set/id", f"what changes {step.id!r} leaves it its id"))
    said = {key: value for key, value in said.items() if value is not None}
    try:
        return Step.model_validate_json(json.dumps(said))
    except ValidationError as error:
        found = faults(error, said, Step)
        raise _Refused(*(_below(problem, f"{at}/set") for problem in found)) from error


def _below(problem: Problem, at: str) -> Problem:
    return Problem(problem.rule, f"{at}{problem.pointer}", problem.message, problem.accepted, problem.hint)


def _also_behind(step: Step, old: str, new: str) -> Step:
    return _with(step, depends_on=_once((*step.depends_on, new))) if old in step.depends_on else step


def _without(step: Step, gone: Step) -> Step:
    if gone.id not in step.depends_on:
        return step
    above = [name for one in step.depends_on for name in (gone.depends_on if one == gone.id else (one,))]
    return _with(step, depends_on=_once(above))


def _with(step: Step, **values: Any) -> Step:
    return step.model_copy(update=values)


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


DEEPEST: Final = 3
"""Files in a chain: one that extends one that extends one."""
_STEP: Final = re.compile(r"/steps/(\d+)((?:/.*)?)", re.DOTALL)


@dataclass(frozen=True)
class Checked:
    """What came of a check.

    Args:
        recipe: With the edits of all files that extend it; None where anything is wrong.
        problems: Everything that is wrong; of another file with its path.
        sources: The file, and those that it names, directly or not.
    """

    recipe: Recipe | None
    problems: tuple[Problem, ...]
    sources: tuple[Source, ...]


def checked(text: str, library: Library | None = None, *, path: str = "") -> tuple[Recipe | None, tuple[Problem, ...]]:
    """Return the recipe of a text, or None and everything that is wrong with it.

    Args:
        text: What the file says.
        library: Where the recipes are found that it names.
        path: Where the file is, so that one that names itself is known.
    """
    found = checked_source(Source("", path, text), library)
    return found.recipe, found.problems


def checked_source(source: Source, library: Library | None = None) -> Checked:
    """Return the same of a recipe that was found, with all the files that it is made of."""
    checker = _Checker(library)
    recipe, problems = checker.file(source, ())
    return Checked(recipe, tuple(dict.fromkeys(problems)), tuple(checker.sources.values()))


class _Checker:
    """Checks a file and those that it names, each once."""

    def __init__(self, library: Library | None) -> None:
        self.sources: dict[str, Source] = {}
        self._library = library
        self._known: dict[tuple[str, int], tuple[Recipe | None, tuple[Problem, ...]]] = {}

    def file(self, source: Source, above: tuple[str, ...]) -> tuple[Recipe | None, tuple[Problem, ...]]:
        self.sources[source.path] = source
        found = read_recipe(source.text)
        file = found.file or without_faults(found)
        if file is None:
            return None, found.problems
        stack = (*above, source.path)
        problems = [*found.problems, *_misnamed(source, file)]
        if isinstance(file, Extension):
            base, wrong = self._named(file.extends, "/extends", stack)
            if base is None:
                return None, found.placed((*problems, *wrong))
            recipe, places, more = extended(base, file)
            problems += more
        else:
            recipe, places = file, tuple(Place(f"/steps/{number}") for number in range(len(file.steps)))
        problems += _beside(problems, [_at_place(problem, places) for problem in problems_of(recipe)])
        return (None if problems else recipe), found.placed(tuple(problems))

    def _named(self, name: str, at: str, stack: tuple[str, ...]) -> tuple[Recipe | None, Sequence[Problem]]:
        """Return the recipe of that name, or what is wrong with it, or with naming it here."""
        source = self._library.find(name) if self._library is not None else None
        if source is None:
            names = self._library.names() if self._library is not None else ()
            near = misspelt("recipe_not_found", at, f"there is no recipe {name!r}", name, names)
            return None, [near]
        if source.path in stack:
            circle = " -> ".join((*stack[stack.index(source.path) :], source.path))
            return None, [Problem("include_cycle", at, f"these recipes name each other: {circle}")]
        if len(stack) >= DEEPEST:
            message = f"{name!r} would be the {len(stack) + 1}th file of a chain; {DEEPEST} are accepted"
            return None, [Problem("too_deep", at, message)]
        key = (source.path, len(stack))
        if key not in self._known:
            recipe, problems = self.file(source, stack)
            told = tuple(one if one.path else replace(one, path=source.path) for one in problems)
            self._known[key] = recipe, told
        return self._known[key]


def _misnamed(source: Source, file: Recipe | Extension) -> list[Problem]:
    if source.name in {"", file.name}:
        return []
    return [Problem("bad_id", "/name", f"the recipe is called {file.name!r}, and its file {source.name!r}")]


def _beside(known: Iterable[Problem], more: Iterable[Problem]) -> list[Problem]:
    """Return those that are not about something of which a part is known to be wrong."""
    pointers = [f"{problem.pointer}/" for problem in known]
    return [one for one in more if not any(at.startswith(f"{one.pointer}/") for at in pointers)]


def _at_place(problem: Problem, places: Sequence[Place]) -> Problem:
    match = _STEP.fullmatch(problem.pointer)
    if match is None or problem.path:
        return problem
    place = places[int(match[1])]
    message = f"in the step {place.step}: {problem.message}" if place.step else problem.message
    return replace(problem, pointer=place.pointer + (match[2] if place.whole else ""), message=message)
