"""Compares helper files of Python tests: what they lost, and which unchanged tests use it.

Nothing here performs I/O.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pipeline.languages.python.modules import is_module
from pipeline.languages.python.weakening import File, parsed
from pipeline.languages.sources.suite_changes import compare
from pipeline.languages.sources.suites import Suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class Lost:
    """A constant, function or fixture that lost something.

    Args:
        what: How it differs, in words.
        line: Where it stands now.
        names: The names of its file that are made of it.
        for_all: Whether one of them serves every test unasked.
    """

    what: str
    line: int
    names: frozenset[str]
    for_all: bool


def lost_in(before: bytes, after: bytes) -> tuple[Lost, ...]:
    """Return the losses of a helper file; empty if either text cannot be parsed."""
    trees = parsed(before), parsed(after)
    if trees[0] is None or trees[1] is None:
        return ()
    old, new = File(trees[0]), File(trees[1])
    now = new.helper_suite()
    was = Suite({name: one for name, one in old.helper_suite().tests.items() if name in now.tests})
    uses, for_all = old.uses(), old.for_all()
    weaker = list(compare(was, now))
    constants = {one.test for one in weaker if was.tests[one.test].what == "constant"}
    found: list[Lost] = []
    for one in weaker:
        if not constants.isdisjoint(_reached(one.test, uses)):
            continue  # it is the constant that changed
        what = f"constant {one.test}: {one.what}" if one.test in constants else f"{one.test}: {one.what}"
        names = frozenset(name for name in {one.test, *uses} if name == one.test or one.test in _reached(name, uses))
        found.append(Lost(what, one.line, names, not for_all.isdisjoint(names)))
    return tuple(found)


def users_in(path: str, source: bytes, helpers: str, lost: tuple[Lost, ...]) -> tuple[tuple[str, ...], ...]:
    """Return, for each loss in a helper file, the tests of another file that use it.

    Args:
        path: The file of tests.
        source: Its text.
        helpers: The path of the other file.
        lost: What is lost there.
    """
    module = parsed(source)
    pure = PurePosixPath(helpers)
    if module is None:
        return ((),) * len(lost)
    if pure.name == "conftest.py":  # its fixtures are asked for by name, by all that lies below it
        is_user = pure.parent in PurePosixPath(path).parents
    else:
        is_user = any(is_module(helpers, imported) for imported in _imported(module))
    file = File(module)
    uses = file.uses()
    tests = {name: _reached(name, uses) for name, node in file.tests.items() if node.name.startswith("test")}
    return tuple(
        tuple(name for name, used in tests.items() if is_user and (one.for_all or not used.isdisjoint(one.names)))
        for one in lost
    )


def _reached(name: str, uses: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the names that a name depends on, directly or indirectly."""
    found = {name}
    pending = [name]
    while pending:
        more = uses.get(pending.pop(), frozenset()) - found
        found |= more
        pending.extend(more)
    return found - {name}


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names)
            case ast.ImportFrom(module=origin, names=names):
                yield origin or ""
                yield from (f"{origin}.{one.name}" if origin else one.name for one in names)
            case _:
                pass
