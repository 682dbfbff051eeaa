"""Relations between issues: finds cycles of parents and of dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def find_cycle(start: str, following: Callable[[str], Iterable[str]]) -> tuple[str, ...] | None:
    """Return a cycle that can be reached from `start`, its first node repeated at its end; None if there is none.

    Depth first without recursion; a chain of thousands of issues is only a chain.
    """
    path: list[str] = [start]
    branches = [iter(following(start))]
    finished: set[str] = set()
    on_path = {start}
    while branches:
        node = next(branches[-1], None)
        if node is None:
            branches.pop()
            left = path.pop()
            on_path.discard(left)
            finished.add(left)
        elif node in on_path:
            return (*path[path.index(node) :], node)
        elif node not in finished:
            path.append(node)
            on_path.add(node)
            branches.append(iter(following(node)))
    return None


def arrows(cycle: tuple[str, ...]) -> str:
    """Return the nodes of a cycle joined by arrows."""
    return " -> ".join(cycle)
