"""Reads the paths that a Rust file contains: in `use`, in expressions, and in macros, where nothing is parsed.

Importing this module loads the parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.languages.rust.sources import parse
from pipeline.languages.sources.syntax_trees import text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

_NAMES: Final = frozenset({"identifier", "type_identifier", "crate", "self", "super", "metavariable"})
_PATHS: Final = frozenset({"scoped_identifier", "scoped_type_identifier"})

Path = tuple[str, ...]


@dataclass(frozen=True)
class Declared:
    """A module declared for a file of its own: where, its name, and the file in `#[path]`."""

    inside: Path
    name: str
    file: str | None


@dataclass(frozen=True)
class Facts:
    """The module declarations and paths in a file. `inside` of a path are the modules in the same file around it.

    Args:
        declared: `mod name;`.
        paths: (inside, path), of at least one name.
        brought: (inside, name, path) for each name that a `use` brings in; `*` for all of a module.
    """

    declared: tuple[Declared, ...]
    paths: frozenset[tuple[Path, Path]]
    brought: frozenset[tuple[Path, str, Path]]


def facts(source: str) -> Facts | None:
    """Return the module declarations and paths in a Rust source, None if it cannot be parsed."""
    root = parse(source.encode())
    if root.has_error:
        return None
    declared: list[Declared] = []
    paths: set[tuple[Path, Path]] = set()
    brought: set[tuple[Path, str, Path]] = set()
    waiting: list[tuple[Path, Node]] = [((), root)]
    while waiting:
        inside, node = waiting.pop()
        if node.type == "use_declaration":
            argument = node.child_by_field_name("argument")
            uses = list(_used(argument, ())) if argument is not None else []
            brought.update((inside, name, path) for name, path in uses)
            paths.update((inside, path) for _, path in uses)
        elif node.type in _PATHS:
            paths.add((inside, _segments(node)))
            waiting += ((inside, child) for child in node.named_children if child.type not in _PATHS)
        elif node.type == "token_tree":
            paths.update((inside, path) for path in _in_tokens(node))
        elif node.type == "mod_item":
            name = text(node.child_by_field_name("name"))
            body = node.child_by_field_name("body")
            if body is None:
                declared.append(Declared(inside, name, _path_attribute(node)))
            else:
                waiting.append(((*inside, name), body))
        else:
            waiting += ((inside, child) for child in node.named_children)
    return Facts(tuple(declared), frozenset(paths), frozenset(brought))


def _used(node: Node, before: Path) -> Iterator[tuple[str, Path]]:
    """Yield (name, path) for everything that a `use` imports."""
    match node.type:
        case "use_list":
            for child in node.named_children:
                yield from _used(child, before)
        case "scoped_use_list":
            path, inner = node.child_by_field_name("path"), node.child_by_field_name("list")
            if inner is not None:
                yield from _used(inner, (*before, *(_segments(path) if path is not None else ())))
        case "use_as_clause":
            path = node.child_by_field_name("path")
            if path is not None:
                yield text(node.child_by_field_name("alias")), (*before, *_segments(path))
        case "use_wildcard":
            yield "*", (*before, *(part for child in node.named_children for part in _segments(child)))
        case _:
            path = _segments(node)
            if path == ("self",) and before:
                yield before[-1], before
            elif path:
                yield path[-1], (*before, *path)


def _segments(node: Node) -> Path:
    """Return the names in a path, without generic arguments."""
    if node.type in _NAMES:
        return (text(node),)
    if node.type in _PATHS:
        path, name = node.child_by_field_name("path"), node.child_by_field_name("name")
        return (*(_segments(path) if path is not None else ()), *(_segments(name) if name is not None else ()))
    if node.type == "generic_type":
        inner = node.child_by_field_name("type")
        return _segments(inner) if inner is not None else ()
    return ()


def _in_tokens(node: Node) -> Iterator[Path]:
    """Yield the paths of at least two names among the tokens of a macro."""
    run: list[str] = []
    joined = False
    for leaf in _leaves(node.children):
        if leaf.type in _NAMES:
            run = [*run, text(leaf)] if joined else [text(leaf)]
            joined = False
        else:
            if leaf.type != "::" and len(run) > 1:
                yield tuple(run)
            joined = leaf.type == "::" and bool(run)
            run = run if joined else []


def _leaves(nodes: Iterable[Node]) -> Iterator[Node]:
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        if node.children:
            waiting += node.children[::-1]
        else:
            yield node


def _path_attribute(item: Node) -> str | None:
    """Return the file that `#[path = "..."]` names for a module."""
    above = item.prev_named_sibling
    while above is not None and above.type in {"attribute_item", "line_comment", "block_comment"}:
        attribute = text(above).replace(" ", "")
        if attribute.startswith('#[path="') and attribute.endswith('"]'):
            return attribute[8:-2]
        above = above.prev_named_sibling
    return None
