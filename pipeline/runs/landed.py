"""Tells whether a branch has what a run has made: its commits themselves, or copies that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.git import Repository

REBASED_FROM: Final = "Rebased-From"
"""The trailer of a commit that was put on another base: which one it was."""


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
