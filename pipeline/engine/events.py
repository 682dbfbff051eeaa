"""What every journal says: a type for each kind of line. A key that was not said is not written: the bytes stay.

A run may be a stranger's: what becomes part of a path or of a git command has a checked name here.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict

from pipeline.engine.machine import TRUNK
from pipeline.safe_names import ArtifactName, BareName

EVENTS: Final[dict[str, type[JournalEvent]]] = {}
"""Every kind of line by its word; a kind is known once its class is defined."""


class JournalEvent(BaseModel):
    """What happened; `KIND` is its word in the journal. A later version may say more of it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    KIND: ClassVar[str]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Make the kind known."""
        super().__pydantic_init_subclass__(**kwargs)
        if "KIND" in vars(cls):
            EVENTS[cls.KIND] = cls


class RunStarted(JournalEvent):
    """A driver made the run."""

    KIND = "run_started"

    run_id: str
    issue: str | None = None
    start_commit: str = ""
    sandbox: dict[str, str] = {}


class Reopened(BaseModel):
    """What is done again though it was over, by the names of its lanes; `workflow` says it anew from here on.

    `items` is how many lanes each list becomes that is there already and that nobody went through.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: tuple[BareName, ...] = ()
    items: dict[BareName, int] = {}
    workflow: dict[str, Any] = {}


class RunResumed(JournalEvent):
    """Another driver goes on with it. `was` is its outcome until then, None where the driver before it died."""

    KIND = "run_resumed"

    step: str
    was: str | None = None
    sandbox: dict[str, str] = {}
    flags: dict[str, dict[str, str]] = {}
    """What the command line said of the configuration: it counts from here on (`set`, `agent`)."""
    reopened: Reopened | None = None


class ArtifactWritten(JournalEvent):
    """A file of the run folder has this content now."""

    KIND = "artifact_written"

    path: ArtifactName
    sha256: str


class DecisionMade(JournalEvent):
    """The machine decided. `event` is what the step reported, from which the decision is computed again."""

    KIND = "decision"

    step: str
    task: BareName | None = None
    signal: str
    row: str
    action: dict[str, object]
    counters: dict[str, int] = {}
    exhausted: tuple[str, ...] = ()
    evidence: tuple[ArtifactName, ...] = ()
    visit: int
    event: dict[str, object]
    lane: BareName = TRUNK
    """The lane that was decided about; of the trunk nothing is said."""

    @property
    def note(self) -> str:
        """Return what the step said of it, "" where it said nothing."""
        return str(self.event.get("note") or "")


class EffectMade(JournalEvent):
    """What followed of a decision beside the next step."""

    id: str | None = None
    """The decision's effect that this says; None where no decision had it."""


class GateOpened(EffectMade):
    """A person is asked."""

    KIND = "gate_opened"

    gate: str


class GateAnswered(JournalEvent):
    """A person has answered; `artifacts` has the sha256 of what they saw, by path."""

    KIND = "gate_answered"

    gate: str
    answer: str
    artifacts: dict[str, str] = {}


class ConfigChanged(JournalEvent):
    """The configuration is another one than the run was last driven with; `limits` are those that are different.

    `changes` has a line for each key, and `config` is the whole of it, without secrets.
    """

    KIND = "config_changed"

    limits: dict[str, int]
    config_hash: str
    changes: tuple[str, ...] = ()
    config: dict[str, Any] = {}


class RunStopped(EffectMade):
    """The run stops, for now or for ever."""

    outcome: str
    reason: str


class RunParked(RunStopped):
    """The run stops, and can go on."""

    KIND = "run_parked"


class RunFinished(RunStopped):
    """The run is over."""

    KIND = "run_finished"
