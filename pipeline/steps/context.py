"""Defines what every step is handed: the run, the ports, and the facts of the moment. The room `app` builds it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pipeline.errors import UserError
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.taskfile import parse_task_md
from pipeline.matrix.engine.journal_kinds import DecisionMade, JournalEvent
from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.routing.matrix import MATRIX
from pipeline.outcomes import Reason
from pipeline.run.files import to_json
from pipeline.sandbox.escapes import without_escape
from pipeline.sandbox.views.copies import Copies
from pipeline.testing.measure import measuring
from pipeline.vocabulary import Signal, Step

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import anyio

    from pipeline.agents.dispatch.dispatcher import Dispatcher
    from pipeline.judge.evidence.observation import Observation
    from pipeline.judge.reports.tasks import Task
    from pipeline.matrix.engine.journal import Line
    from pipeline.matrix.routing.state import MatrixLane, RunState
    from pipeline.run.hub import Hub
    from pipeline.run.preconditions import Start
    from pipeline.run.run import Run

Stopping = Literal["no", "soon", "now"]


@dataclass(frozen=True)
class Composed:
    """New tests over other production.

    Args:
        of: Their tree, the production, and that with stand-ins where there is one.
        paths: What was changed.
        side: The paths of tests that were taken.
        tree: What came of it.
    """

    of: tuple[str, str, str | None]
    paths: tuple[str, ...]
    side: tuple[str, ...]
    tree: str


@dataclass
class Learnt(measuring.Learnt):
    """What a driver learns while it lives, once for all lanes: also whether the user stops it."""

    stopping: Stopping = "no"
    looked: tuple[Composed, Observation] | None = None
    """The new tests that were looked at last before they are judged, and what was seen."""


_NO_REVIEW = frozenset({Signal.NOT_ASKED, Signal.WRITTEN, Signal.NOT_WRITTEN})
_SAYS = {row.id: row.says for row in MATRIX}


@dataclass(kw_only=True)
class DriverContext(measuring.MeasurementContext):
    """The ports of one driver, whatever machine decides. The only mutable part is what it learns while it lives."""

    run: Any
    dispatcher: Dispatcher
    box_facts: dict[str, str] = field(default_factory=dict[str, str])
    learnt: Learnt = field(default_factory=Learnt)  # pyright: ignore[reportIncompatibleVariableOverride]  it has more
    go_on: Callable[[], None] = lambda: None
    """Journals that this driver goes on with the run, with the flags and the configuration that count from here on."""
    lane_name: str = TRUNK
    """The lane whose step is given this."""
    hub: Hub | None = None
    """Where the run is kept for other machines; None where it has no fleet."""
    waiting: list[anyio.Event] = field(default_factory=list["anyio.Event"])
    """Of who begins a dispatch once another one is over: what is left of the budget is its share."""

    def __post_init__(self) -> None:
        watch = partial(without_escape, self.repository, self.run.written)
        self.copies = Copies(self.checkout, "measured", self.box, watch)

    def seen_from(self, lane: str) -> Self:
        """Return what the step of another lane is given: the same ports, its own view of the state."""
        if lane == self.lane_name:
            return self
        found = copy(self)
        found.lane_name = lane
        return found

    def wake(self) -> None:
        """Let those go on who wait for a dispatch to be over."""
        while self.waiting:
            self.waiting.pop().set()

    @property
    def lane(self) -> Any:
        """Return where the step stands that is given this."""
        return self.run.state.lanes[self.lane_name]

    @property
    def stopping(self) -> Stopping:
        """Return whether the user wants the run to stop."""
        return self.learnt.stopping

    @property
    def publication(self) -> str | None:
        """Return which of the run's publications a step makes; None of a run that has one."""
        return None

    def note(self, event: JournalEvent) -> None:
        """Add a line to the journal."""
        self.run.journal.append(event)

    def path(self, name: str) -> Path:
        """Return the absolute path of an artifact."""
        return self.run.folder / name

    def write(self, name: str, content: str | bytes) -> str:
        """Write an artifact and journal it; return its name."""
        self.run.write_artifact(name, content)
        return name

    def artifact(self, of: str, name: str, content: str | bytes) -> dict[str, list[Path]]:
        """Return an artifact of a request with this content, written down; nothing where that is empty."""
        return {of: [self.path(self.write(name, content))]} if content else {}

    def write_json(self, name: str, value: object) -> str:
        """Write an artifact as JSON; return its name."""
        return self.write(name, to_json(value))


