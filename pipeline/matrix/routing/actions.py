"""Defines the actions that a row of the matrix may name: plain values, which can be printed and compared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.outcomes import Outcome, Reason
    from pipeline.vocabulary import Loop, Question, Signal, Step


class Given(StrEnum):
    """A fact that picks between two rows of the same step and signal; a row without one is the default."""

    FROM_STUB = "asked by STUB"
    FROM_WRITE_TESTS = "asked by WRITE_TESTS"
    FROM_SEAM = "asked by SEAM"
    FROM_BUILD = "asked by BUILD"
    ONE_WRITER = "one writer"
    FIX_TASKS = "drafting fix tasks"
    BLOCKERS = "blockers on record"
    NOTHING_CHANGED = "every task was done already"


@dataclass(frozen=True)
class Goto:
    """Move on without paying."""

    to: Step
    ask: Question | None = None


@dataclass(frozen=True)
class Retry:
    """Go back; a loop counts it."""

    to: Step
    loop: Loop
    ask: Question | None = None


@dataclass(frozen=True)
class Return:
    """Go back to the step that asked for the judgement; a loop counts it."""

    loop: Loop


@dataclass(frozen=True)
class Again:
    """Ask the same slot of the same step again, told why its answer did not count."""

    loop: Loop


@dataclass(frozen=True)
class AskPerson:
    """Park until a person has answered, then ask the same slot of the same step again; a loop counts it."""

    loop: Loop


@dataclass(frozen=True)
class LeaveOut:
    """Go on without this slot; only an advisory role may be left out."""


@dataclass(frozen=True)
class NextTask:
    """Take the head of the queue; an empty queue is the final review.

    A task that is worked on beside others goes from IMPLEMENT to INTEGRATE first.
    """


@dataclass(frozen=True)
class Forward:
    """Go where the gate stood in the way."""


@dataclass(frozen=True)
class Stop:
    """End or park the run. A missing reason is the one that the event or the failure on record gives."""

    outcome: Outcome
    reason: Reason | None = None


Action = Goto | Retry | Return | Again | AskPerson | LeaveOut | NextTask | Forward | Stop


@dataclass(frozen=True)
class Row:
    """One row: in this step, on this signal (given that), do this. `step` None stands for all in `steps_of`."""

    step: Step | None
    signal: Signal
    action: Action
    source: str
    says: str
    given: Given | None = None

    @property
    def id(self) -> str:
        """Return the row's name in journals: `implement/NEEDS_FILE`, `diagnose/PRODUCTION_LOGIC[asked by STUB]`."""
        where = self.step.value if self.step else "any"
        return f"{where}/{self.signal.value}" + (f"[{self.given.value}]" if self.given else "")
