"""Combines the test layouts of several runners, or of one in a subfolder, into one `Layout`.

Each runner has its own names for test files and its own folders for them; names of one in the folders of another would
make tests of production. So names and folders are bound together, as patterns of whole paths. A star in such a pattern
also stands for `/`: what a runner counts is always counted, and at times a file of its name in a folder further down.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import Layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EVERYWHERE: Final = "."
_FOLDERS: Final = (
    "test", "tests", "__tests__", "spec", "specs", "test[_-]?*", "tests[_-]?*", "?*[_-]test", "?*[_-]tests"
)  # fmt: skip
"""Folder names that `Layout` takes for tests."""
_MOST: Final = 64
"""The most test folders beside code that are listed one by one; of more only their top folders are."""


def below(layout: Layout, folder: str) -> Layout:
    """Return the layout of a runner in `folder`, with paths of the repository."""
    collected = frozenset(f"{folder}/{path}" for path in layout.collected)
    if not layout.testpaths:
        patterns = tuple(f"{folder}/{deep}{name}" for name in _bound(layout) for deep in _depths(name))
        return Layout(testpaths=(EVERYWHERE,), python_files=patterns, collected=collected)
    return Layout(
        testpaths=tuple(posixpath.normpath(f"{folder}/{entry}") for entry in map(_plain, layout.testpaths)),
        python_files=tuple(f"{folder}/{name}" if "/" in name else name for name in layout.python_files),
        collected=collected,
    )


def together(layouts: Sequence[Layout]) -> Layout:
    """Return one layout for several runners of a repository; for a single runner its own."""
    if len(layouts) == 1:
        return layouts[0]
    return Layout(
        testpaths=(EVERYWHERE,),
        python_files=tuple(dict.fromkeys(name for layout in layouts for name in _bound(layout))),
        collected=frozenset(path for layout in layouts for path in layout.collected),
    )


def _bound(layout: Layout) -> Iterator[str]:
    """Yield patterns of test files that need no test folders beside them."""
    folders = [_plain(entry) for entry in layout.testpaths]
    homes = _homes(layout)
    for name in layout.python_files:
        if "/" in name or EVERYWHERE in folders or (homes is None and not folders):
            yield name
        elif folders:
            yield from (pattern for folder in folders for pattern in _in(folder, name))
        else:
            yield from (pattern for home in homes or () for pattern in _beside(home, name))
            yield from (pattern for folder in _FOLDERS for pattern in (*_in(folder, name), *_in(f"*/{folder}", name)))


def _homes(layout: Layout) -> tuple[str, ...] | None:
    """Return the folders with tests whose names do not say so; None if there are no tests yet."""
    if not layout.collected:
        return None
    parents = {posixpath.dirname(path) for path in layout.collected}
    found = sorted(parent for parent in parents if not Layout().is_test_side(f"{parent}/any"))
    if len(found) <= _MOST:
        return tuple(found)
    return tuple(sorted({f"{home.partition('/')[0]}/*" if home else home for home in found}))


def _in(folder: str, name: str) -> tuple[str, ...]:
    return f"{folder}/{name}", f"{folder}/*/{name}"


def _beside(home: str, name: str) -> tuple[str, ...]:
    if home.endswith("/*"):
        return _in(home.removesuffix("/*"), name)
    if home:
        return (f"{home}/{name}",)
    # a slash in the pattern makes it one of whole paths; no path of a repository begins with one
    return (name if name[0] in "*?[" else f"[{name[0]}/]{name[1:]}",)


def _depths(name: str) -> tuple[str, ...]:
    """Return the prefixes between a folder and a pattern: a bare name also matches in subfolders."""
    return ("",) if "/" in name else ("", "*/")


def _plain(entry: str) -> str:
    return entry.removeprefix("./").strip("/") or EVERYWHERE
