"""Puts the work of a task over a head that it did not begin with, and finds the files that are in the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.git import TreeChange
from pipeline.routing.state import Trees
from pipeline.steps.publication.trees import put_on

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.evidence.observation import Layout
    from pipeline.git import Repository
    from pipeline.routing.state import TaskState


@dataclass(frozen=True)
class OverHead:
    """The trees of a task over the head, without the files that were changed there too, by tests and by production."""

    trees: Trees
    tests_in_the_way: tuple[str, ...] = ()
    code_in_the_way: tuple[str, ...] = ()


def over_head(repository: Repository, task: TaskState, head: str, layout: Layout) -> OverHead:
    """Return the task's work over *head*; a file that both changed is the head's.

    Two changes of one file are not merged: what comes of that nobody wrote.
    """
    start = task.start or head
    stubs, _ = _put(repository, head, start, task.stubs)
    red, in_tests = _put(repository, head, start, task.red)
    code, in_code = _put(repository, head, start, task.candidate)
    tests = tuple(path for path in in_tests if layout.is_test_side(path))
    trees = Trees(start=head, stubs=stubs, tests=red, red=None if tests else red, candidate=code)
    return OverHead(trees, tests, tuple(path for path in dict.fromkeys((*in_tests, *in_code)) if path not in tests))


def _put(repository: Repository, head: str, start: str, tree: str | None) -> tuple[str | None, tuple[str, ...]]:
    if tree is None:
        return None, ()
    put = put_on(repository, head, start, tree)
    met = (*put.conflicts, *put.merged)
    return (_as_in(repository, put.tree, head, put.merged) if put.merged else put.tree), met


def _as_in(repository: Repository, tree: str, other: str, paths: Iterable[str]) -> str:
    """Return a tree in which these files are those of another."""
    names = tuple(paths)
    there = {entry.path: entry for entry in repository.entries(other, *names)}
    return repository.build_tree(tree, [TreeChange(path, there.get(path)) for path in names])
