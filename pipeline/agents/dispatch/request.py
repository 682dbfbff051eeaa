"""The request of a step to one slot, from which the dispatcher makes a prompt, a view, a process and a result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from pipeline.progress import duration
from pipeline.reset_times import as_text, moment_words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from pipeline.judge.policy.rights import Grant, TestScope
    from pipeline.judge.reports.decode import Malformed
    from pipeline.judge.reports.fields import Report
    from pipeline.judge.reports.reviews import ToAnswer
    from pipeline.matrix.scheduling.patterns import Pattern
    from pipeline.process import Mount
    from pipeline.testing.measure.project_tools import Tools
    from pipeline.vocabulary import Question, Role


@dataclass(frozen=True)
class Rest:
    """A pause of a dispatch whose service is out of reach.

    Args:
        dispatch: Its name.
        why: What went wrong, a sentence.
        then: Who is asked then.
        seconds: How long it is.
        until: When the limit ends that is waited for; None where the service only failed.
    """

    dispatch: str
    why: str
    then: str
    seconds: float
    until: datetime | None = None

    def __str__(self) -> str:
        if self.until is None:
            return f"{self.dispatch}: {self.why} Next: {self.then}, in {self.seconds:g} s"
        words = f"{moment_words(as_text(self.until))}, in {duration(self.seconds)}"
        return f"{self.dispatch}: {self.why} The limit ends at {words}; {self.then} is asked then"


class StoppedError(Exception):
    """The run was stopped while a dispatch rested: it has no result, and its slot is asked again."""


async def _sleep(rest: Rest) -> None:
    await anyio.sleep(rest.seconds)


@dataclass(frozen=True)
class InRun:
    """The place of a dispatch in its run.

    Args:
        phase: The number of the phase, for the prompt.
        why: What led to it, for the prompt.
        on_words: Gets what the agent says while it works, as it is: with secrets.
        rest: Waits before somebody is asked again, and raises a `StoppedError` where nobody is to be.
    """

    phase: str = "-"
    why: str = ""
    on_words: Callable[[str], None] = lambda _: None
    rest: Callable[[Rest], Awaitable[None]] = _sleep


@dataclass(frozen=True)
class Request:
    """The request to one slot.

    Args:
        role: Who.
        kind: What (contract 5).
        base: The tree that the view is made from.
        question: For kind `judge`.
        artifacts: Name -> files of the run folder, in order; of a name without files nothing is said.
        grants: Production paths that the dispatch may change.
        area: Patterns that it is held to instead; None where it has a task.
        tests: What counts as a test; for @test also which ones it may change.
        about: Paths that the dispatch is about and may not change; instructions of their folders are named, too.
        accept: Says what is wrong with a well-formed report that cannot be true here.
        verify: Says the same of what was handed in with the report, measured; asked once it counts otherwise.
        extra: Short context that only this dispatch has.
        tools: What the project's own tools need in the box, given the view's mount.
        asks: Whether the answer may be a question to a person.
        to_answer: What the report has to answer in `criteria`; without one of these it does not count.
        without: Optional fields of the report that are not asked for.
        known: Artifacts that the role had before as they are, or that say more than what it is to read: to look up.
        reasks: How often the slot may be asked again beside what the matrix grants; for what it routes nothing on.
    """

    role: Role
    kind: str
    base: str
    question: Question | None = None
    artifacts: Mapping[str, Sequence[Path]] = field(default_factory=dict[str, "Sequence[Path]"])
    grants: tuple[Grant, ...] = ()
    area: tuple[Pattern, ...] | None = None
    tests: TestScope | None = None
    about: tuple[str, ...] = ()
    accept: Callable[[Report], Malformed | None] | None = None
    verify: Callable[[Report, str], Awaitable[Malformed | None]] | None = None
    extra: str = ""
    tools: Callable[[Mount], Tools] | None = None
    asks: bool = False
    to_answer: tuple[ToAnswer, ...] = ()
    without: frozenset[str] = frozenset()
    known: frozenset[Path] = frozenset()
    reasks: int = 0
