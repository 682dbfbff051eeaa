"""Reads and folds a run whose steps are those of a recipe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import JOURNAL, Line
from pipeline.matrix.engine.journal_kinds import RunResumed
from pipeline.matrix.engine.protocols import Decision
from pipeline.matrix.recipes.model import Recipe
from pipeline.matrix.recipes.next_steps import RecipeMachine, StepEvent, StepsState, reopened
from pipeline.outcomes import Reason
from pipeline.run.info import RecipeFacts, RunInfo
from pipeline.run.records import OF_RECIPE, is_of_recipe
from pipeline.run.run import KeptRun, Run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Changed(Frozen):
    """A recipe that a run goes on with: which one, the whole of it, and the values of its inputs."""

    recipe: RecipeFacts
    steps: dict[str, object]
    inputs: dict[str, str]

    def machine(self) -> RecipeMachine:
        """Return what drives its steps."""
        return _machine(self.steps, self.inputs)


class RecipeRun(KeptRun[StepsState, StepEvent, Decision]):
    """A run of a recipe: its own steps drive it."""

    machine: RecipeMachine

    @staticmethod
    def machine_of(info: RunInfo) -> RecipeMachine:
        """Return the machine of the recipe that run.json has.

        Raises:
            ValueError: it has none, or one that this version cannot read.
        """
        if info.workflow != OF_RECIPE or info.steps is None:
            raise ValueError("it is not of a recipe")
        return _machine(info.steps, info.inputs)

    @property
    def recipe(self) -> Recipe:
        """Return the recipe."""
        return self.machine.recipe

    @property
    def inputs(self) -> Mapping[str, str]:
        """Return the values of its inputs."""
        return self.machine.values

    @property
    def facts(self) -> RecipeFacts | None:
        """Return which recipe it is now: the one that it began with, or that it went on with last."""
        found = [line.data.reopened for line in self.journal.of(RunResumed) if line.data.reopened is not None]
        changed = [Changed.model_validate(one.workflow) for one in found if one.workflow]
        return changed[-1].recipe if changed else self.info.recipe

    def fold(self, line: Line) -> None:
        """Take a line of the journal into the state, the records and the results.

        Raises:
            UserError: a result is missing, or the machine decides otherwise today.
        """
        if isinstance(line.data, RunResumed) and (again := line.data.reopened) is not None:
            if again.workflow:
                self.machine = self._changed(line, again.workflow)
            self.state = reopened(self.machine, self.state, again.steps, again.items, again.areas)
        else:
            super().fold(line)

    def _changed(self, line: Line, workflow: Mapping[str, object]) -> RecipeMachine:
        try:
            return Changed.model_validate(workflow).machine()
        except ValueError as error:
            name = self.info.run_id
            raise UserError(
                f"{name} is damaged: the recipe in line {line.seq} of its journal cannot be read "
                f"({str(error).splitlines()[0]}). Put the file back, or: redfirst abandon {name}",
                Reason.USAGE,
                path=str(self.folder / JOURNAL),
                actions=(f"redfirst abandon {name}",),
            ) from error


def _machine(steps: Mapping[str, object], inputs: Mapping[str, str]) -> RecipeMachine:
    return RecipeMachine(Recipe.model_validate_json(json.dumps(steps)), inputs)


def load_run(folder: Path, *, driving: bool) -> Run | RecipeRun:
    """Return a run of an issue or of a recipe, whichever it is.

    Raises:
        UserError: it is damaged, or was decided otherwise than today.
    """
    kind = RecipeRun if is_of_recipe(folder) else Run
    return kind.load(folder, driving=driving)
