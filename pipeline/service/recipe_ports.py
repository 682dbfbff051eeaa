"""Makes a run of a recipe's own steps, and the ports of whoever drives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline import VERSION
from pipeline.config.folders import state_folder
from pipeline.dispatch.roles import prompts_hash
from pipeline.dispatch.transcript import secrets_of_run
from pipeline.engine.journal import stamp, utc_now
from pipeline.recipes.step_table import ANY, ROWS
from pipeline.runs.checkout import PrivateCheckout
from pipeline.runs.files import disk
from pipeline.runs.info import RunInfo
from pipeline.runs.recipe_run import WORKFLOW, RecipeRun
from pipeline.runs.store import state_of_run
from pipeline.service.isolation import isolation
from pipeline.service.ports import dispatcher_of, place_of_run, toolchain_of
from pipeline.service.recipe_choice import RECIPE
from pipeline.service.run_config import config_hash
from pipeline.service.run_flags import kept_config, kept_flags
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
    dumped = config.model_dump(mode="json")
    secrets = secrets_of_run(repository.worktree, options.environ, config)
    info = RunInfo(
        run_id=folder.name,
        workflow=WORKFLOW,
        workflow_version=VERSION,
        workflow_hash=config_hash(repr((ROWS, ANY))),
        redfirst_version=VERSION,
        branch=begin.branch,
        base_branch=begin.base_branch,
        start_commit=begin.commit,
        start_tree=begin.tree,
        config=kept_config(dumped, secrets),
        config_hash=config_hash(dumped),
        flags=kept_flags(options.flags, secrets),
        prompts_hash=prompts_hash(),
        recipe=recipe.facts,
        steps=recipe.recipe.model_dump(mode="json", by_alias=True, exclude_defaults=True),
        inputs=dict(values),
        change=change,
        started_at=stamp(utc_now()),
    )
    own = state_of_run(state_folder(options.environ), repository, info.run_id)
    with disk(own):
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
    run = RecipeRun.create(folder, info, sandbox=isolation(config, box))
    run.write_artifact(RECIPE, recipe.document(values))
    return run


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
    dispatcher = dispatcher_of(repository, run, checkout, config, box, environ, say, issue=None)
    toolchain = toolchain_of(repository, config, run.info.start_commit)
    path = dispatcher.search_path
    return RecipeContext(run, repository, checkout, config, box, dispatcher, toolchain, path, environ, say)
