"""Says how a worktree that no run needs is removed with its branch, where nothing else goes with it.

git removes ignored files of a worktree without a word, and `branch -D` any commit.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from pipeline.outcomes import Outcome, Reason
from pipeline.runs.store import WORKFLOW, run_names, run_ref
from pipeline.service.landing import landed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.git import Repository
    from pipeline.runs.run import Run

_SUBMODULE: Final = "160000"
_SHOWN: Final = 5


def removal(repository: Repository, run: Run) -> tuple[str, ...]:
    """Return the command that removes the worktree and the branch of a run that was rejected, abandoned, or has landed.

    There is none where git would refuse, or something be lost.

    Args:
        repository: Seen from the worktree of the run.
        run: The run.
    """
    is_linked = repository.git_dir != repository.common_dir
    is_over = (
        run.state.reason is Reason.ABANDONED or run.state.outcome is Outcome.REJECTED or landed(repository, run) is True
    )
    if not (is_linked and is_over) or any(_in_the_way(repository, run)):
        return ()
    main = f"git -C {shlex.quote(str(repository.main_checkout))}"
    ref = run_ref(repository, run.info.run_id)
    place, branch = shlex.quote(str(repository.worktree)), shlex.quote(run.info.branch)
    return (f"{main} worktree remove {place} && {main} branch -D {branch}   # its record stays in {ref}",)


def what_stays(repository: Repository, run: Run) -> str | None:
    """Return, in words, what keeps the worktree and the branch of an abandoned run; None where nothing does."""
    reasons = list(_in_the_way(repository, run)) if repository.git_dir != repository.common_dir else []
    return f"the worktree {repository.worktree} and its branch stay: {'; '.join(reasons)}" if reasons else None


def _in_the_way(repository: Repository, run: Run) -> Iterator[str]:
    info, stands_on = run.info, repository.branch()
    tip = repository.resolve(f"refs/heads/{info.branch}")
    if stands_on != info.branch or tip is None:
        yield f"it stands on {stands_on or 'no branch'}, not on {info.branch}"
        return
    base = repository.resolve(info.base_branch)
    if base is None or not repository.is_ancestor(tip, base):
        yield f"{info.branch} has commits that {info.base_branch} does not have"
    place = repository.worktree.resolve()
    if any(each.path == place and each.locked is not None for each in repository.worktrees()):
        yield "it is locked"
    if any(entry.mode == _SUBMODULE for entry in repository.entries(tip)):
        yield "it has submodules"
    others = [name for name in run_names(repository) if name != info.run_id]
    if others:
        yield f"records of {', '.join(others)}"
    files = sorted({line[3:] for line in repository.status(ignored=True)} - {f"{WORKFLOW}/"})
    if files:
        more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
        yield f"not committed: {', '.join(files[:_SHOWN])}{more}"
