"""Constants of Python files beside tests: what a change takes out of them, and which tests of another file use them.

Nothing here performs I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from pipeline.evidence.modules import is_module
from pipeline.languages.python import weakening as weakening_python


@dataclass(frozen=True)
class Lost:
    """A constant of which something is gone.

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
    """Return what a file of helpers lost; nothing where either text cannot be parsed."""
    old, new = weakening_python.file_of(before), weakening_python.file_of(after)
    if old is None or new is None:
        return ()
    found = weakening_python.helpers_lost(old, new)
    return tuple(Lost(one.what, one.line, names, for_all) for one, names, for_all in found)


def users_in(path: str, source: bytes, helpers: str, lost: tuple[Lost, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the tests of a file that use what is lost in another one, for each of it.

    Args:
        path: The file of tests.
        source: Its text.
        helpers: The path of the other file.
        lost: What is lost there.
    """
    file = weakening_python.file_of(source)
    return tuple(_users(path, file, helpers, one) if file is not None else () for one in lost)


def _users(path: str, file: weakening_python.File, helpers: str, lost: Lost) -> tuple[str, ...]:
    pure = PurePosixPath(helpers)
    if pure.name == "conftest.py":  # its fixtures are asked for by name, by all that lies below it
        below = pure.parent in PurePosixPath(path).parents
        return weakening_python.tests_with(file, None if lost.for_all else lost.names) if below else ()
    return weakening_python.users(file, lost.names, lambda module: is_module(helpers, module))
