"""Tells a person what to do by hand where the result cannot go on the branch: only ways that were tried."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pipeline.runs import tracker
from pipeline.runs.events import PublishIntended
from pipeline.steps.publication.commits import signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.git import Repository
    from pipeline.steps.context import Context
    from pipeline.steps.publication.publisher import Publisher


def carried(ctx: Context, tip: str) -> str | None:
    """Return that *tip* has what was to be published, so that nothing is left to do; None where it has not.

    Either its files are exactly those (a crash had left them staged), or a person has put each commit there, conflicts
    resolved: `git cherry-pick` leaves the trailers as they are.
    """
    repository, info = ctx.repository, ctx.run.info
    intended = [line.data.commits for line in ctx.run.journal.of(PublishIntended)]
    name, branch = info.run_id, info.branch
    picked = repository.history(f"{info.start_commit}..{tip}", saying=f"Run-Id: {name}")
    mine = [commit for commit in picked if ("Run-Id", name) in repository.trailers(commit)]
    subjects = {repository.subject(commit) for commit in mine}
    if intended and {repository.subject(commit) for commit in intended[-1][:-1]} <= subjects and mine:
        closed = repository.subject(intended[-1][-1]) in subjects
        last = "" if closed else f", then redfirst issue status {ctx.issue} done"
        told = f"{branch} has the commits of {name}, as you put them there ({', '.join(one[:12] for one in mine)})"
        return f"{told}; nothing is left to do: redfirst abandon {name}{last}"
    trees = {repository.tree_of(commits[-1]) for commits in intended}
    if repository.tree_of(tip) not in trees:
        return None
    return f"{branch} already carries exactly this result ({tip[:12]}); nothing is left to do: redfirst abandon {name}"


def onto_line(ctx: Publisher) -> str:
    """Return the command that goes on onto the branch as it is now."""
    return f"redfirst resume {ctx.run.info.run_id} --onto {shlex.quote(ctx.run.info.branch)}"


def put_away(repository: Repository, paths: Sequence[str]) -> str:
    """Return, in words, how a person puts away what they have not committed in *paths*, and nothing else of theirs."""
    there = [repository.worktree / path for path in paths]
    if not all(place.is_symlink() or place.exists() for place in there):
        return "commit or undo them first"  # git stash refuses a path that is gone
    return f"put them away first: git stash push --include-untracked -- {shlex.join(paths)}"


def by_hand(ctx: Context, tip: str, commits: Sequence[str]) -> str:
    """Return how a person gets *commits*, which stand on the start, onto *tip* with git alone, or what is in the way.

    Nothing of it is measured there; but it was tried, without touching the user's files.
    """
    repository, info = ctx.repository, ctx.run.info
    name, first = info.run_id, info.start_commit[:12]
    picked = repository.pick(tip, commits, signature(ctx))
    if picked is None:
        return f"the result is {commits[-1][:12]}"
    done, why = picked
    work = len(commits) - 1
    if done < work or not work:
        stops = f"git cherry-pick {first}..{commits[-1][:12]} would stop: {why or 'it changes the tracker alone'}"
        again = f"redfirst abandon {name}, then redfirst run {ctx.issue} --previous {name}"
        return f"{stops}; to have it done again on {info.branch} as it is now, with this result to go by: {again}"
    shown = {*tracker.shown_paths(ctx.run, repository.worktree).values()}
    if not shown.isdisjoint(change.path for change in repository.diff(info.start_commit, tip)):
        done = work  # abandoning leaves the tracker's files changed, so that git would not touch them
    # where the tracker's commit alone does not fit: that is a command of ours
    last = f", then redfirst issue status {ctx.issue} done" if done == work else ""
    touched = {change.path for change in repository.diff(info.start_commit, commits[done - 1])}
    staged = set(repository.staged(tip))
    dirty = sorted(staged | (touched & {line[3:] for line in repository.status()} - shown))
    if dirty:
        return f"git cherry-pick would fit, but for what is not committed: {', '.join(dirty)}"
    end = commits[done - 1][:12]
    return f"not measured there, but it fits: redfirst abandon {name}, then git cherry-pick {first}..{end}{last}"
