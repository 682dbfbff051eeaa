"""Sources that run while tests are compiled, where a language has such: told, since no test run shows it."""

from __future__ import annotations

from posixpath import basename
from typing import TYPE_CHECKING, Protocol, cast

from pipeline.languages.table import LANGUAGES, part_for

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Reader(Protocol):
    """A language's module `compile_time`."""

    def notes(self, path: str, manifests: Mapping[str, bytes]) -> tuple[str, ...]: ...
    def manifests_above(self, path: str) -> tuple[str, ...]: ...


def notes(path: str, manifests: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return a sentence if a changed file runs while tests are compiled, else nothing.

    Args:
        path: Of the changed file.
        manifests: What is known of the manifests of the tree, by their paths.
    """
    part = part_for(path, "compile_time")
    return cast("_Reader", part).notes(path, manifests) if part is not None else ()


def manifests_above(path: str) -> tuple[str, ...]:
    """Return where the manifests that decide it for a file may be; none where nothing of its language runs then."""
    part = part_for(path, "compile_time")
    return cast("_Reader", part).manifests_above(path) if part is not None else ()


def is_manifest(path: str) -> bool:
    """Return whether a file is one of these manifests."""
    return any(basename(path) in one.manifests for one in LANGUAGES.values() if "compile_time" in one.parts)
