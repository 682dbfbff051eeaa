"""Takes the base to the picked commits: by compare-and-swap, with index and files where a worktree has it.

In the order of publication: files first, then the branch. What a kill leaves in between is our change, staged on the
old tip; the run's journal names it, and the next `land` brings it to its end or takes it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.landing.table import Found

if TYPE_CHECKING:
    from pipeline.git import Repository


def place_of(repository: Repository, branch: str) -> Repository | None:
    """Return the repository as seen from the worktree that has the branch checked out, None where none has."""
    there = (repository.at(each) for each in repository.worktrees() if each.is_there)
    return next((each for each in there if each.branch() == branch), None)


def move(repository: Repository, branch: str, tip: str, new: str, since: float) -> tuple[Found, str]:
    """Take the branch from *tip* to *new*; VERIFIED, or why not: then nothing is otherwise than it was.

    Args:
        repository: From any worktree.
        branch: The base.
        tip: Where it must point now.
        new: Where it points then.
        since: When the move began, in seconds since the epoch.
    """
    ref, there = f"refs/heads/{branch}", place_of(repository, branch)
    if repository.resolve(ref) != tip:
        return Found.BASE_MOVED, _moved(repository, branch)
    if there is not None:
        lock = there.index_lock(since)
        if lock is not None:
            return Found.IN_THE_WAY, f"another git holds {lock}; if none is running, remove that file"
        there.refresh_index()
        refusal = there.move_worktree(tip, new)
        if refusal is not None:
            return Found.IN_THE_WAY, f"the files of {there.worktree} stay, refused by git: {refusal}"
        there.free_branch(ref, new, since)
    if repository.set_ref(ref, new, tip):
        return Found.VERIFIED, ""
    if there is not None:
        there.move_worktree(new, tip)
    if repository.resolve(ref) == tip:
        return Found.IN_THE_WAY, f"{ref} was not moved by git: has a killed one left {ref}.lock? Remove it"
    return Found.BASE_MOVED, _moved(repository, branch)


def settle(repository: Repository, branch: str, tip: str, new: str, since: float) -> bool:
    """Bring a move to its end that a kill has cut off, or take back what it left; return whether the base has *new*.

    Args:
        repository: From any worktree.
        branch: The base.
        tip: Where it pointed when the move began.
        new: Where it was to point.
        since: When that was, in seconds since the epoch.
    """
    ref, there = f"refs/heads/{branch}", place_of(repository, branch)
    now = repository.resolve(ref)
    if now is not None and repository.is_ancestor(new, now):
        return True
    if now != tip or there is None or there.index_lock(since) is not None:
        return False
    if there.index_is(new):
        there.free_branch(ref, new, since)
        return repository.set_ref(ref, new, tip)
    there.take_back_half(tip, new, since)
    return False


def _moved(repository: Repository, branch: str) -> str:
    now = repository.resolve(f"refs/heads/{branch}")
    return f"{branch} moved to {(now or 'nothing')[:12]} meanwhile"