@dataclass(kw_only=True)
class Context(DriverContext):
    """The ports of one driver of an issue's run."""

    run: Run
    start: Start | None = None
    """Where the run starts, where this driver has just begun it; None where it goes on with one."""
    supposed: RunState | None = None
    """What `state` is instead, where something is measured that is not decided yet."""

    @property
    def state(self) -> RunState:
        """Return the run's state now, as the lane sees it."""
        return self.supposed or self.run.state.seen_from(self.lane_name)

    def supposing(self, state: RunState) -> Context:
        """Return the same ports over a state that is not the run's yet."""
        found = copy(self)
        found.supposed = state
        return found

    @property
    def lane(self) -> MatrixLane:
        """Return where the step stands that is given this."""
        return self.run.state.lanes[self.lane_name]

    @property
    def issue(self) -> str:
        """Return the id of the issue."""
        return self.run.issue

    # --- artifacts ---------------------------------------------------------------------------------------------

    def read(self, name: str) -> str:
        """Return the text of an artifact.

        Raises:
            UserError: it is missing: somebody removed it (an artifact is never a guess).
        """
        try:
            return self.run.read(name).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"The artifact {name} of {self.run.info.run_id} is missing or unreadable. Put it back, or: "
                f"redfirst abandon {self.run.info.run_id}",
                Reason.USAGE,
                path=str(self.path(name)),
            ) from error

    def task(self, task_id: str | None = None) -> Task:
        """Return a task as its file on disk says it (contract 5: what is on disk counts); the current one by default.

        Raises:
            UserError: a person's edit broke the file.
        """
        name = f"task-{task_id or self.state.task.id}.md"
        return self.task_in(name, self.read(name))

    def task_in(self, name: str, text: str) -> Task:
        """Return a task as the text of a file of this name says it.

        Raises:
            UserError: a person's edit broke it.
        """
        found = parse_task_md(text)
        if isinstance(found, Malformed):
            then = "approve" if self.lane.step is Step.GATE else "resume"
            raise UserError(
                f"{name} cannot be read: {found.sentence} Mend it, then: redfirst {then} {self.run.info.run_id}",
                Reason.USAGE,
                path=str(self.path(name)),
                pointer=found.pointer,
            )
        return found

    # --- where the run comes from ----------------------------------------------------------------------------------

    def arrival(self) -> Line[DecisionMade] | None:
        """Return the decision that led to this visit; None in the first step."""
        lane, visit = self.lane_name, self.lane.visit
        for decided in reversed(self.run.history):
            before, after = decided.before.lanes.get(lane), decided.after.lanes.get(lane)
            if after is not None and after.visit == visit and (before is None or before.visit != visit):
                return cast("Line[DecisionMade]", decided.line)
        return None

    def handover(self) -> tuple[str, ...]:
        """Return the names of the artifacts that the decision which led here was based on."""
        line = self.arrival()
        return tuple(name for name in line.data.evidence if self.path(name).exists()) if line else ()

    def handed_words(self) -> list[str]:
        """Return the names of those of them that are words for a reader."""
        return [name for name in self.handover() if name.endswith(".md")]

    def why(self) -> str:
        """Return the row of the matrix that led here, in its own words.

        What agents and tests said about it is in the artifacts: in a prompt it would speak with our voice.
        """
        line = self.arrival()
        if line is None:
            return ""
        row = line.data.row
        return f"{row}: {_SAYS[row]}" if row in _SAYS else row

    def reviews_before(self, step: str) -> int:
        """Return how many reviews of this step were decided in the run, whatever came of them."""
        decided = [line.data for line in self.run.journal.of(DecisionMade) if line.data.step == step]
        return sum(one.signal not in _NO_REVIEW and not one.row.startswith("any/") for one in decided)
