"""Reads attributes of pytest's nodes and reports in every version of pytest."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def skip_reason(longrepr: Any) -> Any:
    """Return the reason of a skip, whose report is usually (path, line, reason)."""
    return longrepr[2] if isinstance(longrepr, tuple) else longrepr  # pyright: ignore[reportUnknownVariableType]  of Any


def path_of(node: Any) -> str:
    """Return the path of a node's file; `path` exists from pytest 7 on, `fspath` before."""
    return str(getattr(node, "path", None) or getattr(node, "fspath", ""))


def is_same(one: str, other: str) -> bool:
    """Return whether two paths are the same file, through links."""
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


def is_doctest(node: Any) -> bool:
    """Return whether a node stands for doctests; production and manuals have them without being test files."""
    return any("doctest" in kind.__name__.lower() for kind in type(node).__mro__)
