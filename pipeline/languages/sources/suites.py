"""What a file of tests checks, in one shape for every language; `suite_changes` compares two of them.

Readers of the languages fill these values from syntax trees, so that reordering and reformatting are no change. Nothing
here performs I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

EXACT: Final = 4
"""A check for one value."""
PART: Final = 3
"""A check for a part of a value, for one of several, or for one sort of failure."""
RELATION: Final = 2
"""A check that leaves most values open: another one, a larger one."""
PRESENCE: Final = 1
"""A check that there is something, or that something is true."""
NOTHING: Final = 0
"""Only says what it saw."""

THE_FILE: Final = "the file"
"""What the examples of a module, or of a text, document."""

_SHOWN: Final = 60
_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class Check:
    """One assertion, without its place.

    Args:
        subject: What is looked at, as source; a local is written as what it was made of.
        kind: How, in words: the operator, the method, the exception.
        strength: `EXACT` to `NOTHING`.
        expected: What it should be, as source.
        tolerance: How far off it may be, None if that is not said.
        line: Where.
        loose: How many parts of what is expected may be anything.
        guards: How many conditions decide whether it is made at all.
        times: For how many values that are written down in place it is made.
        allows: What it lets happen, by name, where that is a choice: the exceptions that may be raised, say.
        instances: What it is for each of the cases that are written down, empty where they are not known.
    """

    subject: str
    kind: str
    strength: int
    expected: str = ""
    tolerance: float | None = None
    line: int = field(default=0, compare=False)
    loose: int = 0
    guards: int = field(default=0, compare=False)
    times: int = field(default=1, compare=False)
    allows: frozenset[str] = frozenset()
    instances: tuple[Check, ...] = field(default=(), compare=False, repr=False)

    @property
    def made(self) -> tuple[Check, ...]:
        """Return what it is for each case, itself where there are none."""
        return self.instances or (self,)


@dataclass(frozen=True)
class Test:
    """One test or fixture of a file.

    Args:
        line: Where it begins.
        body: All of it without layout and comments: two with the same are the same.
        what: What it is to the file.
        checks: What it checks, the helpers of the same file that it calls included, in order.
        cases: How many cases are written down for it, None where they are not written down in place.
        marks: What may keep it from running or from failing, with how often it is said: `skip`, `should_panic` ...
        standins: How many things it replaces.
        timeout: Its time limit in seconds, None without one.
        swallowed: Where a failing assertion would be caught and forgotten, by line.
        vacuous: Where an assertion can never fail, by line.
        leaves: Where it may end before its assertions, by line.
        discarded: What it calls without looking at what comes of it, with the line.
        empty: It does or gives nothing.
        parts: What a fixture does, and what is in what it gives, each as source.
    """

    __test__ = False

    line: int
    body: str
    what: Literal["test", "fixture"] = "test"
    checks: tuple[Check, ...] = ()
    cases: int | None = 1
    marks: Mapping[str, int] = field(default_factory=dict[str, int])
    standins: int = 0
    timeout: float | None = None
    swallowed: tuple[int, ...] = ()
    vacuous: tuple[int, ...] = ()
    leaves: tuple[int, ...] = ()
    discarded: tuple[tuple[str, int], ...] = ()
    empty: bool = False
    parts: tuple[str, ...] = ()

    @property
    def counting(self) -> list[Check]:
        """Return the checks that can fail."""
        return [check for check in self.checks if check.strength > NOTHING]


@dataclass(frozen=True)
class Suite:
    """A file: its tests and fixtures by name, and sentences that hold for all of it, with how often each is said."""

    tests: Mapping[str, Test]
    whole: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Weakening:
    """One thing that the tests would no longer notice.

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


def either(checks: Sequence[Check], whole: str, line: int) -> Check:
    """Return the check that one of several things holds: of one subject if all are about the same."""
    subjects = {check.subject for check in checks}
    if len(subjects) != 1:
        return Check(whole, "one or the other", PRESENCE, line=line)
    expected = " or ".join(f"{check.kind} {check.expected}".strip() for check in checks)
    return Check(
        subjects.pop(), "one of several", min(PART, *(check.strength for check in checks)), expected, line=line
    )


def shown(text: str) -> str:
    """Return a piece of source, cut to what a line can take."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def listed(tests: Collection[str]) -> str:
    """Return the names of tests, of many the first ones and how many more there are."""
    names = list(tests)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"
