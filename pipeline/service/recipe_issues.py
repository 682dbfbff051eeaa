"""Reads the issues that an input of a recipe names from the commit that the user stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.recipes.plan import MOST_ITEMS
from pipeline.recipes.templates import listed
from pipeline.runs.tracker import as_user_errors, in_tree
from todo import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.git import Repository
    from pipeline.recipes.model import Recipe


def with_issues(repository: Repository, recipe: Recipe, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values with the ids of each input of the type `issues`; where none is given all that are not Done.

    Raises:
        UserError: there is no such issue, there are too many, or the tracker is broken.
    """
    found = dict(values)
    for name in (one.name for one in recipe.inputs if one.type == "issues"):
        tracker = in_tree(repository, repository.tree_of("HEAD"))
        with as_user_errors(tracker):
            if given := listed(values[name]):
                ids = [tracker.read(tracker.named(each)).id for each in given]
            else:
                ids = [issue.id for issue in tracker.issues() if issue.status is not Status.DONE]
        if len(ids) > MOST_ITEMS:
            raise UserError(
                f'There are {len(ids)} issues, and {MOST_ITEMS} are accepted at once. Name some: {name}="GAL-1 GAL-2"',
                Reason.INPUT_INVALID,
            )
        found[name] = " ".join(dict.fromkeys(ids))
    return found
