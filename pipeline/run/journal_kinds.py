"""Defines what the journal of an issue's run says beside what every journal does (`engine.journal_kinds`)."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import ConfigDict

from pipeline.data_types import BareName, BranchName, Frozen, ObjectName, Timestamp
from pipeline.matrix.engine.journal import Line
from pipeline.matrix.engine.journal_kinds import EffectMade, JournalEvent
from pipeline.progress import counted
from pipeline.run.info import DispatchRecord, Usage, ViolationRecord


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
    not_before: Timestamp | None = None
    """When the first of the services that were out of reach may be asked again; not written where none says so."""


class DispatchWaits(JournalEvent):
    """The service of a dispatch limits the account: it is asked again when the limit ends, and not before."""

    KIND = "dispatch_waits"

    dispatch: BareName
    not_before: Timestamp
    why: str = ""


class MeasuredTests(JournalEvent):
    """Tests were measured. `selected` are ids or files, None for all tests; `outcomes` counts those that ran.

    `what` says which tests over which code, and what was expected of them; older journals do not have it.
    """

    KIND = "tests_ran"

    what: str = ""
    tree: ObjectName
    selected: tuple[str, ...] | None = None
    state: str
    outcomes: dict[str, int] = {}  # noqa: RUF012  (pydantic copies it)
    collection_errors: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    seconds: float | None = None

    @property
    def result(self) -> str:
        """Return what came of it in words: `4 failed, 8 passed`, and how it ended where it came to no end."""
        nothing = "collected" if self.selected == () else "no test ran"
        parts = [f"{count} {name.replace('_', ' ')}" for name, count in sorted(self.outcomes.items())] or [nothing]
        if self.collection_errors:
            parts.append(f"{counted(len(self.collection_errors), 'file')} not collected")
        if self.state != "complete":
            parts.append(self.state.replace("_", " "))
        return ", ".join(parts)


class TrackerFile(Frozen):
    """The sha256 of a file of the user's tracker before and after the run wrote it."""

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


class StepStarted(EffectMade):
    """A step of a recipe is at work."""

    KIND = "step_started"

    step: BareName


class StepSettled(EffectMade):
    """A step of a recipe is over."""

    KIND = "step_settled"

    step: BareName
    checkpoint: str


class StepHeld(EffectMade):
    """A step of a recipe cannot start: what it depends on did not come out as it needs it."""

    KIND = "step_held"

    step: BareName


class StepUnsettled(EffectMade):
    """A step of a recipe is done again, or is behind one that is."""

    KIND = "step_unsettled"

    step: BareName


class TaskDone(EffectMade):
    """A task is left behind: done, or failed."""

    KIND = "task_done"

    task: BareName
    status: str


class PublishOnto(JournalEvent):
    """A person named the commit that the run's commits are to be put on."""

    KIND = "publish_onto"

    commit: ObjectName


class GatesAsked(JournalEvent):
    """A person asked for gates that the run did not begin with: they hold from here on."""

    KIND = "gates_asked"

    gates: tuple[str, ...]


class PublishIntended(JournalEvent):
    """The commits are made, and the user's branch is about to be moved to them.

    `base` is what they are put on, None where that is the start of the run; of several lines the last one counts.
    `publication` says which of several publications of a run it is: a step of a recipe with its visit.
    """

    KIND = "publish_intended"

    commits: tuple[ObjectName, ...]
    follow_ups: tuple[str, ...] = ()
    base: ObjectName | None = None
    publication: str | None = None


class PublishMoving(JournalEvent):
    """The user's index and files are about to be taken to a commit; without one: they are as they were again."""

    KIND = "publish_moving"

    commit: ObjectName | None = None


class Published(JournalEvent):
    """The user's branch holds the commits."""

    KIND = "published"

    branch: str
    commits: tuple[ObjectName, ...]
    publication: str | None = None


class LandingIntended(JournalEvent):
    """The base is about to be moved from `base` to the last of the commits, copies of the run's on it (`land`)."""

    KIND = "landing_intended"

    onto: BranchName
    base: ObjectName
    commits: tuple[ObjectName, ...]


class Landed(JournalEvent):
    """The base holds the result of the run; `filed` are the issues that came with it."""

    KIND = "landed"

    onto: BranchName
    base: ObjectName
    commits: tuple[ObjectName, ...]
    filed: tuple[str, ...] = ()


class LandingRefused(JournalEvent):
    """The result does not go onto the base, or does not hold there; `found` and `then` are words of the landing."""

    KIND = "landing_refused"

    onto: BranchName
    base: ObjectName
    found: str
    then: str
    why: tuple[str, ...] = ()
    order: str | None = None
    """The order that was placed for its issue."""


JournalLine: TypeAlias = Line
"""A line of the journal of an issue's run: of one of these kinds, or of the engine's."""
