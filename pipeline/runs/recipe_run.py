"""A run whose steps are those of a recipe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pipeline.engine.machine import Decision
from pipeline.recipes.machine import RecipeMachine, StepEvent, StepsState
from pipeline.recipes.model import Recipe
from pipeline.runs.records import read_record
from pipeline.runs.run import KeptRun, Run

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.info import RunInfo

WORKFLOW: Final = "recipe"
"""What run.json calls it."""


class RecipeRun(KeptRun[StepsState, StepEvent, Decision]):
    """A run of a recipe: its own steps drive it."""

    machine: RecipeMachine

    @staticmethod
    def machine_of(info: RunInfo) -> RecipeMachine:
        """Return the machine of the recipe that run.json has.

        Raises:
            ValueError: it has none, or one that this version cannot read.
        """
        if info.workflow != WORKFLOW or info.steps is None:
            raise ValueError("it is not of a recipe")
        return RecipeMachine(Recipe.model_validate_json(json.dumps(info.steps)), info.inputs)

    @property
    def recipe(self) -> Recipe:
        """Return the recipe."""
        return self.machine.recipe


def is_of_recipe(folder: Path) -> bool:
    """Return whether a run is of a recipe whose own steps drive it."""
    try:
        return json.loads(read_record(folder, "run.json")).get("workflow") == WORKFLOW
    except (OSError, ValueError, AttributeError):
        return False


def load_run(folder: Path, *, driving: bool) -> Run | RecipeRun:
    """Return a run of an issue or of a recipe, whichever it is.

    Raises:
        UserError: it is damaged, or was decided otherwise than today.
    """
    kind = RecipeRun if is_of_recipe(folder) else Run
    return kind.load(folder, driving=driving)
