"""Checks the places that a plan and its tasks name against the repository: links, filters, files of the user."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from pipeline.reports.problems import Problem, misplaced

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pipeline.reports.fields import FileChange
    from pipeline.steps.context import Context

_LINK: Final = "120000"
_UNTRUE: Final = frozenset({"H007", "H008", "H016"})
"""What is said of a path as if it were a place of its own: not said of one that is none."""


def lint_places(ctx: Context, changes: Iterable[FileChange], asked: Collection[str] = ()) -> list[tuple[str, Problem]]:
    """Return what is wrong with the places of a draft's files, by the path.

    Of one place one thing is said: a path behind a link is none of its own, whatever else is wrong with it. Of the
    paths in `asked` git was asked already: they are looked at for links and twins only.
    """
    changes = tuple(changes)
    entries = ctx.repository.entries(ctx.state.head)
    links = {entry.path: entry.oid for entry in entries if entry.mode == _LINK}
    existing = {entry.path for entry in entries}

    def target(link: str) -> str:
        return (ctx.repository.blob(links[link]) or b"").decode(errors="surrogateescape")

    found = list(dict.fromkeys(misplaced(changes, existing, links, target)))
    wrong = {path for path, _ in found}
    paths = [path for path in dict.fromkeys(change.path for change in changes) if path not in {*wrong, *asked}]
    return [*found, *_filtered(ctx, paths), *_private(ctx, paths)] if paths else found


def true_of(problems: Iterable[Problem], places: Iterable[tuple[str, Problem]]) -> list[Problem]:
    """Return the problems without those that take a misplaced path for a place of its own."""
    starts = tuple(f"{path} " for path, problem in places if problem.rule in {"H023", "H024"})
    return [one for one in problems if not (one.rule in _UNTRUE and starts and one.message.startswith(starts))]


def _filtered(ctx: Context, paths: list[str]) -> Iterator[tuple[str, Problem]]:
    """Refuse paths whose content goes through a filter other than the user's LFS."""
    for path, why in ctx.repository.foreign_filters(ctx.checkout.tree, paths).items():
        way = "Leave it to a person and plan without it, or say in the plan that the issue cannot be done here"
        yield path, Problem(1, "H015", f"{path} {why}. {way}")


def _private(ctx: Context, paths: list[str]) -> Iterator[tuple[str, Problem]]:
    """Refuse new files where the user has one that git does not know: publication would never overwrite it."""
    if ctx.repository.branch() != ctx.run.info.branch:
        return
    for path in paths:
        met = ctx.repository.untracked_at(ctx.state.head, [path])
        if met:
            shown = f"git check-ignore -v -- {shlex.quote(met[0])}"
            why = f"{met[0]} is there in the user's worktree, and git does not know it ({shown}); choose another path"
            yield path, Problem(1, "H021", why)
