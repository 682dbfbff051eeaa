"""Finds words by which production code could forge test results, as notes for @check on a change (ADR-R41).

Code under test shares the process with the test runner, so a forged result cannot be excluded by measuring. What can be
done is to show a reviewer the means of forgery wherever a change brings one in. A note refuses nothing: honest code
imports `ctypes` too. Words are looked for in the text: one that is put together from pieces is not seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pipeline.testing.languages.sources import Unspliced
from pipeline.testing.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_COMPILED: Final = (
    *(".pyc", ".pyo", ".pyd", ".so", ".dylib", ".dll", ".node", ".wasm", ".o", ".a", ".lib", ".class", ".jar"),
    *(".syso", ".s", ".asm"),  # go links each of the first kind that lies in a package, and assembles the second
)
_EVERYWHERE: Final = {"the recorder of test results": "/proc/ REDFIRST_* redfirst-recorder redfirst_evidence"}
_BRACKETS: Final = re.compile(r"(?<=[\w)\]])\[\s*(['\"`])(\w+)\1\s*\]")
_SETTERS: Final = (
    r"(?:setattr|delattr|__setattr__|__delattr__|vars"
    r"|Object\.(?:define\w+|assign|setPrototypeOf)|Reflect\.(?:set\w*|define\w+|delete\w+))"
)
_SHOWN: Final = 60
_MAX_BYTES: Final = 512 * 1024
"""The largest file that is read; people write smaller ones."""


@dataclass(frozen=True)
class Words:
    """The words of one language that detect or influence tests: `WORDS` of its module `forgery`.

    Args:
        comment: How a line begins that is a comment, as a pattern.
        words: Names, with blanks between them, by what they reach for; `*` stands for the rest of a name.
        shapes: Patterns of what is more than a name, by what it reaches for.
        shared: Names of what the tests use, too. Whoever changes it decides what they see.
        imports: A pattern of a statement whose names are shared, too.
        everyday: A pattern of what of that honest code changes.
        regions: A function that finds tests beside production code in one file: they may say all of it.
    """

    comment: str
    words: Mapping[str, str]
    shapes: Mapping[str, str]
    shared: str = ""
    imports: str = "(?!)"
    everyday: str = "(?!)"
    regions: Callable[[bytes], dict[str, bytes] | Unspliced] | None = None

    def in_source(self, source: bytes) -> dict[str, int]:
        """Return the suspicious findings in a source, as sentences without a subject, with the first line of each."""
        text = self._production(source)
        first: dict[str, int] = {}
        for at, what in sorted(self._found(text)):
            first.setdefault(what, text.count("\n", 0, at) + 1)
        return first

    def _production(self, source: bytes) -> str:
        """Return the source without tests and comments, line numbers kept; `a["b"]` becomes `a.b`."""
        regions = self.regions(source) if self.regions is not None else {}
        for region in () if isinstance(regions, Unspliced) else regions.values():
            source = source.replace(region, b"\n" * region.count(b"\n"))
        text = re.sub(r"\r\n?|[\u2028\u2029]", "\n", source.decode("utf-8", "replace"))
        # a line that looks like a comment may end a text or another comment, or have code within a text: then it stays
        text = re.sub(rf"^[ \t]*{self.comment}[^\n\"'`*{{]*$", "", text, flags=re.MULTILINE)
        return _BRACKETS.sub(r".\2", text)

    def _found(self, text: str) -> Iterator[tuple[int, str]]:
        for why, pattern in self._patterns:
            for one in pattern.finditer(text):
                yield one.start(), f"has `{' '.join(one[0].split())[:_SHOWN]}` ({why})"
        statements = re.finditer(self.imports, text, re.MULTILINE)
        imported = {name for one in statements for name in re.findall(r"\w+", one[0])}
        names = _any_of([*self.shared.split(), *sorted(imported)])
        assigned = rf"(?:^|[;{{}})=>?]|&&|\|\|)[ \t]*{names}(?:\.\w+|\[[^]\n]*\])+(?=\s*(?::[^=\n]+)?=(?![=>]))"
        for one in re.finditer(rf"{assigned}|\b{_SETTERS}\(\s*{names}[\w.]*", text, re.MULTILINE):
            what = one[0].lstrip(" \t;{})=>&|?")
            if re.match(self.everyday, what) is None:
                yield one.end(), f"changes `{what}` (what the tests use, too)"

    @cached_property
    def _patterns(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        words = {**self.words, **_EVERYWHERE}
        return (
            *((why, re.compile(_any_of(names.split()))) for why, names in words.items()),
            *((why, re.compile(shape, re.MULTILINE)) for why, shape in self.shapes.items()),
        )


def _any_of(names: Iterable[str]) -> str:
    """Return a pattern that matches any of these names as whole words."""
    patterns = (re.escape(name).replace(r"\*", r"\w*") for name in names)
    return rf"(?<!\w)(?:{'|'.join(patterns) or '(?!)'})(?!(?<=\w)\w)"


def notes(path: str, old: bytes | None, new: bytes) -> tuple[str, ...]:
    """Return a sentence for each means of forging test results that is in `new` and not in `old`.

    Args:
        path: Where the file is; its ending tells the language. Of one that is not known there are no notes.
        old: The content before, None for a new file.
        new: The content now.
    """
    if path.lower().endswith(_COMPILED):
        return (f"{path} is compiled or machine code, which nobody reads; test results can be forged so",)
    language = next((one for one in LANGUAGES.values() if path.endswith((*one.sources, *one.further))), None)
    part = language.part("forgery") if language is not None else None
    if part is None:
        return ()
    if max(len(new), len(old or b"")) > _MAX_BYTES:
        return (f"{path} is too large; what it does to its tests was not looked at",)
    words: Words = part.WORDS
    before = words.in_source(old) if old is not None else {}
    brought = ((what, line) for what, line in words.in_source(new).items() if what not in before)
    return tuple(f"{path}:{line} {what}; test results can be forged so" for what, line in brought)
