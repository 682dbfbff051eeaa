"""Puts the run's commits on a base that is not its start, and measures their claims there as `verify` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.steps.publication.bases import blocked, meetings
from pipeline.steps.publication.holding import hold
from pipeline.steps.publication.trees import put_on
from pipeline.verification.recheck import recheck
from pipeline.verification.results import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.steps.context import Context
    from pipeline.steps.publication.bases import Base, Blocked
    from pipeline.steps.publication.commits import Planned
    from pipeline.steps.publication.publisher import Publisher

_BAD = frozenset({Status.REFUTED, Status.UNCHECKED})


def refusal_of_files(ctx: Publisher, base: Base, work: Sequence[Planned]) -> Blocked | None:
    """Return where files of the run meet those changed before *base*, unless they may be merged there and can be."""
    met = meetings(ctx, base, work)
    if not met:
        return None
    touching = tuple(dict.fromkeys((*_conflicts(ctx, base, work), *(one.path for one in met if one.cases))))
    if base.merging and not touching:
        return None
    why = [str(one) for one in met]
    why += [f"the two changes of {', '.join(touching)} do not merge"] if touching else []
    return blocked(ctx, base, why, mergeable=not touching)


def _conflicts(ctx: Publisher, base: Base, work: Iterable[Planned]) -> tuple[str, ...]:
    """Return the files in which the run's changes and those before *base* touch each other."""
    tree = ctx.repository.tree_of(base.commit)
    found: list[str] = []
    for each in work:
        put = put_on(ctx.repository, tree, each.before, each.after)
        tree = put.tree
        found += put.conflicts
    return tuple(dict.fromkeys(found))


async def unproven(ctx: Context, base: Base, commits: Sequence[str]) -> tuple[str, ...]:
    """Return what does not hold of the commits of work on *base*: a claim, or the suite over all of them.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    if commits:
        ctx.say(f"    {ctx.run.info.branch} moved: each commit is measured again on {base.commit[:12]}")
    for commit in commits:
        checked = await recheck(ctx, commit)
        if checked.status in _BAD:
            of = f"task {checked.task}" if checked.task else checked.subject
            return tuple(f"{of}: {problem}" for problem in checked.problems) or (f"{of}: {checked.why}",)
    if not commits:
        return ()
    tree, under = (ctx.repository.tree_of(commit) for commit in (commits[-1], base.commit))
    return (await hold(ctx, tree, under)).lost
