"""Makes a run of a recipe's own steps, and the ports of whoever drives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.recipes.step_table import ANY, GIVEN, ROWS
from pipeline.runs.checkout import PrivateCheckout
from pipeline.runs.recipe_run import RecipeRun
from pipeline.runs.records import OF_RECIPE
from pipeline.service import new_run
from pipeline.service.ports import dispatcher_of, place_of_run
from pipeline.service.projects_here import toolchain_of
from pipeline.service.recipe_choice import steps_of
from pipeline.service.recipe_start import roles_of
from pipeline.service.run_config import config_hash
from pipeline.steps.recipe_context import RecipeContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.boxes.box import ProvableBox
    from pipeline.config.model import Config
    from pipeline.git import Repository
    from pipeline.runs.info import ChangeSeen
    from pipeline.runs.preconditions import Start
    from pipeline.service.recipe_choice import Chosen
    from pipeline.service.run_config import RunOptions


def made(
    repository: Repository,
    folder: Path,
    options: RunOptions,
    recipe: Chosen,
    values: Mapping[str, str],
    config: Config,
    begin: Start,
    change: ChangeSeen | None,
    box: ProvableBox,
) -> RecipeRun:
    """Return a run that has just begun: its folder has run.json, the journal and the recipe as it is now."""
    return new_run.made(
        RecipeRun,
        repository,
        folder,
        options,
        config,
        box,
        recipe,
        values,
        roles_of(recipe.recipe),
        workflow=OF_RECIPE,
        workflow_hash=config_hash(repr((ROWS, ANY, GIVEN))),
        branch=begin.branch,
        base_branch=begin.base_branch,
        start_commit=begin.commit,
        start_tree=begin.tree,
        steps=steps_of(recipe.recipe),
        inputs=dict(values),
        change=change,
    )


def context_of(
    repository: Repository,
    run: RecipeRun,
    config: Config,
    box: ProvableBox,
    environ: Mapping[str, str],
    say: Callable[[str], None],
) -> RecipeContext:
    """Return the ports of one driver."""
    checkout = PrivateCheckout(repository, place_of_run(repository, run, environ))
    toolchain = toolchain_of(repository, config, run.info.start_commit)
    dispatcher = dispatcher_of(repository, run, checkout, config, box, environ, say, issue=None, toolchain=toolchain)
    path = dispatcher.search_path
    return RecipeContext(run, repository, checkout, config, box, dispatcher, toolchain, path, environ, say)
