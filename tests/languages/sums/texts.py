"""Sums and checks as text: `NAME PARAMETER = EXPRESSION`, and `TEST: NAME NUMBER = NUMBER`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

TODO: Final = "todo"
_SUM: Final = re.compile(r"(?P<name>\w+) (?P<parameter>\w+) = (?P<body>.+)")
_CHECK: Final = re.compile(r"(?P<test>\w+): (?P<name>\w+) (?P<given>-?\d+) = (?P<expected>-?\d+)")


@dataclass(frozen=True)
class Sum:
    """One function: it adds, and multiplies, from left to right."""

    name: str
    parameter: str
    body: str
    line: int

    def of(self, given: int) -> int:
        """Return its value.

        Raises:
            NotImplementedError: its body is `todo`.
            ValueError: its body is none.
        """
        if self.body == TODO:
            raise NotImplementedError
        first, *rest = self.body.split(" ")
        value = self._number(first, given)
        for sign, word in zip(rest[::2], rest[1::2], strict=True):
            value = value * self._number(word, given) if sign == "*" else value + self._number(word, given)
        return value

    def _number(self, word: str, given: int) -> int:
        return given if word == self.parameter else int(word)


@dataclass(frozen=True)
class Check:
    """One test."""

    test: str
    name: str
    given: int
    expected: int
    line: int
    text: str


def sums(text: str) -> dict[str, Sum]:
    """Return the functions of a source.

    Raises:
        ValueError: a line is none; the message has its number.
    """
    found = (Sum(match["name"], match["parameter"], match["body"], line) for line, match in _lines(text, _SUM))
    return {one.name: one for one in found}


def checks(text: str) -> tuple[Check, ...]:
    """Return the tests of a file.

    Raises:
        ValueError: a line is none; the message has its number.
    """
    return tuple(
        Check(match["test"], match["name"], int(match["given"]), int(match["expected"]), line, match[0])
        for line, match in _lines(text, _CHECK)
    )


def _lines(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        match = pattern.fullmatch(line.strip())
        if match is not None:
            yield number, match
        elif line.strip() and not line.startswith("#"):
            message = f"line {number} is no sum and no check: {line}"
            raise ValueError(message)
