"""What production code that looks at its own tests looks like: notes for @check on changes (ADR-R41).

Code under test shares the process with the test runner, so a forged result cannot be excluded by measuring. What can be
done is to show a reviewer the means of forgery wherever a change brings one in. A note refuses nothing: honest code
imports `ctypes` too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, cast

from pipeline.languages.sources.weakening import MAX_BYTES
from pipeline.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_COMPILED: Final = (
    *(".pyc", ".pyo", ".pyd", ".so", ".dylib", ".dll", ".node", ".wasm", ".o", ".a", ".lib", ".class", ".jar"),
    *(".syso", ".s", ".asm"),  # go links each of the first kind that lies in a package, and assembles the second
)


class _Reader(Protocol):
    """A language's module `forgery`."""

    def means(self, source: bytes, path: str, own: Collection[str]) -> Iterable[tuple[str, int]]:
        """Return what the file could forge results with, with its line.

        Raises:
            SyntaxError: it cannot be read; the message says why, after the path.
        """
        ...


def notes(path: str, old: bytes | None, new: bytes, own: Collection[str] = ()) -> tuple[str, ...]:
    """Return one sentence for each means of forging test results that `new` has and `old` has not.

    Args:
        path: Where the file is; its ending tells the language. Of one that is not known there are no notes.
        old: The content before, None for a new file.
        new: The content now.
        own: First names of the project's own modules; those on the file's own way are.
    """
    if path.lower().endswith(_COMPILED):
        return (f"{path} is compiled or machine code, which nobody reads; test results can be forged so",)
    language = next((one for one in LANGUAGES.values() if path.endswith((*one.sources, *one.further))), None)
    part = language.part("forgery") if language is not None else None
    if part is None:
        return ()
    if max(len(new), len(old or b"")) > MAX_BYTES:
        return (f"{path} is too large; what it does to its tests was not looked at",)
    reader = cast("_Reader", part)
    try:
        found = list(reader.means(new, path, own))
    except SyntaxError as error:
        return (f"{path} {error.msg}; what it does to its tests was not looked at",)
    try:
        # most changes bring no means at all: the old content is read only where there is something to compare
        before = {what for what, _ in reader.means(old, path, own)} if found and old is not None else set[str]()
    except SyntaxError:
        before = set[str]()
    first: dict[str, int] = {}
    for what, line in found:
        if what not in before:
            first.setdefault(what, line)
    return tuple(f"{path}:{line} {what}; test results can be forged so" for what, line in first.items())
