"""Says how a run of a recipe's own steps stands, with advice as it works where somebody stands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.runs.recipe_run import RecipeRun
from pipeline.service.other_worktrees import answers_as_typed, as_typed, text_as_typed
from pipeline.service.recipe_result import recipe_document
from pipeline.steps.recipe_context import ReadRun

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.service.recipe_result import RecipeDocument
    from pipeline.steps.recipe_context import Words


def show_recipe_run(folder: Path, here: Repository) -> RecipeDocument:
    """Return how the run in *folder* stands, from what is on disk.

    Raises:
        UserError: it is damaged.
    """
    return shown_from(ReadRun(RecipeRun.load(folder, driving=False)), here)


def shown_from(ctx: Words, here: Repository, *, driven: bool = False) -> RecipeDocument:
    """Return how a run stands; *driven*: its driver asks, when it is done."""
    found, worktree = recipe_document(ctx, driven=driven), ctx.run.folder.parents[1]
    gates = tuple(
        replace(gate, answers=answers_as_typed(gate.answers, here, worktree, found.run_id)) for gate in found.gates
    )
    actions = as_typed(found.safe_next_actions, here, worktree, found.run_id)
    note = text_as_typed(found.note, here, worktree, found.run_id)
    return found.model_copy(update={"safe_next_actions": actions, "note": note, "gates": gates})
