"""New functions that the new tests call with one example only: a constant would pass these tests (ADR-R111).

Read word by word, for all languages alike. A call whose arguments are not all written down says nothing: a loop or a
table of cases may give it many. Nothing here performs I/O, and nothing decides: a reader does.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_DEFINES: Final = re.compile(
    r"^\s*(?:pub(?:\([a-z]+\))? |export |async |default |static )*(?:def|fn|func|function)\s+(\w+)\s*[(<]"
)
_STRING: Final = re.compile(r"""[brf]?("[^"\n]*"|'[^'\n]*'|`[^`\n]*`)""")
_KEYWORD: Final = re.compile(r"\b[A-Za-z_]\w*\s*=(?!=)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_LITERALS: Final = frozenset({"True", "False", "None", "true", "false", "nil", "null", "undefined"})
_LONGEST: Final = 300
_MOST_NOTES: Final = 8
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


def notes(production: Mapping[str, tuple[tuple[int, str], ...]], tests: Collection[str]) -> tuple[str, ...]:
    """Return one sentence for each new function that the new tests call, and always with the same literals.

    Args:
        production: The added lines of each file, with their numbers.
        tests: The added lines of tests, in order.
    """
    text = "\n".join(tests)
    found = (
        f"{path}:{number} `{name}` is called by the new tests with one example only, `{name}({given})`"
        for path, lines in production.items()
        for number, line in lines
        if (defined := _DEFINES.match(line)) is not None
        for name in [defined[1]]
        if (given := _only_example(name, text)) is not None
    )
    return tuple(islice(found, _MOST_NOTES))


def _only_example(name: str, text: str) -> str | None:
    """Return the arguments of all calls of a function, where they are the same and written down; else None."""
    examples: set[str] = set()
    for call in re.finditer(rf"(?<!def )(?<!fn )(?<!func )(?<!function )\b{re.escape(name)}\(", text):
        given = _arguments(text[call.end() : call.end() + _LONGEST])
        if given is None or not _is_written_down(given):
            return None
        examples.add(" ".join(given.split()))
    return examples.pop() if len(examples) == 1 and examples != {""} else None


def _arguments(text: str) -> str | None:
    """Return what stands before the bracket that closes a call, None where it is too far away."""
    plain = _STRING.sub(lambda found: "_" * len(found[0]), text)
    depth = 0
    for at, letter in enumerate(plain):
        if letter in _CLOSING:
            depth += 1
        elif letter in _CLOSING.values():
            if not depth:
                return text[:at]
            depth -= 1
    return None


def _is_written_down(given: str) -> bool:
    plain = _KEYWORD.sub("", _STRING.sub("", given))
    return set(_names(plain)) <= _LITERALS


def _names(text: str) -> Iterator[str]:
    return (found[0] for found in _NAME.finditer(text))
