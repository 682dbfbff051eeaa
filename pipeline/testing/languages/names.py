"""What can be said of a file by its path: its module, and whether it can have tests, or runs while they are compiled.

Each language knows its own.
"""

from __future__ import annotations

from posixpath import basename
from typing import TYPE_CHECKING

from pipeline.testing.languages.table import LANGUAGES, has_part, language_of, part_for
from pipeline.testing.languages.toolchain import says_test

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def compile_time_notes(path: str, manifests: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return a sentence if a changed file runs while tests are compiled, which no test run shows, else an empty tuple.

    Args:
        path: Of the changed file.
        manifests: What is known of the manifests of the tree, by their paths.
    """
    part = part_for(path, "compile_time")
    return part.notes(path, manifests) if part is not None else ()


def manifests_above(path: str) -> tuple[str, ...]:
    """Return the paths of manifests that decide whether a file runs then; none for other languages."""
    part = part_for(path, "compile_time")
    return part.manifests_above(path) if part is not None else ()


def is_manifest(path: str) -> bool:
    """Return whether a file is a manifest of a language that has such files."""
    return any(basename(path) in one.manifests for one in LANGUAGES.values() if "compile_time" in one.parts)
