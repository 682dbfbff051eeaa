"""Says what a step of a recipe does when it does not get what it wants: one row for each place and signal."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pydantic import Field

from pipeline.data_types import BareName, ObjectName
from pipeline.matrix.engine.protocols import TRUNK, Event, Lane, LoopState
from pipeline.outcomes import Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class At(StrEnum):
    """What a step is at."""

    BEGIN = "begin"
    ASK = "ask"
    ACCEPT = "accept"
    REVIEW = "review"
    APPLY = "apply"
    RUN = "run"
    TESTS = "tests"
    HOLD = "hold"
    FILE = "file"
    PUBLISH = "publish"


class StepSignal(StrEnum):
    """What a step reports, after we looked at it."""

    OK = "OK"
    ANSWERED = "ANSWERED"
    UNSURE = "UNSURE"
    QUESTIONS = "QUESTIONS"
    PAYLOAD_INVALID = "PAYLOAD_INVALID"
    INCOMPLETE = "INCOMPLETE"
    CANNOT_PROCEED = "CANNOT_PROCEED"
    ACCEPTABLE = "ACCEPTABLE"
    CONVERGED = "CONVERGED"
    NEEDS_WORK = "NEEDS_WORK"
    BLOCK = "BLOCK"
    MET = "MET"
    NOT_MET = "NOT_MET"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    PUBLISHED = "PUBLISHED"
    WORKTREE_CHANGED = "WORKTREE_CHANGED"
    BRANCH_MOVED = "BRANCH_MOVED"
    SIGNING_FAILED = "SIGNING_FAILED"
    MALFORMED = "MALFORMED"
    TIMED_OUT = "TIMED_OUT"
    VIOLATION = "VIOLATION"
    UNAVAILABLE = "UNAVAILABLE"
    BUDGET = "BUDGET"
    ESCAPE = "ESCAPE"
    COLLISION = "COLLISION"
    ENV_BROKEN = "ENV_BROKEN"
    CANCELLED = "CANCELLED"


class Checkpoint(StrEnum):
    """How a step stands when it is settled."""

    READY = "ready"
    PARTIAL = "partial"
    FAILED = "failed"
    HELD = "held"
    NEEDS_ORCHESTRATOR = "needs_orchestrator"

    @property
    def is_usable(self) -> bool:
        """Return whether something behind it may be built on it, if it takes halves."""
        return self in {Checkpoint.READY, Checkpoint.PARTIAL}


class Given(StrEnum):
    """A fact that picks another row of the same place and signal."""

    OPEN_SEAM = "a seam is open"
    NOBODY_ASKED = "nobody is asked"


class Bound(StrEnum):
    """What is paid for a way back."""

    ATTEMPTS = "attempts"
    STEP_REVIEW = "step-review"
    REVIEWERS = "reviewers"
    HUMAN = "human"


@dataclass(frozen=True)
class Begin:
    """The first steps start."""


@dataclass(frozen=True)
class Settle:
    """The step is over."""

    checkpoint: Checkpoint


@dataclass(frozen=True)
class Onward:
    """The step goes on to the next place that it has; behind the last one it is over, and stands so."""

    last: Checkpoint = Checkpoint.READY


@dataclass(frozen=True)
class Go:
    """The step is at another place now."""

    at: At


@dataclass(frozen=True)
class Retry:
    """Something is asked again: what is `at`, None for where the step is. With its bound used up the step is over."""

    bound: Bound = Bound.ATTEMPTS
    at: At | None = None


@dataclass(frozen=True)
class Stop:
    """The run stops, once what is at work has ended."""

    outcome: Outcome
    reason: Reason


@dataclass(frozen=True)
class Otherwise:
    """The step has failed; or it is ready and the run is over, where the step says that there is nothing to do then."""


@dataclass(frozen=True)
class Done:
    """The step is ready, and the run is over: there is nothing to do for the steps behind it."""


@dataclass(frozen=True)
class Unsettle:
    """The step `to`, and all behind it, are done again; where the gate names none, or too often, it has failed."""

    to: str = ""


Action = Begin | Onward | Go | Settle | Retry | Otherwise | Done | Unsettle | Stop

_READY: Final = Settle(Checkpoint.READY)
_FAILED: Final = Settle(Checkpoint.FAILED)
_S = StepSignal
_COMMITTED: Final[dict[StepSignal, Action]] = {
    _S.PUBLISHED: _READY,
    _S.NOT_MET: _FAILED,
    _S.WORKTREE_CHANGED: Stop(Outcome.PARKED, Reason.WORKTREE_CHANGED),
    _S.BRANCH_MOVED: Stop(Outcome.PARKED, Reason.BRANCH_MOVED),
    _S.SIGNING_FAILED: Stop(Outcome.PARKED, Reason.SIGNING),
}
"""What follows of a step that commits to the user's branch."""

