"""Finds the panics in a test's output, each with its thread, and the one by which the test failed.

A panic is text on stderr, between whatever else the test prints there. The one that decides is the last of the test's
own thread, so nothing printed before it takes its place. The others say which code a test got to that a caught panic,
or one of another thread, has ended; for them text counts less: the runtime's own frame has to be the innermost, and a
thread has one number. Code that prints all of this by hand is believed: that is as much as one who prints a panic and
returns an error is believed, and both stand in the test for everybody to read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

_PANIC: Final = re.compile(
    r"^thread '(?P<thread>.*)'(?: \((?P<number>\d+)\))? panicked at (?P<file>[^\n]+?):(?P<line>\d+):\d+:\n",
    re.MULTILINE,
)
_STACK: Final = re.compile(r"^stack backtrace:\n", re.MULTILINE)
_NOTE: Final = re.compile(r"^note: (?:run with|Some details)", re.MULTILINE)
_RUNTIME: Final = re.compile(
    r" *0: (?:__rustc(?:\[[0-9a-f]+\])?::)?(?:rust_begin_unwind|std::panicking::begin_panic\w*)(?:::.*)?\n"
)
_SCOPED: Final = "a scoped thread panicked"
_SCOPE: Final = re.compile(r"^ *\d+: std::thread::scoped::scope\b", re.MULTILINE)


@dataclass(frozen=True)
class Panic:
    """One panic. `number` is the thread's, empty before Rust 1.91; `body` is all that follows up to the next panic.

    `place` is the file, as the compiler was given it, and the line.
    """

    thread: str
    number: str
    place: tuple[str, int]
    body: str

    @cached_property
    def message(self) -> str:
        """Return the panic's message."""
        ends = [found.start() for found in (_STACK.search(self.body), _NOTE.search(self.body)) if found is not None]
        return (self.body[: min(ends)] if ends else self.body).strip()

    @cached_property
    def stack(self) -> str:
        """Return the panic's backtrace, empty if it has none."""
        found = _STACK.search(self.body)
        return self.body[found.end() :] if found is not None else ""

    @property
    def is_raised(self) -> bool:
        """Return whether the backtrace begins in the runtime's panic code."""
        return _RUNTIME.match(self.stack) is not None

    @property
    def passes_on(self) -> bool:
        """Return whether the panic only reports that a thread of `std::thread::scope` has panicked."""
        return self.message == _SCOPED and _SCOPE.search(self.stack) is not None


@dataclass(frozen=True)
class Panics:
    """The panics of one test, in the order of the output."""

    all: tuple[Panic, ...]

    def decisive(self, test: str) -> Panic | None:
        """Return the panic by which the test failed, None if there is none.

        Args:
            test: The name of the test's thread.
        """
        last = self._last(test)
        if last is None or not last.passes_on:
            return last
        before = self.all[: self.all.index(last)]
        others = (panic for panic in reversed(before) if panic.is_raised and not panic.passes_on)
        return next((panic for panic in others if not _is_same_thread(panic, last)), last)

    def raised(self, test: str) -> tuple[Panic, ...]:
        """Return the panics that were really raised, as far as text can show; caught ones and other threads' included.

        Args:
            test: The name of the test's thread.
        """
        last = self._last(test)
        return tuple(panic for panic in self.all if panic.is_raised and (last is None or _fits(panic, last)))

    def _last(self, test: str) -> Panic | None:
        own = (panic for panic in reversed(self.all) if panic.thread in {test, "main"})
        return next(own, self.all[-1] if self.all else None)


def read_panics(printed: str) -> Panics:
    """Return the panics in what a test printed."""
    found = list(_PANIC.finditer(printed))
    following = [match.start() for match in found[1:]] + [len(printed)] * bool(found)
    return Panics(tuple(_panic(match, printed[match.end() : end]) for match, end in zip(found, following, strict=True)))


def _panic(head: re.Match[str], body: str) -> Panic:
    return Panic(head["thread"], head["number"] or "", (head["file"], int(head["line"])), body)


def _is_same_thread(panic: Panic, other: Panic) -> bool:
    return (panic.thread, panic.number) == (other.thread, other.number)


def _fits(panic: Panic, last: Panic) -> bool:
    """Return whether a panic's thread name and number are consistent with those of the last panic."""
    if bool(panic.number) != bool(last.number):
        return False
    return not last.number or (panic.thread == last.thread) == (panic.number == last.number)
