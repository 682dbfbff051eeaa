"""Moving the user's index, files and branch to what is published, and taking back what a crash left between them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal
from pipeline.runs import tracker
from pipeline.runs.events import PublishIntended

if TYPE_CHECKING:
    from pipeline.steps.context import Context


def move(ctx: Context, new: str, *, again: bool) -> Event | None:
    """Take worktree, index and branch to *new*; None, or the event of a refusal that changed nothing.

    Args:
        ctx: The run.
        new: The commit to publish.
        again: It was tried before: a crash may have left index and files anywhere between the start and *new*.
    """
    repository, info = ctx.repository, ctx.run.info
    ref = f"refs/heads/{info.branch}"
    old, began = info.start_commit, _began(ctx)
    now = repository.resolve(ref)
    if now is not None and repository.is_ancestor(new, now):
        return None  # published before the crash
    if now != old or repository.branch() != info.branch:
        return Event(signal=Signal.BRANCH_MOVED, note=_moved_recipe(ctx, now, new))
    lock = repository.index_lock(began)
    if lock is not None:
        why = f"another git holds {lock}; if none is running, remove that file, then resume"
        return Event(signal=Signal.WORKTREE_CHANGED, note=why)
    if not (again and repository.index_is(new)):  # it is, when a crash came between the files and the branch
        if again:
            repository.take_back_half(old, new)
        changed = tracker.put_back(ctx.run, repository.worktree)
        if changed:
            why = f"{', '.join(changed)} changed while the run held the issue; commit or undo that, then resume"
            return _refused(ctx, why)
        repository.refresh_index()
        refusal = repository.move_worktree(old, new)
        if refusal is not None:
            return _refused(ctx, f"git refused to update the files: {refusal}")
    repository.free_branch(ref, new, began)
    if repository.set_ref(ref, new, old):
        return None
    undone = repository.move_worktree(new, old)
    kept = "" if undone is None else f" (the files could not be taken back: {undone})"
    tracker.show_again(ctx.run, repository.worktree)
    now = repository.resolve(ref)
    if now == old:
        why = f"git did not move {ref}: has a killed git left {ref}.lock? Remove it, then resume"
        return Event(signal=Signal.BRANCH_MOVED, note=why + kept)
    return Event(signal=Signal.BRANCH_MOVED, note=_moved_recipe(ctx, now, new) + kept)


def take_back(ctx: Context) -> tuple[str, ...]:
    """Undo what a crash left between files and branch, for a run that is given up.

    Returns:
        The files of the publication, where the user has changed them since: then they stay as they are.
    """
    repository, info = ctx.repository, ctx.run.info
    intended = ctx.run.journal.of(PublishIntended)
    old = info.start_commit
    if not intended or repository.branch() != info.branch or repository.resolve("HEAD") != old:
        return ()
    new = intended[-1].data.commits[-1]
    published = tuple(change.path for change in repository.diff(old, new))
    if repository.index_lock(_began(ctx)) is not None:
        return published
    if not repository.index_is(new):
        repository.take_back_half(old, new)
        return ()
    repository.refresh_index()
    return () if repository.move_worktree(new, old) is None else published


def _began(ctx: Context) -> float:
    """Return when this run began to publish, in seconds since the epoch: locks of ours are not older."""
    return datetime.fromisoformat(ctx.run.journal.of(PublishIntended)[0].at).timestamp()


def _refused(ctx: Context, why: str) -> Event:
    tracker.show_again(ctx.run, ctx.repository.worktree)
    return Event(signal=Signal.WORKTREE_CHANGED, note=why)


def _moved_recipe(ctx: Context, now: str | None, new: str) -> str:
    """Return what a person does when the branch is not where the run began: by comparing trees (architecture 8)."""
    repository, info = ctx.repository, ctx.run.info
    if now is not None and repository.tree_of(now) == repository.tree_of(new):
        return f"{info.branch} already carries exactly this result ({now[:12]}); nothing is left to do: abandon the run"
    return (
        f"{info.branch} moved from {info.start_commit[:12]} to {(now or 'nothing')[:12]}. The result is {new[:12]}: "
        # abandon first: it puts back the tracker files, which would be in the way
        f"redfirst abandon {info.run_id} and then git cherry-pick {info.start_commit[:12]}..{new[:12]}; or put the "
        f"branch back and redfirst resume {info.run_id}"
    )
