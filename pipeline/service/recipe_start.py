"""Finds where a run of a recipe starts, and checks what a run that commits needs besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import UserError, check_all, with_others
from pipeline.recipes.model import Kind
from pipeline.recipes.plan import preview, why_not
from pipeline.routing.vocabulary import Role
from pipeline.runs.preconditions import Start, examine_recipe
from pipeline.service.recipe_choice import chosen, not_to_be_run, require_trust, unsound, values_of
from pipeline.service.recipe_files import RecipeFiles
from pipeline.service.recipe_issues import with_issues

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.git import Repository
    from pipeline.recipes.model import Recipe
    from pipeline.service.recipe_choice import Chosen
    from pipeline.service.run_config import RunOptions


def sound(
    repository: Repository, word: str, options: RunOptions, given: Callable[[Recipe], Mapping[str, str]]
) -> tuple[Chosen, dict[str, str]]:
    """Return a recipe that can be run, as HEAD has it, and the values of its inputs.

    Raises:
        UserError: there is none of that name; it is not sound, not trusted, or cannot be run with these inputs.
    """
    found = chosen(RecipeFiles(repository, repository.resolve("HEAD"), options.environ), word, repository)
    require_trust(found, repository, options.environ)
    require_runnable(found, word)
    values = with_issues(repository, found.recipe, values_of(found, word, given(found.recipe)))
    planned = preview(found.recipe, values)
    if isinstance(planned, tuple):
        raise unsound(word, found.file, planned)
    return found, values


def inputs_kept(values: Mapping[str, str], recipe: Recipe) -> dict[str, str]:
    """Return the values of those inputs that another recipe has, too."""
    return {one.name: values[one.name] for one in recipe.inputs if one.name in values}


def start_of(
    repository: Repository, recipe: Recipe, tip: str, base: str | None, *checks: Callable[[], object]
) -> Start:
    """Return where a run of the recipe starts.

    Args:
        repository: Seen from the worktree that the user stands in.
        recipe: What shall be run.
        tip: The commit that the user stands on.
        base: The base branch, if the user names one.
        checks: What has to hold, too: all that does not is told at once.

    Raises:
        UserError: something does not hold; of a run that commits also its branch, its files, or who commits.
    """
    kinds = {step.kind for step in recipe.steps}
    if not kinds & {Kind.PUBLISH, Kind.FILE_ISSUES}:
        check_all(*checks)
        branch = repository.branch() or "HEAD"
        return Start(branch, branch, tip, repository.tree_of(tip))
    checks = (repository.identity, *checks)
    try:
        found = examine_recipe(repository, recipe.name, base, files_alone=Kind.PUBLISH not in kinds)
    except UserError as error:
        raise with_others(error, *checks) from None
    check_all(*checks)
    return found


def require_runnable(recipe: Chosen, word: str) -> None:
    """Refuse a recipe that works on an issue.

    Raises:
        UserError: it does.
    """
    if any(step.kind is Kind.PHASE for step in recipe.recipe.steps):
        why = why_not(recipe.recipe)
        raise not_to_be_run(recipe, word, "works on an issue" if why is None else "cannot be run", why)


def roles_of(recipe: Recipe) -> tuple[Role, ...]:
    """Return who is asked, reviewers too."""
    asked = (role for step in recipe.steps for role in (step.agent, *step.review) if role is not None)
    return tuple(dict.fromkeys(map(Role, asked)))