ROWS: Final[dict[tuple[At, StepSignal], Action]] = {
    (At.BEGIN, _S.OK): Begin(),
    (At.ASK, _S.ANSWERED): Onward(),
    (At.ASK, _S.UNSURE): Settle(Checkpoint.PARTIAL),
    (At.ASK, _S.QUESTIONS): Settle(Checkpoint.NEEDS_ORCHESTRATOR),
    (At.ASK, _S.PAYLOAD_INVALID): Settle(Checkpoint.NEEDS_ORCHESTRATOR),
    **dict.fromkeys(((At.ASK, _S.INCOMPLETE), (At.ASK, _S.CANNOT_PROCEED)), Retry()),
    (At.APPLY, _S.MET): Onward(),
    (At.APPLY, _S.NOT_MET): _FAILED,
    (At.ACCEPT, _S.MET): Onward(),
    (At.ACCEPT, _S.NOT_MET): Retry(at=At.ASK),
    **dict.fromkeys(((At.REVIEW, _S.ACCEPTABLE), (At.REVIEW, _S.CONVERGED)), Onward()),
    **dict.fromkeys(((At.REVIEW, _S.NEEDS_WORK), (At.REVIEW, _S.BLOCK)), Retry(Bound.STEP_REVIEW, At.ASK)),
    **{(At.REVIEW, one): Retry(Bound.REVIEWERS) for one in (_S.MALFORMED, _S.TIMED_OUT, _S.VIOLATION)},
    **dict.fromkeys(((At.RUN, _S.MET), (At.TESTS, _S.MET)), _READY),
    **dict.fromkeys(((At.RUN, _S.NOT_MET), (At.TESTS, _S.NOT_MET)), Otherwise()),
    **{(at, one): _FAILED for at in (At.RUN, At.TESTS) for one in (_S.CANNOT_PROCEED, _S.TIMED_OUT)},
    **dict.fromkeys(((At.HOLD, _S.OK), (At.HOLD, _S.APPROVED)), _READY),
    (At.HOLD, _S.REJECTED): Unsettle(),
    **{(at, signal): action for at in (At.FILE, At.PUBLISH) for signal, action in _COMMITTED.items()},
}

ANY: Final[dict[StepSignal, Action]] = {
    **dict.fromkeys((_S.MALFORMED, _S.TIMED_OUT, _S.VIOLATION), Retry()),
    _S.COLLISION: Settle(Checkpoint.NEEDS_ORCHESTRATOR),
    _S.UNAVAILABLE: Stop(Outcome.PARKED, Reason.AGENT_UNAVAILABLE),
    _S.BUDGET: Stop(Outcome.PARKED, Reason.BUDGET),
    _S.ENV_BROKEN: Stop(Outcome.PARKED, Reason.ENVIRONMENT),
    _S.ESCAPE: Stop(Outcome.FAILED, Reason.ESCAPE),
    _S.CANCELLED: Stop(Outcome.CANCELLED, Reason.INTERRUPTED),
}
"""What follows of any dispatch, and of any measurement."""

GIVEN: Final[dict[tuple[At, StepSignal, Given], Action]] = {
    # nobody builds on what does not keep to its contract
    **{(at, one, Given.OPEN_SEAM): Onward(Checkpoint.PARTIAL) for (at, one), row in ROWS.items() if row == Onward()},
    (At.ACCEPT, _S.NOT_MET, Given.NOBODY_ASKED): _FAILED,  # a patch that does not hold is nobody's to mend
}
"""What follows instead where a fact holds."""

BOUNDS: Final[dict[Bound, tuple[int, Checkpoint]]] = {
    Bound.ATTEMPTS: (1, Checkpoint.FAILED),
    Bound.STEP_REVIEW: (2, Checkpoint.PARTIAL),
    Bound.REVIEWERS: (1, Checkpoint.FAILED),
    Bound.HUMAN: (5, Checkpoint.FAILED),
}
"""How often each may be paid, and how the step stands then; `attempts` of a step says the first one, less one."""


def row_of(at: At, signal: StepSignal, facts: Iterable[Given] = ()) -> tuple[str, Action]:
    """Return the name of the row that fires, and its action.

    Raises:
        LookupError: nothing follows this signal there.
    """
    for fact in facts:
        if (at, signal, fact) in GIVEN:
            return f"{at}/{signal}[{fact}]", GIVEN[at, signal, fact]
    if (at, signal) in ROWS:
        return f"{at}/{signal}", ROWS[at, signal]
    if signal in ANY:
        return f"any/{signal}", ANY[signal]
    raise LookupError(f"nothing follows {signal} at {at}")


class StepEvent(Event, frozen=True, extra="forbid"):
    """What a step reports.

    `items` is how many steps each `for_each` over its payload becomes, `areas` what each of these may change where that
    depends on its item. `tree` has the files as a writer left them; of what only reads there is none. `open_seams` are
    the seams that a role does not say it keeps to; None where the step says nothing of them now. `blockers` are the
    findings that are on record if its review ends with this.
    """

    signal: StepSignal
    items: dict[BareName, int] = Field(default_factory=dict)
    areas: dict[BareName, tuple[tuple[str, ...], ...]] = Field(default_factory=dict)
    tree: ObjectName | None = None
    open_seams: tuple[str, ...] | None = None
    blockers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StepLane(Lane):
    """A step at work: `at` is what it does now, `attempt` how often it was asked, `tree` what it has written so far.

    `open_seams` are those that it does not keep to, as it said last.
    """

    at: At
    attempt: int = 1
    tree: str | None = None
    open_seams: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StepsState(LoopState[StepLane]):
    """How far the steps are.

    Args:
        settled: How each step that is over stands, by its name.
        counts: How many steps each `for_each` has become.
        areas: What each of these may change, where that depends on its item.
        trees: The files as each writer that is over left them, by its name.
        open_seams: The seams that each step that is over does not keep to, by its name.
        blockers: The findings that the last review of each step that is over leaves open, where it leaves any.
    """

    settled: Mapping[str, Checkpoint] = field(default_factory=dict[str, Checkpoint])
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    areas: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict[str, tuple[tuple[str, ...], ...]])
    trees: Mapping[str, str] = field(default_factory=dict[str, str])
    open_seams: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    blockers: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def due(self, at_work: Collection[str]) -> tuple[str, ...]:
        """Return the lanes whose step may begin now; who waits for a person is not asked."""
        if len(self.lanes) == 1 and not self.settled:
            return () if TRUNK in at_work else (TRUNK,)
        return tuple(
            name for name, lane in self.lanes.items() if name != TRUNK and lane.gate is None and name not in at_work
        )
