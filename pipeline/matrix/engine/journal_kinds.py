"""The journal's events that every workflow has, one class for each kind of line.

A key that was not set is not written: the bytes stay.

A run may be a stranger's: what becomes part of a path or of a git command has a checked name here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict

from pipeline.data_types import ArtifactName, BareName, Frozen
from pipeline.matrix.engine.protocols import TRUNK

EVENTS: Final[dict[str, type[JournalEvent]]] = {}
"""The class of each kind of journal line; a class registers itself when it is defined."""


class JournalEvent(BaseModel):
    """The data of a journal line; `KIND` is its kind in the journal. Unknown keys of later versions are accepted."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    KIND: ClassVar[str]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Register the class under its kind."""
        super().__pydantic_init_subclass__(**kwargs)
        if "KIND" in vars(cls):
            EVENTS[cls.KIND] = cls


class RunStarted(JournalEvent):
    """A run was created."""

    KIND = "run_started"

    run_id: str
    issue: str | None = None
    start_commit: str = ""
    sandbox: Mapping[str, str] = {}


class Reopened(Frozen):
    """Completed work that is to be done again, by lane name; `workflow` replaces the recipe from here on.

    `items` is how many lanes each list becomes that is there already and that nobody went through, `areas` what each of
    these may change.
    """

    steps: tuple[BareName, ...] = ()
    items: Mapping[BareName, int] = {}
    areas: Mapping[BareName, tuple[tuple[str, ...], ...]] = {}
    workflow: Mapping[str, Any] = {}


class RunResumed(JournalEvent):
    """A driver resumed the run. `was` is the outcome before or `queued`, None where the previous driver died."""

    KIND = "run_resumed"

    step: str
    was: str | None = None
    sandbox: Mapping[str, str] = {}
    flags: Mapping[str, dict[str, str]] = {}
    """The command line's settings, which hold from here on (`set`, `agent`)."""
    program: Mapping[str, str] = {}
    """What of the program is not what the run began with: hashes of `prompts` and `matrix`, and the version."""
    reopened: Reopened | None = None


class ArtifactWritten(JournalEvent):
    """A file of the run's folder was written; `sha256` is of its content."""

    KIND = "artifact_written"

    path: ArtifactName
    sha256: str


class DecisionMade(JournalEvent):
    """The machine made a decision. `event` is what the step reported, from which the decision is computed again."""

    KIND = "decision"

    step: str
    task: BareName | None = None
    signal: str
    row: str
    action: dict[str, object]
    counters: Mapping[str, int] = {}
    exhausted: tuple[str, ...] = ()
    evidence: tuple[ArtifactName, ...] = ()
    visit: int
    event: dict[str, object]
    lane: BareName = TRUNK
    """The lane of the decision; the trunk is not written."""

    @property
    def note(self) -> str:
        """Return the step's note on its event, "" if it has none."""
        return str(self.event.get("note") or "")


class EffectMade(JournalEvent):
    """An effect of a decision, other than its next step."""

    id: str | None = None
    """The id of the effect in its decision; None where no decision had it."""


class GateOpened(EffectMade):
    """A run waits at a gate for a person's answer."""

    KIND = "gate_opened"

    gate: str


class Answerer(Frozen):
    """The person who answers, and the way of the answer: `cli`, `console`, `timeout`."""

    actor: str
    via: str


class GateAnswered(JournalEvent):
    """A gate was answered; `artifacts` has the sha256 of the files seen. Older journals do not say by whom.

    `edited` are the drafts that count as a person edited them, each with where it is kept as it was drafted.
    """

    KIND = "gate_answered"

    gate: str
    answer: str
    artifacts: Mapping[str, str] = {}
    edited: Mapping[str, str | None] = {}
    actor: str | None = None
    via: str | None = None


class PointPassed(EffectMade):
    """The run passed a point that a person wants to know of, without waiting."""

    KIND = "point_passed"

    point: str


class InputRequested(EffectMade):
    """An agent asks a person; `question` is the artifact with the whole question."""

    KIND = "input_requested"

    question: str
    note: str = ""


class InputGiven(JournalEvent):
    """A person has answered a question; `answer` is the artifact that the asker gets."""

    KIND = "input_given"

    question: ArtifactName
    answer: ArtifactName
    actor: str
    via: str


class GateExpired(JournalEvent):
    """Nobody answered a gate in time; `then` is what follows: remind, reject, abandon."""

    KIND = "gate_expired"

    gate: str
    then: str


class RunQueued(JournalEvent):
    """The run was answered, and no process drives it yet; `step` is where it goes on."""

    KIND = "run_queued"

    step: str


class ConfigChanged(JournalEvent):
    """The configuration differs from that of the last driver; `limits` holds the limits that differ.

    `changes` has a line for each key, and `config` is the whole of it, without secrets.
    """

    KIND = "config_changed"

    limits: dict[str, int]
    config_hash: str
    changes: tuple[str, ...] = ()
    config: Mapping[str, Any] = {}


class RunStopped(EffectMade):
    """The run stopped, for now or for good."""

    outcome: str
    reason: str


class RunParked(RunStopped):
    """The run parked: it stopped and can go on."""

    KIND = "run_parked"


class RunFinished(RunStopped):
    """The run ended and cannot go on."""

    KIND = "run_finished"
