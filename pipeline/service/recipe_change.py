"""Reads the change that an input of a recipe names: the tree before it and the tree with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.runs.info import ChangeSeen
from pipeline.runs.preconditions import base_branch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.git import Repository
    from pipeline.recipes.model import Recipe

_MOST_BYTES: Final = 16 * 1024 * 1024


def change_of(
    repository: Repository, recipe: Recipe, values: Mapping[str, str], tip: str, base: str | None
) -> ChangeSeen | None:
    """Return the change that a run is about, None where the recipe asks for none.

    A branch is what it has since it left the base branch, a commit what it changed, `a..b` and `a...b` what git takes
    them for, and a file with a diff is that, over the commit that the user stands on.

    Raises:
        UserError: the value names no change, or one that changes nothing.
    """
    name = next((one.name for one in recipe.inputs if one.type == "change"), None)
    if name is None:
        return None
    said = values[name]
    found = _of_commits(repository, said, base) or _of_file(repository, said, repository.tree_of(tip))
    if found is None:
        raise _refusal(name, said, "there is no such branch, commit, range or file")
    before, after = found
    if before == after:
        raise _refusal(name, said, "it changes nothing")
    return ChangeSeen(input=name, before=before, after=after)


def _of_commits(repository: Repository, said: str, base: str | None) -> tuple[str, str] | None:
    for dots in ("...", ".."):
        one, found, other = said.partition(dots)
        if found:
            old, new = (repository.resolve(f"{each or 'HEAD'}^{{commit}}") for each in (one, other))
            if old is None or new is None:
                return None
            start = repository.merge_base(old, new) if dots == "..." else old
            return None if start is None else (repository.tree_of(start), repository.tree_of(new))
    commit = repository.resolve(f"{said}^{{commit}}") if said else None
    if commit is None:
        return None
    branch = said == "HEAD" or any(repository.resolve(f"refs/{kind}/{said}") for kind in ("heads", "remotes"))
    if branch:
        named = base_branch(repository, said, base)
        start = repository.merge_base(repository.resolve(named) or commit, commit)
    else:
        start = next(iter(repository.parents(commit)), None)
    before = repository.make_tree({}) if start is None else repository.tree_of(start)
    return before, repository.tree_of(commit)


def _of_file(repository: Repository, said: str, tree: str) -> tuple[str, str] | None:
    place = Path(said).expanduser()
    try:
        if not place.is_file() or place.stat().st_size > _MOST_BYTES:
            return None
        after = repository.applied(tree, place.read_bytes())
    except OSError:
        return None
    if after is None:
        raise UserError(
            f"{said} is no diff that goes on the commit you stand on: git apply refuses it.",
            Reason.INPUT_INVALID,
            path=said,
        )
    return tree, after


def _refusal(name: str, said: str, why: str) -> UserError:
    return UserError(f"{name}={said}: {why}.", Reason.INPUT_INVALID, pointer="/inputs")
