"""Builds the import graph of a project's files from its sources, language by language.

It says what would be loaded, and rather too much than too little. Parsers of languages that are not Python are loaded
when a source of that language is read.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol, cast

from pipeline.languages.table import LANGUAGES, has_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.evidence.impact import Graph


class Reader(Protocol):
    """The protocol of a reader of one language's imports."""

    def __call__(self, sources: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield each readable source of the language with the files that it imports.

        Args:
            sources: All files of the project that are known, those of other languages and the manifests included.
        """
        ...


def is_read(path: str) -> bool:
    """Return whether a file at this path can contain or affect imports."""
    return has_part(path, "import_graph") or PurePosixPath(path).name in _manifests()


def import_graph(sources: Mapping[str, str]) -> Graph:
    """Return the import graph of the project's files, given as texts by path."""
    return {path: used - {path} for reader in _readers(tuple(sources)) for path, used in reader(sources)}


def _manifests() -> set[str]:
    return {name for language in LANGUAGES.values() for name in language.manifests}


def _readers(paths: tuple[str, ...]) -> Iterator[Reader]:
    for language in LANGUAGES.values():
        part = language.part("import_graph") if any(path.endswith(language.sources) for path in paths) else None
        if part is not None:
            yield cast("Reader", part.read)
