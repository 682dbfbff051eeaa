"""Begins a run: writes its folder with run.json, the first line of its journal, and the recipe as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from pipeline import VERSION
from pipeline.config.folders import state_folder
from pipeline.config.sources import Layer
from pipeline.dispatch.roles import prompts_hash
from pipeline.dispatch.transcript import secrets_of_run
from pipeline.engine.journal import stamp, utc_now
from pipeline.routing.state import PARALLEL
from pipeline.routing.vocabulary import ISSUE_ROLES
from pipeline.runs.files import disk
from pipeline.runs.info import RECIPE, RunInfo
from pipeline.runs.run import KeptRun
from pipeline.runs.store import state_of_run
from pipeline.service.isolation import isolation
from pipeline.service.run_config import config_hash, limits_of
from pipeline.service.run_flags import kept_config, kept_flags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipeline.boxes.box import ProvableBox
    from pipeline.config.load import Loaded
    from pipeline.config.model import Config
    from pipeline.git import Repository
    from pipeline.recipes.model import Recipe
    from pipeline.routing.vocabulary import Role
    from pipeline.service.recipe_choice import Chosen
    from pipeline.service.run_config import RunOptions

_RunT = TypeVar("_RunT", bound=KeptRun[Any, Any, Any])
_MOST_BESIDE: Final = 12
"""As many tasks as `limits.parallel` may name."""


def made(
    kind: type[_RunT],
    repository: Repository,
    folder: Path,
    options: RunOptions,
    config: Config,
    box: ProvableBox,
    recipe: Chosen,
    values: Mapping[str, str],
    roles: Sequence[Role] = ISSUE_ROLES,
    **facts: Any,
) -> _RunT:
    """Make a run in its folder, under its lease.

    Args:
        kind: What drives it.
        repository: As seen from the worktree that keeps it.
        folder: Its folder, of its name.
        options: What the user asked for.
        config: The configuration as it counts.
        box: What isolates its agents.
        recipe: What it is of.
        values: The values of the recipe's inputs.
        roles: Who is asked.
        facts: What run.json says of this kind of run alone.

    Raises:
        UserError: the disk does not take it.
    """
    dumped = config.model_dump(mode="json")
    secrets = secrets_of_run(repository.worktree, options.environ, config)
    info = RunInfo(
        run_id=folder.name,
        workflow_version=VERSION,
        redfirst_version=VERSION,
        config=kept_config(dumped, secrets),
        config_hash=config_hash(dumped),
        flags=kept_flags(options.flags, secrets),
        prompts_hash=prompts_hash(),
        recipe=recipe.facts,
        trigger=options.trigger,
        started_at=stamp(utc_now()),
        **facts,
    )
    own = state_of_run(state_folder(options.environ), repository, info.run_id)
    with disk(own):
        own.mkdir(mode=0o700, parents=True, exist_ok=True)  # says that the run is ours, also after a crash
    run = kind.create(folder, info, sandbox=isolation(config, box, roles))
    run.write_artifact(RECIPE, recipe.document(values))
    return run


def issue_limits(loaded: Loaded, recipe: Recipe) -> dict[str, int]:
    """Return the limits of an issue's run; how many tasks are side by side the recipe says where the user does not."""
    limits = limits_of(loaded.config)
    if loaded.origins[f"limits.{PARALLEL}"].layer is Layer.DEFAULT and "max_concurrency" in recipe.model_fields_set:
        limits[PARALLEL] = min(recipe.max_concurrency, _MOST_BESIDE)
    return limits
