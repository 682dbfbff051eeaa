"""Finds sources that run while tests are compiled, for languages that have such; a test run does not show them."""

from __future__ import annotations

from posixpath import basename
from typing import TYPE_CHECKING, Protocol, cast

from pipeline.languages.table import LANGUAGES, part_for

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Reader(Protocol):
    """The protocol of a language's module `compile_time`."""

    def notes(self, path: str, manifests: Mapping[str, bytes]) -> tuple[str, ...]: ...
    def manifests_above(self, path: str) -> tuple[str, ...]: ...


def notes(path: str, manifests: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return a sentence if a changed file runs while tests are compiled, else an empty tuple.

    Args:
        path: Of the changed file.
        manifests: What is known of the manifests of the tree, by their paths.
    """
    part = part_for(path, "compile_time")
    return cast("_Reader", part).notes(path, manifests) if part is not None else ()


def manifests_above(path: str) -> tuple[str, ...]:
    """Return the paths of manifests that decide whether a file runs then; none for other languages."""
    part = part_for(path, "compile_time")
    return cast("_Reader", part).manifests_above(path) if part is not None else ()


def is_manifest(path: str) -> bool:
    """Return whether a file is a manifest of such a language."""
    return any(basename(path) in one.manifests for one in LANGUAGES.values() if "compile_time" in one.parts)
