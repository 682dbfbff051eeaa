"""Everything that is wrong with a recipe, at once: its form, and what the rules say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.recipes.reading import read_recipe, without_faults
from pipeline.recipes.rules import problems_of

if TYPE_CHECKING:
    from pipeline.recipes.model import Recipe
    from pipeline.recipes.problems import Problem


def checked(text: str) -> tuple[Recipe | None, tuple[Problem, ...]]:
    """Return the recipe of a text, or None and everything that is wrong with it, in the order of the file."""
    found = read_recipe(text)
    recipe = found.recipe or without_faults(found)
    if recipe is None:
        return None, found.problems
    known = {problem.pointer for problem in found.problems}
    more = [one for one in problems_of(recipe) if not any(f"{at}/".startswith(f"{one.pointer}/") for at in known)]
    problems = found.placed((*found.problems, *more))
    return (None if problems else recipe), problems
