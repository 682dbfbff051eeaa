"""Composes the tree to measure: tests of one tree and production of another, also where one file holds both.

A file of tests, and whatever else serves them, is taken whole. A production file with test regions is put together of
both (`regions_of`): overlaid whole it would bring production along that is not the other tree's, and lose its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pipeline.repo import PLAIN, Entry, Repository, TreeChange
from pipeline.testing.languages.readers import region_fault, regions_differ, splice
from pipeline.testing.languages.sources import Unspliced
from pipeline.testing.languages.table import has_part

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pipeline.judge.evidence.observation import Layout


class HasRepository(Protocol):
    """An object with a repository, such as every `MeasurementContext`."""

    @property
    def repository(self) -> Repository: ...  # noqa: D102


@dataclass(frozen=True)
class Composed:
    """A composed tree.

    `whole` says of each production file that could not be put together for certain why, path first. Such a file is
    the one of the tests' tree with its production: a test then finds more behaviour than it should, never less, so
    that it may pass where RED was to be shown, and no RED is made up. What another version of it had is not in the
    tree; who goes on from there has to be told.
    """

    tree: str
    whole: tuple[str, ...] = ()


def compose(
    ctx: HasRepository, tests_from: str, production_from: str, paths: Iterable[str], layout: Layout
) -> Composed:
    """Return a tree with the tests of one tree and everything else of another.

    Args:
        ctx: A run, or what measures without one.
        tests_from: The tree that has the tests.
        production_from: The tree that has all the rest.
        paths: What may differ for the tests' sake: test files, what serves them, production files with test regions.
        layout: Tells these apart.
    """
    wanted = tuple(dict.fromkeys(paths))
    if tests_from == production_from or not wanted:
        return Composed(production_from)
    there = {entry.path: entry for entry in ctx.repository.entries(tests_from)}
    here = {entry.path: entry for entry in ctx.repository.entries(production_from)}
    changes: list[TreeChange] = []
    whole: list[str] = []
    for path in wanted:
        tests, production = there.get(path), here.get(path)
        if not shares_file(path, layout) or (tests is not None and tests.mode not in PLAIN):
            if tests != production:
                changes.append(TreeChange(path, tests))
        elif tests is not None and (production is None or production.mode in PLAIN):
            found = _spliced(ctx, path, tests, production)
            if isinstance(found, Unspliced):
                whole.append(f"{path}: {found.why}")
                changes.append(TreeChange(path, tests))
            elif found != production:
                changes.append(TreeChange(path, found))
    return Composed(ctx.repository.build_tree(production_from, changes), tuple(whole))


def shares_file(path: str, layout: Layout) -> bool:
    """Return whether tests in a file would share it with production code."""
    return has_part(path, "test_regions") and not layout.is_test_side(path)


def with_other_regions(ctx: HasRepository, old: str, new: str, paths: Iterable[str], layout: Layout) -> tuple[str, ...]:
    """Return the production files of *paths* whose test regions differ between two trees.

    A file of which it is not certain where they are counts as one of them.
    """
    shared = [path for path in paths if shares_file(path, layout)]
    return tuple(path for path, before, after in both(ctx, old, new, shared) if regions_differ(before, after))


def with_other_code(
    ctx: HasRepository, old: str, new: str, test_paths: Collection[str], layout: Layout
) -> tuple[str, ...]:
    """Return the paths that differ between two trees in more than their tests; *test_paths* belong to the tests."""
    changed = [change.path for change in ctx.repository.diff(old, new)]
    shared = [path for path in changed if path in test_paths and shares_file(path, layout)]
    texts = both(ctx, old, new, shared)
    more = [p for p, before, after in texts if region_fault(p, before or b"", after or b"") is not None]
    return (*(path for path in changed if path not in test_paths), *more)


def both(ctx: HasRepository, old: str, new: str, paths: Sequence[str]) -> list[tuple[str, bytes | None, bytes | None]]:
    """Return each path with its bytes in both trees, None where a tree has no such file."""
    if not paths:
        return []
    found = [
        {entry.path: entry.oid for entry in ctx.repository.entries(tree, *paths) if entry.mode in PLAIN}
        for tree in (old, new)
    ]
    texts = ctx.repository.blobs(oid for oids in found for oid in oids.values())
    before, after = ({path: texts[oid] for path, oid in oids.items()} for oids in found)
    return [(path, before.get(path), after.get(path)) for path in paths]


def _spliced(ctx: HasRepository, path: str, tests: Entry, production: Entry | None) -> Entry | Unspliced | None:
    """Return the file composed of both versions; None where neither code nor a test region is left in it."""
    if tests == production:
        return production
    texts = ctx.repository.blobs(entry.oid for entry in (tests, production) if entry is not None)
    code = texts[production.oid] if production is not None else b""
    made = splice(texts[tests.oid], code)
    if isinstance(made, Unspliced):
        return made
    if production is None and not made.strip():
        return None
    mode = production.mode if production is not None else tests.mode
    if production is not None and made == code:
        return production
    return Entry(path, mode, tests.oid if made == texts[tests.oid] else ctx.repository.write_blob(made))


def own_files(paths: Iterable[str | None], layout: Layout) -> tuple[str, ...]:
    """Return those of *paths* that hold tests only. Tests beside code need no permission: the gate sees changes."""
    return tuple(dict.fromkeys(path for path in paths if path is not None and not shares_file(path, layout)))
