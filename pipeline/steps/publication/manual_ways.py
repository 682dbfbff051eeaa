"""Tells a person what to do by hand where the result cannot go on the branch: only ways that were tried."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pipeline.runs import tracker
from pipeline.runs.events import PublishIntended
from pipeline.steps.publication.commits import signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.steps.context import Context
    from pipeline.steps.publication.publisher import Publisher


def carried(ctx: Context, tip: str) -> str | None:
    """Return that *tip* has exactly the files that were to be published: a crash had left them staged; None if not."""
    trees = {ctx.repository.tree_of(line.data.commits[-1]) for line in ctx.run.journal.of(PublishIntended)}
    if ctx.repository.tree_of(tip) not in trees:
        return None
    name, branch = ctx.run.info.run_id, ctx.run.info.branch
    return f"{branch} already carries exactly this result ({tip[:12]}); nothing is left to do: redfirst abandon {name}"


def onto_line(ctx: Publisher) -> str:
    """Return the command that goes on onto the branch as it is now."""
    return f"redfirst resume {ctx.run.info.run_id} --onto {shlex.quote(ctx.run.info.branch)}"


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
        return f"git cherry-pick {first}..{commits[-1][:12]} would stop: {why or 'it changes the tracker alone'}"
    shown = {f"{tracker.FOLDER}/{name}" for name in tracker.shown_files(ctx.run)}
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
