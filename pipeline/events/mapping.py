"""Maps a line of a journal, of a run or of orders, to its event.

What people do not wait for (a file was written) is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.engine import events as engine
from pipeline.events import model
from pipeline.policy.characters import visible
from pipeline.queue import lines as orders
from pipeline.runs import events as runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.engine.journal import Line
    from pipeline.queue.lines import OrderLine

_LONGEST: Final = 200
_SHORTENED: Final = frozenset({"note", "what", "actor", "why", "cause"})
"""What an agent, a step or a person said: an event repeats its beginning."""

_TYPES: Final[Mapping[type, type[model.Data]]] = {
    engine.RunStarted: model.RunBegan,
    engine.RunResumed: model.RunWentOn,
    engine.RunQueued: model.RunQueued,
    engine.RunParked: model.RunParked,
    engine.RunFinished: model.RunFinished,
    engine.DecisionMade: model.StepCompleted,
    engine.GateOpened: model.ApprovalRequested,
    engine.GateAnswered: model.ApprovalRejected,
    engine.PointPassed: model.PointPassed,
    engine.InputRequested: model.InputRequested,
    engine.InputGiven: model.InputGiven,
    engine.GateExpired: model.ApprovalExpired,
    runs.StepStarted: model.StepStarted,
    runs.StepSettled: model.StepSettled,
    runs.StepHeld: model.StepHeld,
    runs.StepUnsettled: model.StepReopened,
    runs.DispatchStarted: model.DispatchStarted,
    runs.DispatchFinished: model.DispatchFinished,
    runs.DispatchWaits: model.DispatchWaits,
    runs.MeasuredTests: model.TestsMeasured,
    runs.ChangeAdmitted: model.ChangeAdmitted,
    runs.ChangeRejected: model.ChangeRejected,
    runs.TaskDone: model.TaskDone,
    runs.Published: model.PublicationDone,
    runs.Landed: model.LandingDone,
    runs.LandingRefused: model.LandingRefused,
    orders.OrderPlaced: model.OrderPlaced,
    orders.OrderStarted: model.OrderStarted,
    orders.OrderEnded: model.OrderEnded,
    orders.OrderDropped: model.OrderDropped,
}


@dataclass(frozen=True)
class Origin:
    """What a journal is of: a run, or the orders of a repository, which no workflow drives.

    Args:
        key: Of the run's worktree, or the repository; unique on this machine.
        project: What its folder is called.
        name: Of the run, or `orders`.
        workflow: What run.json calls the workflow, with `version`.
    """

    key: str
    project: str
    name: str = "orders"
    workflow: str = ""
    version: str = ""

    def id_of(self, seq: int) -> str:
        """Return the id of the event of a line."""
        return f"{self.key}/{self.name}/{seq}"


def event_of(line: Line | OrderLine, origin: Origin) -> model.Event | None:
    """Return the event of a line, None where it is none."""
    data = _data(line)
    if data is None:
        return None
    return model.Event(
        id=origin.id_of(line.seq),
        source=f"/redfirst/{origin.project}",
        type=model.full(data.NAME),
        time=line.at,
        subject=getattr(line.data, "order", None) or origin.name,
        workflow=origin.workflow,
        workflowversion=origin.version,
        data=data.model_dump(mode="json"),
    )


def _data(line: Line | OrderLine) -> model.Data | None:
    """Return the keys of a line that its event has, and what is told in another form there."""
    found, said = _TYPES.get(type(line.data)), {"epoch": getattr(line, "epoch", 0), **dict(line.data)}
    if found is None:
        return None
    match line.data:
        case engine.DecisionMade() as made:
            found = model.StepFailed if made.row.startswith("any/") else found
            said |= {"to": made.action.get("to") or None, "note": made.note}
        case engine.GateAnswered(answer=answer):
            word, _, to = answer.partition(" to ")
            found = model.ApprovalGranted if word == "approved" else found
            said["to"] = to or None
        case runs.DispatchStarted(role=role):
            said["role"] = role.value
        case runs.DispatchFinished(usage=usage, complaint=complaint):
            said |= {**dict(usage), "note": complaint or ""}
        case runs.DispatchWaits(why=why):
            said["note"] = why
        case runs.ChangeAdmitted() | runs.ChangeRejected() as change:
            said["refused"] = tuple(f"{one.path} ({one.rule})" for one in change.violations)
        case runs.LandingRefused(why=why):
            said["note"] = "; ".join(why)
        case _:
            pass
    return found.model_validate({key: _inert(said[key], shorten=key in _SHORTENED) for key in found.model_fields})


def _inert(value: Any, *, shorten: bool) -> Any:
    """Return a value with everything hidden in its texts made visible."""
    if isinstance(value, tuple):
        return tuple(_inert(one, shorten=shorten) for one in cast("tuple[Any, ...]", value))
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"{shown[: _LONGEST - 4]} ..." if shorten and len(shown) > _LONGEST else shown
