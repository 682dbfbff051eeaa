"""What a journal says: a type for each kind of line. A key that was not said is not written: the bytes stay.

A run may be a stranger's: what becomes part of a path or of a git command has a checked name here.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict

from pipeline.names import ArtifactName, BareName, ObjectName
from pipeline.routing.vocabulary import Loop
from pipeline.runs.info import DispatchRecord, Usage, ViolationRecord

Kind = Literal[
    "run_started",
    "claim_taken",
    "dispatch_started",
    "dispatch_finished",
    "tests_ran",
    "artifact_written",
    "tracker_written",
    "change_admitted",
    "change_rejected",
    "decision",
    "task_done",
    "gate_opened",
    "gate_answered",
    "config_changed",
    "run_parked",
    "run_resumed",
    "publish_intended",
    "published",
    "run_finished",
]


class JournalEvent(BaseModel):
    """What happened; `KIND` is its word in the journal. A later version may say more of it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    KIND: ClassVar[Kind]


class RunStarted(JournalEvent):
    """A driver made the run."""

    KIND = "run_started"

    run_id: str
    issue: str
    start_commit: str = ""
    sandbox: dict[str, str] = {}


class RunResumed(JournalEvent):
    """Another driver goes on with it. `was` is its outcome until then, None where the driver before it died."""

    KIND = "run_resumed"

    step: str
    was: str | None = None
    sandbox: dict[str, str] = {}


class ClaimTaken(JournalEvent):
    """The run has the issue for itself."""

    KIND = "claim_taken"

    issue: str


class DispatchStarted(DispatchRecord, JournalEvent):
    """An agent is asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    KIND = "dispatch_started"


class DispatchFinished(JournalEvent):
    """Its `result.json` is on disk; this repeats what the log shows of it."""

    KIND = "dispatch_finished"

    dispatch: BareName
    signal: str | None = None
    gate: str | None = None
    tree: ObjectName | None = None
    usage: Usage = Usage()
    complaint: str | None = None


class MeasuredTests(JournalEvent):
    """Tests were measured. `selected` are ids or files, None for all tests; `outcomes` counts those that ran."""

    KIND = "tests_ran"

    tree: ObjectName
    selected: tuple[str, ...] | None = None
    state: str
    outcomes: dict[str, int] = {}
    collection_errors: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


class ArtifactWritten(JournalEvent):
    """A file of the run folder has this content now."""

    KIND = "artifact_written"

    path: ArtifactName
    sha256: str


class TrackerFile(BaseModel):
    """The sha256 of a file of the user's tracker before and after the run wrote it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: str
    after: str


class TrackerWritten(JournalEvent):
    """The issue is shown as In Progress in the user's worktree; files by name."""

    KIND = "tracker_written"

    files: dict[BareName, TrackerFile]


class _Change(JournalEvent):
    dispatch: BareName
    paths: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    violations: tuple[ViolationRecord, ...] = ()


class ChangeAdmitted(_Change):
    """The gate took what an agent left."""

    KIND = "change_admitted"


class ChangeRejected(_Change):
    """The gate refused it."""

    KIND = "change_rejected"


class DecisionMade(JournalEvent):
    """A row of the matrix fired. `event` is what the step reported, from which the decision is computed again."""

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

    @property
    def note(self) -> str:
        """Return what the step said of it, "" where it said nothing."""
        return str(self.event.get("note") or "")


class _Effect(JournalEvent):
    id: str | None = None
    """The decision's effect that this says; None where no decision had it."""


class TaskDone(_Effect):
    """A task is left behind: done, or failed."""

    KIND = "task_done"

    task: BareName
    status: str


class GateOpened(_Effect):
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
    """The user changed the configuration since the run was last driven."""

    KIND = "config_changed"

    limits: dict[Loop, int]
    config_hash: str


class _Stop(_Effect):
    outcome: str
    reason: str


class RunParked(_Stop):
    """The run stops, and can go on."""

    KIND = "run_parked"


class RunFinished(_Stop):
    """The run is over."""

    KIND = "run_finished"


class PublishIntended(JournalEvent):
    """The commits are made, and the user's branch is about to be moved to them."""

    KIND = "publish_intended"

    commits: tuple[ObjectName, ...]
    follow_ups: tuple[str, ...] = ()


class Published(JournalEvent):
    """The user's branch holds the commits."""

    KIND = "published"

    branch: str
    commits: tuple[ObjectName, ...]


EVENTS: Final[dict[Kind, type[JournalEvent]]] = {
    event.KIND: event
    for event in (
        *(RunStarted, RunResumed, ClaimTaken, DispatchStarted, DispatchFinished, MeasuredTests, ArtifactWritten),
        *(TrackerWritten, ChangeAdmitted, ChangeRejected, DecisionMade, TaskDone, GateOpened, GateAnswered),
        *(ConfigChanged, RunParked, RunFinished, PublishIntended, Published),
    )
}
