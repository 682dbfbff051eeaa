"""Reads the examples in Rust documentation, which rustdoc runs as tests, by the item that they document."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pipeline.languages.sources.suites import Test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.languages.sources.suites import Check

_DOC: Final = re.compile(r"\s*//[/!] ?(?P<text>.*)")
_ITEM: Final = re.compile(
    r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|const|unsafe|extern(?:\s+\"\w+\")?)\s+)*"
    r"(?:fn|struct|enum|trait|type|mod|union|macro_rules!|const|static)\s+(?P<name>\w+)"
)
_FENCE: Final = re.compile(r"(?P<marks>`{3,}|~{3,})\s*(?P<info>[^`]*)")
_UNTESTED: Final = frozenset({"ignore", "no_run", "compile_fail", "should_panic", "text"})
_RUST: Final = frozenset({"rust", "edition2015", "edition2018", "edition2021", "edition2024", "standalone_crate"})


def examples(source: bytes, checks: Callable[[str], tuple[Check, ...]]) -> dict[str, Test]:
    """Return the code examples of a source by documented item; *checks* reads their code."""
    found: dict[str, Test] = {}
    count: Counter[str] = Counter()
    for item, line, marks, code in _examples(source.decode("utf-8", "replace").splitlines()):
        count[item] += 1
        number = f" {count[item]}" if count[item] > 1 else ""
        body = " ".join(" ".join(code).split())
        shown = "\n".join(part.removeprefix("# ") for part in code)
        said = Counter(f"{mark} is added" for mark in marks)
        found[f"example{number} of {item}"] = Test(line=line, body=body, checks=checks(shown), marks=said)
    return found


def _examples(lines: list[str]) -> Iterator[tuple[str, int, list[str], list[str]]]:
    at = 0
    while at < len(lines):
        end = at
        outer = not lines[at].lstrip().startswith("//!")
        while end < len(lines) and _DOC.match(lines[end]) and lines[end].lstrip().startswith("//!") is not outer:
            end += 1
        if end == at:
            at += 1
            continue
        comment = [found["text"] for line in lines[at:end] if (found := _DOC.match(line))]
        named = (_ITEM.match(line) for line in lines[end : end + 12])
        item = next((found["name"] for found in named if found), "the file") if outer else "the file"
        for line, marks, code in _fenced(comment):
            yield item, at + line + 1, marks, code
        at = end


def _fenced(comment: list[str]) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield the code blocks that rustdoc takes for Rust: line, attributes, and code lines."""
    at = 0
    while at < len(comment):
        opening = _FENCE.match(comment[at].strip())
        if opening is None:
            at += 1
            continue
        closing = next((n for n in range(at + 1, len(comment)) if comment[n].strip() == opening["marks"]), len(comment))
        words = [word for word in re.split(r"[\s,]+", opening["info"]) if word]
        if all(word in _UNTESTED | _RUST or word.startswith("ignore-") for word in words):
            marks = ["ignore" if word.startswith("ignore-") else word for word in words if word not in _RUST]
            yield at, marks, comment[at + 1 : closing]
        at = closing + 1
