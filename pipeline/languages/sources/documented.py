"""Examples in documentation that are tests: what a change of production files leaves unchecked there, in words.

Of Rust, of Python, and of texts whose examples Python's doctest runs. Nothing here performs I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from pipeline.languages.sources.suite_changes import compare
from pipeline.languages.sources.suites import THE_FILE, Suite
from pipeline.languages.sources.weakening import MAX_BYTES
from pipeline.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipeline.languages.sources.suites import Test


def notes(
    changes: Iterable[tuple[str, bytes | None, bytes | None]], run: Mapping[str, frozenset[str]]
) -> tuple[str, ...]:
    """Return a sentence for each example that is gone, or that checks less or something else than it did.

    Args:
        changes: Files that are no tests, with their text before and after, None where there is none.
        run: The names, by file, of what had examples that were tests before.
    """
    read = [(path, suite_of(path, old), suite_of(path, new)) for path, old, new in changes]
    fresh = [
        (path, test)
        for path, old, new in read
        for name, test in (new.tests.items() if new is not None else ())
        if old is None or name not in old.tests
    ]
    lines: list[str] = []
    for path, old, new in read:
        if old is not None:
            elsewhere = [test for other, test in fresh if other != path]
            known = run.get(path)
            tested = Suite({name: test for name, test in old.tests.items() if _is_run(_item(name), known)})
            lines += (f"{path}: {line}" for line in _told(tested, new or Suite({}), elsewhere))
    return tuple(lines)


def _is_run(item: str, names: frozenset[str] | None) -> bool:
    return names is not None and (item == THE_FILE or item.rpartition(".")[2] in names)


def suite_of(path: str, source: bytes | None) -> Suite | None:
    """Return the examples of a file, None where it has none of a kind that is known."""
    if source is None or len(source) > MAX_BYTES:
        return None
    language = next((one for one in LANGUAGES.values() if path.endswith((*one.sources, *one.texts))), None)
    part = language.part("documented") if language is not None else None
    return cast("_Reader", part).read(source, path) if part is not None else None


class _Reader(Protocol):
    """A language's module `documented`."""

    def read(self, source: bytes, path: str) -> Suite | None: ...


def _told(old: Suite, new: Suite, elsewhere: Iterable[Test]) -> Iterator[str]:
    for found in dict.fromkeys(compare(old, new, elsewhere)):
        item = _item(found.test)
        yield f"an example in the documentation of {item} checks less than it did: {found.what} (line {found.line})"


def _item(name: str) -> str:
    return name.partition(" of ")[2]
