"""The protocols of a machine, of the store that keeps a run, and of its lease.

A machine is a pure function from a state and an event to the next state and a decision.

What the loop must know of a state is here: where each lane stands, what was paid, how the run stands. What a machine
keeps of its own work (the tasks of an issue, the trees of a task) it adds in subclasses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping  # noqa: TC003  (read by pydantic)
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self

from pydantic import BaseModel
from typing_extensions import TypeVar

from pipeline.data_types import ArtifactName, BareName
from pipeline.outcomes import FINAL, Outcome, Reason

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


TRUNK: Final = "trunk"
"""The name of the lane that every run has."""


class Event(BaseModel, frozen=True, extra="forbid"):
    """The event that a step reports, with one signal. The journal holds it with the decision that follows from it.

    `evidence` are the artifacts that it rests on, by their paths in the run.
    """

    signal: str
    lane: BareName = TRUNK
    note: str = ""
    evidence: tuple[ArtifactName, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lane:
    """The position of one line of work. `visit` numbers its arrival at the step; at `gate` it waits for a person."""

    step: str
    visit: int = 1
    gate: str | None = None


LaneT_co = TypeVar("LaneT_co", bound=Lane, default=Lane, covariant=True)


@dataclass(frozen=True, kw_only=True)
class LoopState(Generic[LaneT_co]):
    """The state of the loop between two decisions. Built only by folding a journal, so that a crash loses nothing.

    Each arrival of any lane at a step has a number of its own; `visits` is the last one that was given.
    `counters` says how often each bound was paid, `limits` how often it may be where the configuration says otherwise
    than the machine. `outcome` None: it goes on.
    """

    lanes: Mapping[str, LaneT_co]
    visits: int = 1
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    dispatches: int = 0
    effects: int = 0
    resumes: int = 0
    outcome: Outcome | None = None
    reason: Reason | None = None

    @property
    def trunk(self) -> LaneT_co:
        """Return the trunk, the lane that every run has."""
        return self.lanes[TRUNK]

    @property
    def has_ended(self) -> bool:
        """Return whether the run has ended for good: it can never go on."""
        return self.outcome in FINAL or self.reason is Reason.ABANDONED

    def seen_from(self, lane: str) -> Self:
        """Return the state as a step in *lane* sees it, with that lane in the trunk's place.

        Raises:
            ValueError: there is no such lane.
        """
        if lane not in self.lanes:
            raise ValueError(f"no lane is called {lane}")
        return self if lane == TRUNK else replace(self, lanes={TRUNK: self.lanes[lane]})

    def due(self, at_work: Collection[str]) -> tuple[str, ...]:
        """Return the lanes whose step may begin now, in their order; the lanes *at_work* are running."""
        return tuple(lane for lane in self.lanes if lane not in at_work)

    def on_trunk(self, **changes: Any) -> Self:
        """Return the state with the given fields of the trunk changed."""
        return replace(self, lanes={**self.lanes, TRUNK: replace(self.trunk, **changes)})

    def resumed(self) -> Self:
        """Return the state after a parked or cancelled run goes on; unchanged for a final outcome or an open gate."""
        if self.outcome is None or self.has_ended or self.trunk.gate is not None:
            return self
        return replace(self, outcome=None, reason=None, resumes=self.resumes + 1)


@dataclass(frozen=True)
class Effect:
    """A journal line that must follow a decision; `id` is unique within the run, `kind` is the line's kind."""

    id: str
    kind: str
    data: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A decision: the row that fired, the action, the bounds paid or used up, and the effects."""

    step: str
    visit: int
    row: str
    action: DataclassInstance
    task: str | None = None
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    exhausted: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()


def action_value(action: DataclassInstance) -> dict[str, str | None]:
    """Return an action as JSON: its kind and its arguments, as the journal writes it."""
    return {"do": type(action).__name__, **{key: value and str(value) for key, value in asdict(action).items()}}


StateT = TypeVar("StateT", bound=LoopState[Any])
EventT = TypeVar("EventT", bound=Event)
DecisionT = TypeVar("DecisionT", bound=Decision, default=Decision)
DecisionT_co = TypeVar("DecisionT_co", bound=Decision, default=Decision, covariant=True)


class Machine(Protocol[StateT, EventT, DecisionT_co]):
    """A workflow as pure methods; the routing matrix and the recipes are two."""

    def initial(self) -> StateT:
        """Return the state of a new run."""
        ...

    def read(self, event: Mapping[str, object]) -> EventT:
        """Return the event that a journal line's data describe.

        Raises:
            ValueError: it is none of this machine's.
        """
        ...

    def advance(self, state: StateT, event: EventT) -> tuple[StateT, DecisionT_co]:
        """Return the state after *event* and the decision.

        Raises:
            LookupError, ValueError: nothing follows this event here.
        """
        ...

    def resume(self, state: StateT) -> StateT:
        """Return the state after a parked or cancelled run goes on."""
        ...


class Store(Protocol):
    """The storage of one run: an append-only journal, and files by name. What was written survives any crash."""

    @property
    def name(self) -> str:
        """Return the name of the run."""
        ...

    @property
    def host(self) -> str:
        """Return the name of the machine that this process writes from."""
        ...

    def where(self, name: str) -> str:
        """Return the path or address at which a person finds a file of the run."""
        ...

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            OSError: it is not there, or is none that a run writes.
        """
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically: after a crash it has the old content or the new one.

        Raises:
            UserError: the disk does not take it.
        """
        ...

    def journal(self) -> bytes:
        """Return the journal's bytes, empty if there is none yet.

        Raises:
            OSError: it cannot be read.
        """
        ...

    def append(self, line: bytes) -> None:
        """Append a line to the journal, whole or not at all.

        Raises:
            UserError: the disk does not take it.
        """
        ...

    def cut(self, size: int) -> None:
        """Truncate the journal to its first *size* bytes.

        Raises:
            UserError: the disk does not take it.
        """
        ...
