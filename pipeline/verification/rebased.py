"""Compares files of judged tests in a rebased commit: what differs by the work of others alone.

The evidence has the file as it was judged, and the tree that it was judged over. A rebase brings the change between
the two onto what others made of the file. Where exactly that gives the file of the commit, nothing of its own differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.measure.composed_trees import both

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.measure.measuring import MeasurementContext


def changed_by_others(
    ctx: MeasurementContext, judged: tuple[str, str], commit: tuple[str, str], paths: Iterable[str]
) -> frozenset[str]:
    """Return those of *paths* in which others alone made the difference between what was judged and the commit.

    Args:
        ctx: What has the repository.
        judged: The tree that the tests were written over, and the one that they were judged in.
        commit: The trees of the commit's parent and of the commit.
        paths: Files of tests, or that serve them.
    """
    if any(ctx.repository.resolve(f"{tree}^{{tree}}") is None for tree in judged):
        return frozenset()
    wanted = sorted(paths)
    before = {path: (base, theirs) for path, base, theirs in both(ctx, judged[0], commit[0], wanted)}
    found: set[str] = set()
    for path, own, now in both(ctx, judged[1], commit[1], wanted):
        base, theirs = before[path]
        if base is None or theirs is None or own is None or base == theirs:
            continue  # nobody else was there, or the file came or went
        if now is not None and ctx.repository.merged(base, theirs, own) == now:
            found.add(path)
    return frozenset(found)
