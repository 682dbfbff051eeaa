"""What can be said of a file by its path: its module, and whether it can have tests. Each language knows its own."""

from __future__ import annotations

from pipeline.languages.table import has_part, language_of
from pipeline.languages.toolchain import says_test


def is_module(path: str, module: str) -> bool:
    """Return whether a file is the module of a name, in whatever source folder."""
    language = language_of(path)
    return language is not None and language.toolchain.is_module(path, module)


def is_part_of(path: str, module: str) -> bool:
    """Return whether a file is the module of a name, or lies in the package of that name."""
    language = language_of(path)
    return language is not None and language.toolchain.is_part_of(path, module)


def is_plausible(path: str) -> bool:
    """Return whether `path` can be a test file: a folder or its name contains test or spec.

    A language where tests stand in other places says so itself.
    """
    language = language_of(path)
    return says_test(path) if language is None else language.toolchain.is_plausible(path)


def why_overlooked(path: str) -> str | None:
    """Return why a test at `path` would not be run, None if it would."""
    language = language_of(path)
    return None if language is None else language.toolchain.why_overlooked(path)


def may_share_file(path: str) -> bool:
    """Return whether tests may be in a production file."""
    return has_part(path, "test_regions")
