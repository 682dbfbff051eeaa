"""Narrates the demo: explains each mechanism that acted, from the run's journal as it grows."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.characters import visible
from pipeline.matrix.engine.journal import Line
from pipeline.matrix.engine.journal_kinds import DecisionMade
from pipeline.run.journal_kinds import ChangeRejected
from pipeline.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_WIDTH: Final = 112
_NOTE: Final = "      "

EXPLAINED: Final[Mapping[str, str]] = {
    "sanity/OK": "The tests ran before any agent was asked: what passes now must pass at the end.",
    "issue/CLAIMED": "The claim is a git ref, so no second run takes this issue.",
    "review-plan/NEEDS_WORK": "@check reviews the plan before there is code. It goes back, at most twice.",
    "review-plan/ACCEPTABLE": "The reviewer answered its own finding: resolved.",
    "review-split/ACCEPTABLE": "Two tasks; the second depends on the first.",
    "write-tests/DISPUTED": "RED is measured, but @test doubts the issue and wants a judgement first.",
    "check-tests/ACCEPTABLE": "@check has judged the tests: they say what the plan says.",
    "implement/NOT_GREEN": '@make said "COMPLETE, all tests pass". We ran them: not so. A claim moves nothing here.',
    "diagnose/PRODUCTION_LOGIC": "@check says whose fault it is; @make gets one more attempt, with these notes.",
    "write-tests/ILLEGAL_RED": "The test fails, but not because of missing behaviour. That is no RED: written again.",
    "write-tests/RED": "Measured twice, and each test fails for a legal reason. From here on the tests are frozen.",
    "implement/NEEDS_FILE": "Instead of reaching for a file that is not in its task, @make asks for it.",
    "diagnose/AMENDED": "@check grants the file; our code adds it to the task, and @make goes on.",
    "implement/GREEN_INCOMPLETE": "Measured: the tests pass. @make says what is missing; the final review is told.",
    "implement/GREEN": "Measured: the tests of the task pass, and so does everything that passed before.",
    "final-review/FIX": "The review of the whole result found something. It becomes a task of its own, tests first.",
    "split/DRAFTED[drafting fix tasks]": "A fix task goes the same way as any other: RED, then GREEN.",
    "final-review/ACCEPTABLE": "Reviewed again after the fix: the finding is resolved.",
    "publish/PUBLISHED": "Only now do branch and code change, all at once, with the issue and the bug that @make saw.",
}
"""Explanations of rows of the matrix for a first-time reader, by row id."""

REJECTED: Final = "Put back in the view; the agent is told why and asked again. The branch never saw it."


@dataclass
class Narrator:
    """Reads the journal's new lines and explains them."""

    path: Path
    rows: list[str] = field(default_factory=list[str])
    _read: int = 0

    def more(self) -> Iterator[str]:
        """Yield the narration of new journal lines; an incomplete line waits for the next call."""
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            stream.seek(self._read)
            whole, newline, _ = stream.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        for text in whole.splitlines():
            yield from self._told(Line.model_validate(json.loads(text)))

    def _told(self, line: Line) -> Iterator[str]:
        match line.data:
            case ChangeRejected() as rejected:
                yield from _rejection(rejected)
            case DecisionMade() as decision:
                self.rows.append(decision.row)
                yield _decision(decision)
                if decision.row in EXPLAINED:
                    yield from _note(EXPLAINED[decision.row])
            case _:
                pass


def _decision(made: DecisionMade) -> str:
    phase = Step(made.step).phase
    task = f" task {made.task}" if made.task else ""
    # what the gate refused has just been told
    said = "" if made.signal == "VIOLATION" else made.note
    paid = "".join(f"; {key.partition('@')[0]} {count}" for key, count in made.counters.items())
    text = f"[{phase}] {made.step}{task}: {made.signal}" + (f": {said}" if said else "") + paid
    return textwrap.shorten(visible(text), _WIDTH, placeholder=" ...")


def _rejection(rejected: ChangeRejected) -> Iterator[str]:
    for violation in rejected.violations:
        yield textwrap.shorten(f"GATE: rejected: {visible(violation.why)}", _WIDTH, placeholder=" ...")
    yield from _note(REJECTED)


def _note(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=_NOTE, subsequent_indent=_NOTE)
