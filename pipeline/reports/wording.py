"""Heuristics for the rules of `hygiene` on lines and code blocks of a draft.

Each is written against its false alarms first: `await`, "wait, then retry", a folder called TODO, a forbidden command
that is named in order to forbid it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipeline.reports.markdown import Text

_START: Final = r"(?:^[\s>*+\d.)-]*|[.!?:;]\s+|[(\u2026\u2013\u2014]\s*|\b(?:no,|oh,?|hm+,?|well,)\s+)"
_AFTER_ACTUALLY: Final = r"(?:,|\s+(?:no|let|we|i|it|this|that|maybe|better|instead)\b)"
_AFTER_WAIT: Final = r"\s*(?:\.{2,}|\u2026|!|[\u2013\u2014]|,(?!\s*(?:then|until|for|up|at)\b))"
_MARK: Final = r"(?:TODO|FIXME|XXX)"
_UNFINISHED: Final = (
    (re.compile(_START + "actually" + _AFTER_ACTUALLY, re.IGNORECASE), "a change of mind"),
    (re.compile(_START + "wait" + _AFTER_WAIT, re.IGNORECASE), "a change of mind"),
    (re.compile(r"\blet me (?:re-?consider|re-?think|think|start over)\b", re.IGNORECASE), "a change of mind"),
    (re.compile(r"\bon second thought\b|\bscratch that\b|\bhmm+\b", re.IGNORECASE), "a change of mind"),
    (re.compile(rf"(?<![\w/]){_MARK}\s*(?::|\()|\({_MARK}\)|^[\s*+>-]*{_MARK}\s*(?:$|-\s)"), "an open end"),
    (re.compile(r"(?<![\w/])TBD\b|\?\?\?"), "an open end"),
)

_SHELL: Final = r"(?:\S*/)?(?:ba|z|da|k|fi)?sh"
_SHELLS: Final = (
    (re.compile(rf"(?<![\w./-]){_SHELL}\s+(?:-\S+\s+)*-[a-z]*c\b"), "a shell that is given a command line"),
    (re.compile(rf"\bnix\s+(?:develop|shell)\b[^|;&]*\s(?:-c|--command)\s+{_SHELL}\b"), "a shell in the nix wrapper"),
    (re.compile(r"(?<![\w-])cd\s+(?:\"[^\"]+\"|'[^']+'|[^\s;&|]+)\s*(?:&&|;)"), "a change of folder before a command"),
)
_FORBIDDING: Final = re.compile(
    r"\b(?:never|not|no|without|instead of|avoid\w*|remov\w+|replac\w+"
    r"|forb[ia]d\w*|reject\w*|refus\w+|den(?:y|ie[sd]))\b",
    re.IGNORECASE,
)
_REACH: Final = 40

_FUNCTION: Final = re.compile(
    r"^(?P<indent>\s*)(?:(?:async\s+)?def\s+\w+.*:\s*(?:#.*)?$"
    r"|(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|const|unsafe)\s+)*fn\s+\w+.*\{\s*$"
    r"|(?:export\s+)?(?:default\s+)?(?:async\s+)?function\b.*\{\s*$)"
)
_TRIVIAL: Final = re.compile(
    r"^\s*(?:\.\.\.|pass|raise NotImplementedError.*|todo!\(.*\);?|unimplemented!\(.*\);?|[\"'#/*].*|[})\]]*[;,]?)\s*$"
)
_DEFINES: Final = re.compile(r"^\s*(?:pub\s+)?(?:async\s+)?(?:def|fn|class|struct|enum|function)\s+(?P<name>\w+)")

_STRUCTURAL: Final = re.compile(
    r"\b(?:has|have|contains?|with)\s+(?:\d+|one|two|three|four|five|six)\s+"
    r"(?:variants?|fields?|members?|attributes?|methods?|parameters?)\b",
    re.IGNORECASE,
)
_VAGUE: Final = re.compile(
    r"(?:(?:it|everything|all|the|code|feature|change|function|implementation|bug)\s+)*"
    r"(?:works?|is|are|behaves?)?\s*"
    r"(?:good|fine|ok(?:ay)?|correct(?:ly)?|properly|well|clean|as expected|done|fixed|implemented|complete)?[.!]?",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(r"[\w)\]'*]\s?\?(?=\s|$|[)*_])")


def unfinished(prose: str) -> str | None:
    """Return the kind of unfinished text in a line of prose, None if there is none."""
    return next((what for pattern, what in _UNFINISHED if pattern.search(prose.strip())), None)


def hidden_shell(text: str) -> tuple[str, str] | None:
    """Return the fault of a command in the line and the command's beginning, None if there is none.

    A line that forbids the command just before naming it is no use of it.
    """
    for pattern, what in _SHELLS:
        found = pattern.search(text)
        if found and not _FORBIDDING.search(text[max(0, found.start() - _REACH) : found.start()]):
            return what, found[0].strip()
    return None


def bodies(lines: Sequence[Text]) -> Iterator[tuple[int, int]]:
    """Yield the line of each function head and the number of statements in its body.

    Stubs, comments, docstrings in one line and closing brackets are no statements.
    """
    for index, line in enumerate(lines):
        head = _FUNCTION.match(line.text)
        if head is None:
            continue
        statements = 0
        previous = line.number
        for inner in lines[index + 1 :]:
            is_blank = not inner.text.strip()
            is_outside = not is_blank and len(inner.text) - len(inner.text.lstrip()) <= len(head["indent"])
            if inner.number != previous + 1 or is_outside:
                break
            previous = inner.number
            statements += not is_blank and not _TRIVIAL.match(inner.text)
        yield line.number, statements


def defined_names(lines: Iterable[str]) -> frozenset[str]:
    """Return the names of functions and types that a block defines."""
    return frozenset(found["name"] for line in lines if (found := _DEFINES.match(line)))


def is_structural(outcome: str) -> bool:
    """Return whether an outcome only states what something consists of, which every stub fulfils."""
    return _STRUCTURAL.search(outcome) is not None


def is_vague(criterion: str) -> bool:
    """Return whether a criterion is too vague for any observation to break it."""
    return _VAGUE.fullmatch(criterion.strip()) is not None


def asks(prose: str) -> bool:
    """Return whether a line of prose asks an open question."""
    return _QUESTION.search(prose) is not None
