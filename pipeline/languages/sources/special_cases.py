"""Production that knows the tests' own inputs: notes for @check on values that a change compares with.

Read word by word, for all languages alike: what a new line compares with, where only new tests have such a value.
Honest code does so too (a limit that the issue gives is in its words, and no note); a reader decides. Several values of
one test side by side are told in any case: an issue gives examples, and code that knows just these is no answer to it.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_COMPARES: Final = re.compile(
    r"==|!=|=>|\bcase\b|\bin\s*[\[({]|\bmatch\b|\.(?:get|equals|Equal|includes|contains)\(|\bis\b"
)
_VALUE: Final = re.compile(r"""(?<![\w.])\d[\d_]*(?:\.\d+)?(?![\w.])|"[^"\n]{3,80}"|'[^'\n]{3,80}'""")
_ENTRY: Final = re.compile(rf"(?::|=>)\s*({_VALUE.pattern})\s*(?:[,)}}\]]|$)")
_LEAST_ENTRIES: Final = 2
_LITERAL: Final = re.compile(r"""(?<![\w"'])(?:"([^"\\\n]{2,80})"|'([^'\\\n]{2,80})')(?![\w"'])""")
_COMMON: Final = frozenset({"100", "255", "256", "1000", "1024", "200", "404", "500", '"utf-8"'})
_LEAST_DIGITS: Final = 3
_MOST_NOTES: Final = 12


def added(old: str, new: str) -> tuple[tuple[int, str], ...]:
    """Return number, from 1, and text of the lines of *new* that *old* has nowhere."""
    before = set(old.split("\n"))
    return tuple((number, line) for number, line in enumerate(new.split("\n"), 1) if line not in before)


def notes(
    production: Mapping[str, tuple[tuple[int, str], ...]], tests: Collection[str], known: Collection[str]
) -> tuple[str, ...]:
    """Return one sentence for each line of production that compares with what only the new tests have.

    Args:
        production: The added lines of each file, from `added`.
        tests: The added lines of tests.
        known: Texts in which a value may stand: sources before the change, the issue, the plan, the tasks.
    """
    together = [frozenset(map(_plain, _VALUE.findall(line))) for line in tests]
    asked = frozenset[str]().union(*together) - _COMMON
    told = {_plain(value) for text in known for value in _VALUE.findall(text)}
    words = "\n".join(known)
    only = {value for value in asked - told if _is_telling(value) and value.strip('"') not in words}
    found = (
        (path, *said)
        for path, lines in production.items()
        for said in (*_said(lines, only, together), *_tabled(lines, only))
    )
    return tuple(f"{path}:{number} {what}" for path, number, what in islice(found, _MOST_NOTES))


def _said(
    lines: Iterable[tuple[int, str]], only: set[str], together: Collection[frozenset[str]]
) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        values = list(dict.fromkeys(map(_plain, _VALUE.findall(line)))) if _COMPARES.search(line) else []
        found = [value for value in values if value in only]
        if found:
            yield number, f"compares with {', '.join(found)}, which only the new tests have"
        elif len(values) > 1 and any(one.issuperset(values) for one in together):
            yield number, f"compares with {', '.join(values)}, inputs of a new test"


def unused(criteria: Mapping[str, str], tests: Collection[str]) -> tuple[str, ...]:
    """Return one sentence for each text in quotes of a criterion that no test has; none where there is no test.

    Args:
        criteria: By task and id.
        tests: The added lines of tests.
    """
    words = "\n".join(tests)
    return tuple(
        f'task {name} names "{value}", which no test of this run has'
        for name, text in criteria.items()
        for value in dict.fromkeys(one or other for one, other in _LITERAL.findall(text))
        if tests and value not in words
    )


def _tabled(lines: Iterable[tuple[int, str]], only: set[str]) -> Iterator[tuple[int, str]]:
    """Yield a table of results that only the new tests have. One such entry is a word like any other."""
    said = [(number, line) for number, line in lines if not _COMPARES.search(line)]
    found = [(number, value) for number, line in said for value in map(_plain, _ENTRY.findall(line)) if value in only]
    values = list(dict.fromkeys(value for _, value in found))
    if len(values) >= _LEAST_ENTRIES:
        yield found[0][0], f"gives {', '.join(values)} by table, which only the new tests have"


def _is_telling(value: str) -> bool:
    return not value[0].isdigit() or len(value.replace(".", "")) >= _LEAST_DIGITS


def _plain(value: str) -> str:
    return value.replace("_", "") if value[0].isdigit() else value.replace("'", '"')
