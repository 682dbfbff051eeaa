"""The checks of a test file, in one form for all languages; `suite_changes` compares two of them.

Readers of the languages fill these values from syntax trees, so that reordering and reformatting are no change. Nothing
here performs I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

Words = tuple[str, ...]
"""A piece of source as tokens, without comments and layout."""

EXACT: Final = 4
"""The strength of a check for exactly one value."""
PART: Final = 3
"""The strength of a check for part of a value, for one of several, or for one kind of failure."""
RELATION: Final = 2
"""The strength of a check that leaves most values open: a different one, a larger one."""
PRESENCE: Final = 1
"""The strength of a check that something exists or is true."""
NOTHING: Final = 0
"""The strength of a check that can never fail."""

_SHOWN: Final = 60
_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class Check:
    """An assertion without its place.

    Args:
        words: What it compares; locals and constants of the file are written as what they are made of.
        kind: How: the operator, the method, the exception.
        strength: `EXACT` to `NOTHING`.
        tolerance: How far off the value may be, None if that is not said.
        line: Where.
        guards: How many conditions decide whether it is made at all.
        times: For how many values that are written down in place it is made.
    """

    words: Words
    kind: str
    strength: int
    tolerance: float | None = None
    line: int = field(default=0, compare=False)
    guards: int = field(default=0, compare=False)
    times: int = field(default=1, compare=False)


@dataclass(frozen=True)
class Test:
    """A test of a file, or a fixture or helper that serves tests.

    Args:
        line: Where it begins.
        body: A digest of it without its name, layout and comments.
        what: What it is to the file.
        checks: What it checks, the helpers of the same file that it calls included, in order.
        cases: How many cases are written down for it, None where they are not written down in place.
        values: The values in its cases and in the lists that it goes through.
        marks: Sentences on what keeps it from running or from failing, with how often each holds.
        parts: What a fixture does or gives, what a constant is made of: values, and names of what is called.
    """

    __test__ = False

    line: int
    body: str
    what: Literal["test", "fixture", "helper", "constant"] = "test"
    checks: tuple[Check, ...] = ()
    cases: int | None = 1
    values: frozenset[str] = frozenset()
    marks: Mapping[str, int] = field(default_factory=dict[str, int])
    parts: tuple[str, ...] = ()

    @property
    def counting(self) -> list[Check]:
        """Return the checks that can fail."""
        return [check for check in self.checks if check.strength > NOTHING]


@dataclass(frozen=True)
class Suite:
    """The tests and fixtures of a file by name, and counted sentences that hold for the whole file."""

    tests: Mapping[str, Test]
    whole: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Weakening:
    """A check that the tests lost, in words.

    Args:
        test: The test's name within the file; empty for the file as a whole.
        what: In words.
        line: Where, in the new text; in the old one for what is gone.
    """

    test: str
    what: str
    line: int

    def __str__(self) -> str:
        where = f"{self.test}: " if self.test else ""
        return f"{where}{self.what} (line {self.line})"


def lines_of(path: str, weakenings: Iterable[Weakening]) -> Iterator[str]:
    """Yield a line for each weakening in a file, with all tests that it concerns."""
    by_what: dict[str, list[Weakening]] = {}
    for one in weakenings:
        by_what.setdefault(one.what, []).append(one)
    for what, ones in by_what.items():
        yield f"{path}: {Weakening(', '.join(dict.fromkeys(one.test for one in ones)), what, ones[0].line)}"


def shown(text: str) -> str:
    """Return a piece of source, shortened to fit a line."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def listed(tests: Collection[str]) -> str:
    """Return the names of tests in words; of many, the first ones and the number of the others."""
    names = list(tests)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"
