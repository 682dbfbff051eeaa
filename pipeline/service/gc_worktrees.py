"""Finds the linked worktrees that redfirst made and whose runs are over, and says which may go with their branches."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.git import GITLINK, GitError
from pipeline.runs.checkout import fill_submodules, has_submodules
from pipeline.runs.events import Published
from pipeline.runs.landed import base_tip
from pipeline.runs.store import WORKFLOW
from pipeline.scratch import scratch_folder
from pipeline.service.gc_runs import held
from pipeline.service.gc_things import Thing
from pipeline.service.worktrees import OWNER
from pipeline.trees import remove_tree
from pipeline.views.manifest import scan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeline.git import Repository, Worktree
    from pipeline.service.gc import Sweep
    from pipeline.service.gc_runs import Known

_SHOWN: Final = 3


def worktrees_left(sweep: Sweep) -> Iterator[Thing]:
    """Yield the linked worktrees that redfirst has made; of others nothing is said."""
    for worktree in sweep.here.worktrees():
        owner = _owner(worktree)
        if owner is None:
            continue
        runs = [known for known in sweep.runs if known.place.worktree.path == worktree.path]
        stays = _stays(sweep, worktree, owner, runs)
        if stays:
            yield Thing("worktree", str(worktree.path), stays)
        else:
            names = ", ".join(known.place.name for known in runs)
            why = f"{names} has ended, all is committed, and the base has it or it was given up"
            why = why if runs else "no run was begun in it, and nothing was changed"
            yield Thing("worktree", str(worktree.path), why, partial(_remove, sweep, worktree, runs))


def is_made(worktree: Worktree) -> bool:
    """Return whether redfirst has made a worktree."""
    return _owner(worktree) is not None


def _owner(worktree: Worktree) -> dict[str, Any] | None:
    """Return what the file says that redfirst left in the worktree's git folder; None where there is none."""
    place = worktree.git_dir / OWNER
    try:
        said: object = json.loads(place.read_bytes()) if not place.is_symlink() else None
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", said) if isinstance(said, dict) else None


def _stays(sweep: Sweep, worktree: Worktree, owner: dict[str, Any], runs: Sequence[Known]) -> str:
    """Return, in words, why a worktree stays; "" where it may go."""
    here = sweep.here
    if not worktree.is_there:
        return "its folder is gone, or another one is in its place"
    if worktree.locked is not None:
        return "it is locked"
    if owner.get("folder", str(worktree.path)) != str(worktree.path):
        return "somebody has moved it"
    if worktree.path == here.worktree.resolve():
        return "somebody stands in it"
    if not runs and sweep.now.timestamp() - (worktree.git_dir / OWNER).lstat().st_mtime < sweep.older_than_s:
        return "no run is in it yet"
    for known in runs:
        stays = known.keeps or known.needed() or known.lacks()
        if stays:
            return stays if known.place.name in stays else f"{known.place.name}: {stays}"
        if not sweep.is_old(known):
            return sweep.kept_until(known)
    try:
        return _unsaved(here.at(worktree), owner, runs)
    except GitError as error:
        return f"what is in it cannot be told: {error.stderr.strip()}"


def _unsaved(there: Repository, owner: dict[str, Any], runs: Sequence[Known]) -> str:
    """Return, in words, what of a worktree is nowhere else."""
    branch = there.branch()
    if branch is None or branch != owner.get("branch"):
        return f"it stands on {branch or 'no branch'}, not on {owner.get('branch')}"
    tip = there.resolve(f"refs/heads/{branch}")
    if tip is None:
        return "its branch has no commit"
    changed = _changed_submodules(there, there.tree_of(tip))
    if changed:
        return f"submodules in it are not as they were filled: {', '.join(changed[:_SHOWN])}"
    files = sorted({line[3:] for line in there.status(ignored=True)} - {f"{WORKFLOW}/"})
    if files:
        more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
        return f"not committed: {', '.join(files[:_SHOWN])}{more}"
    records = there.worktree / WORKFLOW
    names = {path.name for path in (records.iterdir() if records.is_dir() else ())}
    strange = sorted(names - {".gitignore", *(known.place.name for known in runs)})
    if strange:
        return f"{WORKFLOW} has {', '.join(strange[:_SHOWN])}, of no run"
    unchanged = not runs and tip == owner.get("tip")
    return (
        ""
        if unchanged or _is_known(there, tip, runs)
        else f"{branch} has commits that no run made, or that did not land"
    )


def _changed_submodules(there: Repository, tree: str) -> list[str]:
    """Return the submodules that hold anything but what a run fills them with: git does not look into them."""
    links = [entry.path for entry in there.entries(tree) if entry.mode == GITLINK]
    links = [path for path in links if _has_content(there.worktree / path)]
    if not links:
        return []
    with scratch_folder("submodules") as place:
        fill_submodules(there, tree, place / "tree", place / "index")
        return [path for path in links if not _is_as_filled(there.worktree / path, place / "tree" / path)]


def _has_content(folder: Path) -> bool:
    return folder.is_symlink() or (folder.is_dir() and any(folder.iterdir()))


def _is_as_filled(folder: Path, filled: Path) -> bool:
    if folder.is_symlink() or os.path.lexists(folder / ".git") or not filled.is_dir():
        return False
    return scan(folder) == scan(filled)


def _is_known(there: Repository, tip: str, runs: Sequence[Known]) -> bool:
    """Return whether a branch holds nothing but what its runs began with, what landed, and what its base has."""
    for known in runs:
        if known.run is None:
            continue
        base = base_tip(there, known.run.info.base_branch)
        if base is not None and there.is_ancestor(tip, base):
            return True
        published = known.run.journal.of(Published)
        if published and published[-1].data.commits[-1:] == (tip,) and not known.needed():
            own = there.history(f"{known.run.info.start_commit}..{tip}")
            begun = base is not None and there.is_ancestor(known.run.info.start_commit, base)
            if begun and set(own) <= set(published[-1].data.commits):
                return True
    return False


def _remove(sweep: Sweep, worktree: Worktree, runs: Sequence[Known]) -> str:
    with held(sweep.here, runs) as fresh:
        now = next((each for each in sweep.here.worktrees() if each.path == worktree.path), None)
        owner = _owner(now) if now is not None else None
        if now is None or owner is None:
            return "it is another one by now"
        stays = _stays(sweep, now, owner, fresh)
        if stays:
            return stays
        there = sweep.here.at(now)
        branch = str(owner["branch"])
        tip = there.resolve(f"refs/heads/{branch}") or ""
        for known in fresh:
            checkout = sweep.checkout_of(known)
            if os.path.lexists(checkout) and not checkout.is_symlink():
                remove_tree(checkout)
        sweep.here.remove_worktree(now.path, branch, tip, submodules=has_submodules(there, tip))
    return "it could not be removed by git" if os.path.lexists(worktree.path) else ""
