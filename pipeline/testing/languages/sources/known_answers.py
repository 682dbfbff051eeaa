"""Finds production code that contains the tests' expected values, as notes for @check.

Read word by word, for all languages alike. Honest code has such values, too (a limit that the issue gives is in its
words, and no note); a reader decides. Several values of one test side by side are told in any case: an issue gives
examples, and code that knows just these is no answer to it.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    Lines = tuple[tuple[int, str], ...]
    """Lines of a file with their numbers, from 1."""

_STRING: Final = r"\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`"
_VALUE: Final = re.compile(r"""(?<![\w.])\d[\d_]*(?:\.\d+)?(?![\w.])|"[^"\n]{3,80}"|'[^'\n]{3,80}'""")
_COMPARES: Final = re.compile(
    r"==|!=|=>|\bcase\b|\bin\s*[\[({]|\bmatch\b|\.(?:get|equals|Equal|includes|contains)\(|\bis\b"
)
_ENTRY: Final = re.compile(rf"(?::|=>)\s*({_VALUE.pattern})\s*(?:[,)}}\]]|$)")
_QUOTED: Final = re.compile(r"""(?<![\w"'])(?:"([^"\\\n]{1,80})"|'([^'\\\n]{1,80})')(?![\w"'])""")
_COMMON: Final = frozenset({"100", "255", "256", "1000", "1024", "200", "404", "500", '"utf-8"'})
_LEAST_DIGITS: Final = 3
_DEFINES: Final = re.compile(
    r"^\s*(?:pub(?:\([a-z]+\))? |export |async |default |static )*(?:def|fn|func|function)\s+(\w+)\s*[(<]"
)
_ARGUMENTS: Final = rf"\((?P<given>(?:{_STRING}|[^()\"'`]|\([^()]*\)){{1,300}})\)"
_NAMED: Final = re.compile(
    rf"(?:[brf]?(?:{_STRING}))|(?P<name>\b(?!(?:[Tt]rue|[Ff]alse|None|nil|null|undefined)\b)[A-Za-z_]\w*\b(?!\s*=[^=]))"
)
_COMMENT: Final = re.compile(r"\s*(?://|/\*|\*\s|#\s)")
_MOST_NOTES: Final = 12


def added(old: str, new: str) -> Lines:
    """Return the lines of *new* that *old* does not have, with their numbers from 1."""
    before = set(old.split("\n"))
    return tuple((number, line) for number, line in enumerate(new.split("\n"), 1) if line not in before)


def notes(production: Mapping[str, Lines], tests: Collection[str], known: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each place in production that contains inputs or results of the new tests.

    Args:
        production: The added lines of each file, from `added`.
        tests: The added lines of tests.
        known: Texts in which a value may stand: sources before the change, the issue, the plan, the tasks.
    """
    cases = [frozenset(_values(line)) for line in tests]
    words = "\n".join(known)
    asked = frozenset[str]().union(*cases) - _COMMON - set(_values(words))
    only = {value for value in asked if _is_telling(value) and value.strip('"') not in words}
    text = "\n".join(tests)
    sources = {path: tuple(one for one in lines if not _COMMENT.match(one[1])) for path, lines in production.items()}
    found = (
        f"{path}:{number} {what}"
        for path, code in sources.items()
        for number, what in (*_compared(code, only, cases), *_by_table(code, only), *_by_one_example(code, text))
    )
    return tuple(islice(found, _MOST_NOTES))


def unused(criteria: Mapping[str, str], tests: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each quoted text of a criterion that no test contains; none if there are no tests.

    Args:
        criteria: By task and id.
        tests: The added lines of tests.
    """
    words = "\n".join(tests)
    return tuple(
        f'task {name} names "{value}", which no test of this run has'
        for name, text in criteria.items()
        for value in dict.fromkeys(one or other for one, other in _QUOTED.findall(text))
        if tests and len(value) > 1 and value not in words
    )


def _compared(lines: Lines, only: set[str], cases: Iterable[frozenset[str]]) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        values = _values(line) if _COMPARES.search(line) else []
        found = [value for value in values if value in only]
        if found:
            yield number, f"compares with {', '.join(found)}, which only the new tests have"
        elif len(values) > 1 and any(case.issuperset(values) for case in cases):
            yield number, f"compares with {', '.join(values)}, inputs of a new test"


def _by_table(lines: Lines, only: set[str]) -> Iterator[tuple[int, str]]:
    """Yield production's table of results if several of its entries are values that only the new tests have."""
    first: dict[str, int] = {}
    for number, line in lines:
        for entry in () if _COMPARES.search(line) else _ENTRY.findall(line):
            first.setdefault(_spelling(entry), number)
    found = [value for value in first if value in only]
    if len(found) > 1:
        yield first[found[0]], f"gives {', '.join(found)} by table, which only the new tests have"


def _by_one_example(lines: Lines, tests: str) -> Iterator[tuple[int, str]]:
    """Yield new functions that the tests always call with the same literals: a constant would do."""
    for number, line in lines:
        defined = _DEFINES.match(line)
        if defined is not None:
            name = defined[1]
            calls = re.finditer(rf"(?<!def )(?<!fn )(?<!func )(?<!function )\b{name}(?:{_ARGUMENTS}|\()", tests)
            examples = {" ".join((call["given"] or "").split()) for call in calls}
            given = examples.pop() if len(examples) == 1 else ""
            if given and not any(one["name"] for one in _NAMED.finditer(given)):
                yield number, f"`{name}` is called by the new tests with one example only, `{name}({given})`"


def _values(text: str) -> list[str]:
    return list(dict.fromkeys(map(_spelling, _VALUE.findall(text))))


def _spelling(value: str) -> str:
    """Return a value for comparison: numbers without underscores, strings in double quotes."""
    return value.replace("_", "") if value[0].isdigit() else value.replace("'", '"')


def _is_telling(value: str) -> bool:
    return not value[0].isdigit() or len(value.replace(".", "")) >= _LEAST_DIGITS
