"""What mutmut and cargo-mutants print, read with bounds: hostile code ran beside them, so none of it is believed twice.

Formats: `mutmut results` and `mutmut show` of mutmut 3; `missed.txt`, `caught.txt`, `timeout.txt` and `unviable.txt` of
cargo-mutants, which are one mutant a line, `path:line:column: what`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_RESULT: Final = re.compile(r"\s{4}(?P<name>[^\s:]{1,300}): (?P<status>[a-z ]{1,40})")
_KEY: Final = re.compile(r"(?:.*\.)?x(?:ǁ(?P<owner>\w+)ǁ|_)(?P<name>\w+)__mutmut_\d+")
_HUNK: Final = re.compile(r"@@ -(?P<start>\d{1,9})(?:,\d+)? \+\d+(?:,\d+)? @@")
_MISSED: Final = re.compile(r"(?P<path>[^\s:][^:\n]{0,400}):(?P<line>\d{1,9}):\d{1,9}: (?P<what>.{1,400})")
_MOST_LINES: Final = 20_000


@dataclass(frozen=True)
class Found:
    """A fault that another program made, and where it says that this is."""

    path: str
    line: int
    what: str


@dataclass(frozen=True)
class Function:
    """A function as mutmut names it, with its lines, from 1."""

    owner: str
    name: str
    first: int
    last: int

    @property
    def pattern(self) -> str:
        """Return what names all of its mutants."""
        return f"*xǁ{self.owner}ǁ{self.name}__mutmut_*" if self.owner else f"*x_{self.name}__mutmut_*"


def functions(source: bytes, lines: Collection[int]) -> tuple[Function, ...]:
    """Return the functions and methods in which one of *lines* lies; none where the file cannot be parsed."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = [_function("", node) for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for owner in (node for node in module.body if isinstance(node, ast.ClassDef)):
        methods = (node for node in owner.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        found += [_function(owner.name, node) for node in methods]
    return tuple(each for each in found if any(each.first <= line <= each.last for line in lines))


def _function(owner: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    return Function(owner, node.name, node.lineno, node.end_lineno or node.lineno)


def mutmut_results(output: str) -> dict[str, str]:
    """Return how each mutant ended, by mutmut's name for it."""
    matches = (_RESULT.fullmatch(line) for line in output.splitlines()[:_MOST_LINES])
    return {match["name"]: match["status"] for match in matches if match is not None}


def mutmut_place(name: str, shown: str, path: str, source: bytes) -> Found | None:
    """Return where a mutant of mutmut lies in its file; None where its diff does not fit the file.

    Args:
        name: Mutmut's name for it.
        shown: What `mutmut show` prints: a diff of the function alone, counted from its first line.
        path: The file.
        source: Its content.
    """
    key = _KEY.fullmatch(name)
    if key is None:
        return None
    text = source.decode("utf-8", "replace").splitlines()
    for function in functions(source, range(1, len(text) + 1)):
        if (function.owner, function.name) != (key["owner"] or "", key["name"]):
            continue
        removed, added, offset = _first_change(shown)
        near = range(function.first, min(function.last, len(text)) + 1)
        places = [line for line in near if removed and text[line - 1].strip() == removed]
        if places:
            line = min(places, key=lambda each: (abs(each - function.first - offset), each))
            return Found(path, line, f"`{removed}` becomes `{added}`" if added else f"`{removed}` is left out")
    return None


def _first_change(shown: str) -> tuple[str, str, int]:
    """Return the first line that a diff removes, the first that it adds, and how far down the former is."""
    at = offset = -1
    removed = added = ""
    for line in shown.splitlines()[:_MOST_LINES]:
        if hunk := _HUNK.match(line):
            at = int(hunk["start"]) - 1
        elif at >= 0 and line.startswith("-") and not removed:
            removed, offset = line[1:].strip(), at
        elif at >= 0 and line.startswith("+") and not added:
            added = line[1:].strip()
        elif at >= 0:
            at += 1
    return removed, added, offset


def cargo_mutants_lines(output: str) -> Iterator[Found]:
    """Yield the mutants of one of cargo-mutants' lists."""
    for line in output.splitlines()[:_MOST_LINES]:
        found = _MISSED.fullmatch(line.strip())
        if found is not None:
            yield Found(found["path"], int(found["line"]), found["what"])
