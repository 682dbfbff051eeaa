"""Reads the recipe of an issue's run as it was when the run began."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipeline.recipes.model import Recipe
from pipeline.runs.info import RECIPE

if TYPE_CHECKING:
    from pipeline.runs.run import Run


def kept_recipe(run: Run) -> tuple[Recipe, dict[str, str]]:
    """Return the recipe, and the values of its inputs."""
    kept = json.loads(run.read(RECIPE))
    return Recipe.model_validate_json(json.dumps(kept["recipe"])), kept["inputs"]
