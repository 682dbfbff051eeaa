"""Finds everything that is wrong with a recipe at once: its form, what it extends, what the rules say."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pipeline.recipes.lookup import NoLibrary, Source
from pipeline.recipes.model import Extension, Recipe
from pipeline.recipes.overlay import Place, extended
from pipeline.recipes.problems import Problem, misspelt
from pipeline.recipes.reading import read_recipe, without_faults
from pipeline.recipes.rules import problems_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.recipes.lookup import Library

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
    checker = _Checker(library or NoLibrary())
    recipe, problems = checker.file(source, ())
    return Checked(recipe, tuple(dict.fromkeys(problems)), tuple(checker.sources.values()))


class _Checker:
    """Checks a file and those that it names, each once."""

    def __init__(self, library: Library) -> None:
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
        problems += _beside(problems, _moved(problems_of(recipe), places))
        return (None if problems else recipe), found.placed(tuple(problems))

    def _named(self, name: str, at: str, stack: tuple[str, ...]) -> tuple[Recipe | None, Sequence[Problem]]:
        """Return the recipe of that name, or what is wrong with it, or with naming it here."""
        source = self._library.find(name)
        if source is None:
            near = misspelt("recipe_not_found", at, f"there is no recipe {name!r}", name, self._library.names())
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


def _moved(problems: Iterable[Problem], places: Sequence[Place]) -> list[Problem]:
    """Return problems of steps as problems of what stands for them in the file."""
    return [_at_place(problem, places) for problem in problems]


def _at_place(problem: Problem, places: Sequence[Place]) -> Problem:
    match = _STEP.fullmatch(problem.pointer)
    if match is None or problem.path:
        return problem
    place = places[int(match[1])]
    message = f"in the step {place.step}: {problem.message}" if place.step else problem.message
    return replace(problem, pointer=place.pointer + (match[2] if place.whole else ""), message=message)
