"""Judges changes of a dispatch that may write what path patterns cover, instead of a task's files.

A pattern never covers a file that controls tests or builds: such a file is named, or is not changed. Nor does it cover
a test, unless one writer makes tests and code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pipeline.policy.control_files import is_control
from pipeline.policy.roles import Writes
from pipeline.policy.ruling import Ruling, refused

if TYPE_CHECKING:
    from pipeline.policy.scope import Change


class Covering(Protocol):
    """The protocol of a path pattern (`scheduling.patterns`); `text` is how its author wrote it."""

    @property
    def text(self) -> str:
        """Return the pattern as it was written."""
        ...

    def covers(self, path: str) -> bool:
        """Return whether the pattern covers a file's path."""
        ...


def effective_writes(writes: Writes, area: tuple[Covering, ...] | None) -> Writes:
    """Return AREA instead of TASK as a role's write permission where the dispatch has an area."""
    return Writes.AREA if area is not None and writes is Writes.TASK else writes


def judge_area(change: Change, area: tuple[Covering, ...], *, is_test: bool, tests_too: bool = False) -> Ruling:
    """Return the ruling on a change in an area; files that control tests or builds must be named in full.

    Args:
        change: The change.
        area: The patterns.
        is_test: Whether its path is a test's.
        tests_too: Whether tests may be changed as well.
    """
    path = change.path
    if is_test and not tests_too:
        return refused("test-file", f"{path!r} is a test: this role never changes tests, whatever the area covers")
    pattern = next((one.text for one in area if one.covers(path)), None)
    listed = ", ".join(one.text for one in area) or "none"
    if pattern is None:
        return refused("outside-area", f"{path!r} was {change.kind}, but the area is: {listed}")
    if change.tests_differ and not tests_too:
        return refused("test-region", f"{path!r} has other tests in it: this role never changes tests, nor adds any")
    if not is_control(path):
        return Ruling(allowed=True, rule="in-area", why=f"{pattern!r} covers {path!r}")
    if any(one.text == path for one in area):
        note = f"{path} controls tests or builds and was {change.kind}; the area names it"
        return Ruling(allowed=True, rule="control-file-named", why=f"the area names {path!r}", note=note)
    return refused("control-file", f"{path!r} controls tests or builds; no pattern covers it, only its own name would")
