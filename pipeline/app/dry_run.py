"""Tells what a run would be: its recipe, who would be asked, what it could take. It asks nobody and writes nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from pipeline.agents.dispatch.agent_choice import choices
from pipeline.app.conventions import refuse_misfit
from pipeline.app.ports import require_runner
from pipeline.app.recipe_choice import Chosen, chosen, unsound, values_of, with_issues, with_recipe
from pipeline.app.recipe_files import RecipeFiles
from pipeline.app.run_config import RunOptions, read_config
from pipeline.app.worktrees import begins
from pipeline.config import trust
from pipeline.config.agents import Backend
from pipeline.errors import UserError
from pipeline.matrix.recipes.model import Kind, Recipe
from pipeline.matrix.recipes.plan import Preview, phases_of, preview, why_not
from pipeline.matrix.routing.matrix import DISPATCHES_PER_TASK
from pipeline.run.gates import WAYS_BACK
from pipeline.run.preconditions import examine, refuse_base_branch
from pipeline.run.preflight import refuse_hidden
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.config.model import Config
    from pipeline.repo import Repository


NOBODY: Final = "nobody yet (redfirst init)"


@dataclass(frozen=True)
class DryRun:
    """What would be run.

    Args:
        recipe: The recipe.
        inputs: The value of each input.
        shown: Its steps.
        agents: Who each role is that is asked.
        limit: How many dispatches it may take.
        branch: Where it would publish; None where it does not, or no branch is checked out.
        refused: Why it cannot be run, None where it can.
        trusted: Whether it may be run.
        asked_gates: The gates that were asked for.
        in_the_way: Why a run would not begin here, None where it would.
    """

    recipe: Chosen
    inputs: Mapping[str, str]
    shown: Preview
    agents: Mapping[str, str]
    limit: int
    branch: str | None
    refused: str | None
    trusted: bool
    asked_gates: tuple[str, ...] = ()
    in_the_way: str | None = None

    def document(self) -> dict[str, Any]:
        """Return it for a program."""
        return {
            "schema": "redfirst.dry-run/1",
            "ok": True,
            "recipe": self.recipe.facts.model_dump(mode="json"),
            "inputs": dict(self.inputs),
            "steps": [asdict(step) for step in self.shown.steps],
            "agents": dict(self.agents),
            "dispatches": {"least": self.shown.least, "most": self.shown.dispatches, "limit": self.limit},
            "gates": self.shown.gates,
            "approve": list(self.asked_gates),
            "branch": self.branch,
            "runs": self.refused is None and self.in_the_way is None,
            "trusted": self.trusted,
        }


def dry_run(repository: Repository, options: RunOptions, *, worktree: bool = False) -> DryRun:
    """Return what `run` would do with these options; with *worktree* on a branch that is made for it.

    Raises:
        UserError: the recipe, its inputs or the configuration cannot be used.
    """
    tip = repository.resolve("HEAD") or ""
    config = read_config(repository, tip, options.flags, options.environ).config
    options = with_recipe(repository, tip, config, options)
    library = RecipeFiles(repository, tip or None, options.environ)
    found = chosen(library, options.recipe, repository)
    values = with_issues(repository, found.recipe, values_of(found, options.recipe, options.given(found.recipe)))
    gates = tuple(gate for gate in WAYS_BACK if gate in options.gates)
    whole, shown = (
        preview(one, values, gates, config.tracker.folder)
        for one in (found.recipe, _without_idle(found.recipe, config))
    )
    if not isinstance(whole, Preview):
        raise unsound(options.recipe, found.file, whole)
    shown = shown if isinstance(shown, Preview) else whole
    phases = phases_of(found.recipe)
    asked = sorted({role for step in whole.steps for role in step.asks})
    publishes = any(step.kind in {"publish", "phase", "file_issues"} for step in shown.steps)
    return DryRun(
        recipe=found,
        inputs=values,
        shown=shown,
        agents={role: _agent(config, role) for role in asked if role in set(Role)},
        limit=shown.limit if phases is None else config.limits.dispatches + DISPATCHES_PER_TASK,
        branch=repository.branch() if publishes and not worktree else None,
        refused=why_not(found.recipe),
        trusted=trust.is_trusted(found.theirs, repository.common_dir, options.environ),
        asked_gates=gates,
        in_the_way=_in_the_way(repository, options, config, worktree=worktree)
        if publishes and (options.issue or not worktree)
        else None,
    )


def _without_idle(recipe: Recipe, config: Config) -> Recipe:
    """Return the recipe without the reviewers of its phases that are off, so that none is named who is not asked."""
    off = {role for role in Role if config.agent(role).backend is Backend.OFF}
    steps = (
        step.model_copy(update={"review": tuple(role for role in step.review if role not in off)})
        if step.kind is Kind.PHASE
        else step
        for step in recipe.steps
    )
    return recipe.model_copy(update={"steps": tuple(steps)})


def _in_the_way(repository: Repository, options: RunOptions, config: Config, *, worktree: bool) -> str | None:
    try:
        if worktree:
            begins(repository, options)
        elif options.issue:
            examine(repository, options.issue, options.base or config.base)
            require_runner(repository, config)
            refuse_misfit(config, options.issue)
        else:
            refuse_base_branch(repository, options.recipe, options.base)
            refuse_hidden(repository)
    except UserError as error:
        return " ".join(each.message for each in (error, *error.also))
    return None


def _agent(config: Config, role: str) -> str:
    """Return who a role is, in words."""
    agent = config.agent(Role(role))
    if agent.backend is Backend.COMMAND and not agent.argv:
        return NOBODY
    try:
        return str(choices(config, Role(role))[0])
    except UserError as error:
        return error.message
