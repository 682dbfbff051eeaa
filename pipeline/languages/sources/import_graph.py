"""Which file of a project uses which: read from the imports of its sources, language by language.

It says what would be loaded, and rather too much than too little. Parsers of languages that are not Python are loaded
when a source of that language is read.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.evidence.impact import Graph


class Reader(Protocol):
    """Reads the files of one language."""

    def __call__(self, sources: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield each source of the language that can be read, with the files that it uses.

        Args:
            sources: All files of the project that are known, those of other languages and the manifests included.
        """
        ...


SCRIPTS: Final = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
MANIFESTS: Final = frozenset({"Cargo.toml", "package.json", "go.mod"})
CODE: Final = frozenset({".py", ".rs", ".go", *SCRIPTS})


def is_read(path: str) -> bool:
    """Return whether the text of a file at this path says anything about imports."""
    pure = PurePosixPath(path)
    return pure.suffix in CODE or pure.name in MANIFESTS


def import_graph(sources: Mapping[str, str]) -> Graph:
    """Return the graph of the project's files, given their texts by path."""
    endings = {PurePosixPath(path).suffix for path in sources}
    return {path: used - {path} for reader in _readers(endings) for path, used in reader(sources)}


def _readers(endings: set[str]) -> Iterator[Reader]:
    if ".py" in endings:
        from pipeline.languages.python.import_graph import read  # noqa: PLC0415  (each only where such files are)

        yield read
    if ".rs" in endings:
        from pipeline.languages.rust.import_graph import read as read_rust  # noqa: PLC0415

        yield read_rust
    if ".go" in endings:
        from pipeline.languages.go.import_graph import read as read_go  # noqa: PLC0415

        yield read_go
    if not endings.isdisjoint(SCRIPTS):
        from pipeline.languages.javascript.import_graph import read as read_script  # noqa: PLC0415

        yield read_script
