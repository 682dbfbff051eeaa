"""Which file of a project uses which: read from the imports of its sources, language by language.

It says what would be loaded, and rather too much than too little. Parsers of languages that are not Python are loaded
when a source of that language is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class Graph:
    """What each source uses directly. `uses` has a key for every file whose imports are known.

    `unread` are the sources that could not be read: nothing is known of what they use.
    """

    uses: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    unread: frozenset[str] = frozenset()


class Reader(Protocol):
    """Reads the files of one language."""

    def __call__(self, sources: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str] | None]]:
        """Yield each source of the language with the files that it uses, None where it cannot be read.

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
    uses: dict[str, frozenset[str]] = {}
    unread: set[str] = set()
    for reader in _readers(endings):
        for path, used in reader(sources):
            if used is None:
                unread.add(path)
            else:
                uses[path] = used - {path}
    return Graph(uses, frozenset(unread))


def _readers(endings: set[str]) -> Iterator[Reader]:
    if ".py" in endings:
        from pipeline.evidence.imports_python import read  # noqa: PLC0415  (each only where such files are)

        yield read
    if ".rs" in endings:
        from pipeline.evidence.imports_rust import read as read_rust  # noqa: PLC0415

        yield read_rust
    if ".go" in endings:
        from pipeline.evidence.imports_go import read as read_go  # noqa: PLC0415

        yield read_go
    if not endings.isdisjoint(SCRIPTS):
        from pipeline.evidence.imports_script import read as read_script  # noqa: PLC0415

        yield read_script
