"""Says which files of a project a source mentions by their names: those that it may load, in any language.

Nothing is parsed, so it is rather too much than too little: a word of a comment counts. A file that stands for its
folder (`__init__.py`, `index.js`, `mod.rs`) is called like it, and so is all of a Go package. What a file takes from
another one and passes on is mentioned by whoever mentions both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.impact import Graph, own_name, telling_name
from pipeline.testing.languages.table import GO, LANGUAGES, PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


_WORD: Final = re.compile(r"\w+")
_STATEMENT: Final = re.compile(r"\n(?=\w)")
"""Where a statement ends, however many lines it has: the next one begins at the margin, and with a word."""
_SYNTAX: Final = frozenset(
    ("as", "const", "crate", "default", "export", "from", "import", "mod", "pub", "require", "self", "super", "use")
)
_SERVE_ALL_BELOW: Final = ("conftest.py", PYTHON.package_file)
"""Files that are loaded for each test of their folder and below."""
_GO_TEST: Final = "_test.go"


_Statement = tuple[frozenset[str], set[str], bool]
"""The words of a statement, the files that they mention, and whether it takes all of these."""


def is_source(path: str) -> bool:
    """Return whether a file at this path is code of one of our languages."""
    return any(path.endswith(language.sources) for language in LANGUAGES.values())


def mention_graph(sources: Mapping[str, str]) -> Graph:
    """Return which of the sources each of them may load."""
    names = _Names(sources)
    words = {path: frozenset(_WORD.findall(text)) for path, text in sources.items()}
    direct = {path: names.mentioned(words[path]) - {path} for path in sources}
    packages: dict[str, set[str]] = defaultdict(set)
    for path in filter(_is_of_package, sources):
        packages[_folder(path)].add(path)
    # those that stand for their folder
    fronts = {p: tuple(_statements(text, names)) for p, text in sources.items() if telling_name(p) != own_name(p)}
    graph: dict[str, frozenset[str]] = {}
    for path in sources:
        serving = {str(folder / name) for folder in PurePosixPath(path).parents for name in _SERVE_ALL_BELOW}
        found = {*direct[path], *(serving & sources.keys())}
        if path.endswith(GO.sources):
            found |= packages[_folder(path)]
        passing = [front for front in direct[path] if front in fronts]
        for front in passing:
            passed_on = set(_passed_on(fronts[front], words[path] - names.words[front], names))
            passing += passed_on & fronts.keys() - found
            found |= passed_on
        graph[path] = frozenset(found - {path})
    return graph


class _Names:
    """The files by the words of their names; one without a telling name is mentioned by every source."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.words: dict[str, frozenset[str]] = {}
        self._by_word: dict[str, list[tuple[frozenset[str], str]]] = defaultdict(list)
        for path in paths:
            name = PurePosixPath(path).parent.name if _is_of_package(path) else telling_name(path)
            stem = PurePosixPath(path).name.partition(".")[0]  # with the underscore that a private module has in code
            name = stem if name == own_name(path) else name
            spellings = {frozenset(_WORD.findall(name)), frozenset(_WORD.findall(name.replace("-", "_")))}
            self.words[path] = frozenset[str]().union(*spellings)
            for spelling in spellings:
                self._by_word[max(spelling, key=len, default="")].append((spelling, path))

    def mentioned(self, words: frozenset[str]) -> set[str]:
        """Return the files whose names stand in a text of these words."""
        near = {*words, ""} & self._by_word.keys()
        return {path for word in near for spelling, path in self._by_word[word] if spelling <= words}


def _is_of_package(path: str) -> bool:
    """Return whether a file is compiled with all of its folder, and is called like that."""
    return path.endswith(GO.sources) and not path.endswith(_GO_TEST)


def _statements(front: str, names: _Names) -> Iterator[_Statement]:
    for statement in _STATEMENT.split(front):
        said = frozenset(_WORD.findall(statement))
        if mentioned := names.mentioned(said):
            yield said, mentioned, "*" in statement


def _passed_on(front: Iterable[_Statement], words: frozenset[str], names: _Names) -> Iterator[str]:
    """Yield the files from which a front takes something that these words name."""
    for said, mentioned, takes_all in front:
        named = (said & words) - _SYNTAX
        yield from (path for path in mentioned if takes_all or named - names.words[path])


def _folder(path: str) -> str:
    return str(PurePosixPath(path).parent)
