"""Tells whether a branch has what a run has made: its commits themselves, or copies that name them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.git import Repository

REBASED_FROM: Final = "Rebased-From"
"""The trailer of a commit that was put on another base: which one it was."""


def base_tip(repository: Repository, base: str) -> str | None:
    """Return the commit of a base: of the branch, or where there is none of that name, of a remote's as it is known."""
    found = (repository.resolve(f"refs/{kind}/{base}") for kind in ("heads", "remotes"))
    return next((commit for commit in found if commit is not None), None)


def is_remote(repository: Repository, base: str) -> bool:
    """Return whether a base is a branch of a remote: nothing of ours moves it."""
    return repository.resolve(f"refs/heads/{base}") is None and repository.resolve(f"refs/remotes/{base}") is not None


def push_of(branch: str, base: str) -> str:
    """Return the command that brings a branch onto a remote's; a person types it."""
    remote, _, name = base.partition("/")
    return f"git push {shlex.quote(remote)} {shlex.quote(f'{branch}:{name}')}"


def is_on(repository: Repository, commits: Sequence[str], start: str, tip: str) -> bool:
    """Return whether *tip* has the commits of a run.

    Args:
        repository: From any worktree.
        commits: What the run put on its branch, oldest first.
        start: Where the run began.
        tip: A commit of the base.
    """
    if tip == start:  # nothing has landed on what stands where the run began
        return False
    last = commits[-1]
    if repository.is_ancestor(last, tip):
        return True
    copies = repository.history(f"{start}..{tip}", saying=f"{REBASED_FROM}: {last}")
    return any((REBASED_FROM, last) in repository.trailers(each) for each in copies)
