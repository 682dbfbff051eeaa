"""Maps a line of a journal to its event. What people do not wait for (a file was written) is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.engine import events as engine
from pipeline.events import run_data
from pipeline.events.model import Event, full
from pipeline.policy.characters import visible
from pipeline.runs import events as runs

if TYPE_CHECKING:
    from pipeline.engine.journal import Line
    from pipeline.events.run_data import Data

_LONGEST: Final = 200
"""Characters of what an agent or a step said that an event repeats."""


@dataclass(frozen=True)
class Origin:
    """The run that a journal is of.

    Args:
        key: Of its worktree, unique on this machine.
        project: What the worktree's folder is called.
        run: Its name.
        workflow: What run.json calls the workflow, with `version`.
    """

    key: str
    project: str
    run: str
    workflow: str
    version: str

    def id_of(self, seq: int) -> str:
        """Return the id of the event of a line."""
        return f"{self.key}/{self.run}/{seq}"


def event_of(line: Line, origin: Origin) -> Event | None:
    """Return the event of a line, None where it is none."""
    data = _data(line)
    if data is None:
        return None
    return Event(
        id=origin.id_of(line.seq),
        source=f"/redfirst/{origin.project}",
        type=full(data.NAME),
        time=line.at,
        subject=origin.run,
        workflow=origin.workflow,
        workflowversion=origin.version,
        data=data.model_dump(mode="json"),
    )


def _data(line: Line) -> Data | None:  # noqa: C901, PLR0912  (one line for each kind)
    match line.data:
        case engine.RunStarted(issue=issue, start_commit=commit):
            return run_data.RunBegan(issue=issue, start_commit=commit)
        case engine.RunResumed(step=step, was=was):
            return run_data.RunWentOn(step=step, was=was, epoch=line.epoch)
        case engine.RunQueued(step=step):
            return run_data.RunQueued(step=step)
        case engine.RunParked(outcome=outcome, reason=reason):
            return run_data.RunParked(outcome=outcome, reason=reason)
        case engine.RunFinished(outcome=outcome, reason=reason):
            return run_data.RunFinished(outcome=outcome, reason=reason)
        case engine.DecisionMade() as made:
            return _decided(made)
        case engine.GateOpened(gate=gate):
            return run_data.ApprovalRequested(gate=gate)
        case engine.GateAnswered() as answered:
            return _answered(answered)
        case engine.PointPassed(point=point):
            return run_data.PointPassed(point=point)
        case engine.InputRequested(question=question, note=note):
            return run_data.InputRequested(question=question, note=shortened(note))
        case engine.InputGiven(question=question, actor=actor, via=via):
            return run_data.InputGiven(question=question, actor=shortened(actor), via=via)
        case engine.GateExpired(gate=gate, then=then):
            return run_data.ApprovalExpired(gate=gate, then=then)
        case runs.StepStarted(step=step):
            return run_data.StepStarted(step=step)
        case runs.StepSettled(step=step, checkpoint=checkpoint):
            return run_data.StepSettled(step=step, checkpoint=checkpoint)
        case runs.StepHeld(step=step):
            return run_data.StepHeld(step=step)
        case runs.StepUnsettled(step=step):
            return run_data.StepReopened(step=step)
        case runs.DispatchStarted() as began:
            return _began(began)
        case runs.DispatchFinished() as ended:
            return _ended(ended)
        case runs.DispatchWaits(dispatch=dispatch, not_before=not_before, why=why):
            return run_data.DispatchWaits(dispatch=dispatch, not_before=not_before, note=shortened(why))
        case runs.MeasuredTests() as said:
            what = shortened(said.what)
            return run_data.TestsMeasured(what=what, state=said.state, outcomes=said.outcomes, seconds=said.seconds)
        case runs.ChangeAdmitted(dispatch=dispatch, paths=paths):
            return run_data.ChangeAdmitted(dispatch=dispatch, paths=_visible(paths), refused=())
        case runs.ChangeRejected(dispatch=dispatch, paths=paths, violations=violations):
            refused = _visible(tuple(f"{one.path} ({one.rule})" for one in violations))
            return run_data.ChangeRejected(dispatch=dispatch, paths=_visible(paths), refused=refused)
        case runs.TaskDone(task=task, status=status):
            return run_data.TaskDone(task=task, status=status)
        case runs.Published(branch=branch, commits=commits):
            return run_data.PublicationDone(branch=visible(branch), commits=commits)
        case runs.Landed(onto=onto, base=base, commits=commits):
            return run_data.LandingDone(onto=visible(onto), base=base, commits=commits)
        case runs.LandingRefused() as refused:
            return run_data.LandingRefused(
                onto=visible(refused.onto),
                base=refused.base,
                found=refused.found,
                then=refused.then,
                note=shortened("; ".join(refused.why)),
            )
        case _:
            return None


def _decided(made: engine.DecisionMade) -> Data:
    kind = run_data.StepFailed if made.row.startswith("any/") else run_data.StepCompleted
    to = made.action.get("to")
    return kind(
        step=made.step,
        task=made.task,
        lane=made.lane,
        signal=made.signal,
        row=made.row,
        to=str(to) if to else None,
        note=shortened(made.note),
    )


def _answered(answered: engine.GateAnswered) -> Data:
    word, _, to = answered.answer.partition(" to ")
    actor = None if answered.actor is None else shortened(answered.actor)
    if word == "approved":
        return run_data.ApprovalGranted(gate=answered.gate, actor=actor, via=answered.via)
    return run_data.ApprovalRejected(gate=answered.gate, actor=actor, via=answered.via, to=to or None)


def _began(began: runs.DispatchStarted) -> Data:
    return run_data.DispatchStarted(
        dispatch=began.dispatch,
        role=began.role.value,
        kind=began.kind,
        task=began.task,
        attempt=began.attempt,
        backend=began.backend,
        model=began.model,
    )


def _ended(ended: runs.DispatchFinished) -> Data:
    return run_data.DispatchFinished(
        dispatch=ended.dispatch,
        signal=ended.signal,
        gate=ended.gate,
        cost_usd=ended.usage.cost_usd,
        input_tokens=ended.usage.input_tokens,
        output_tokens=ended.usage.output_tokens,
        note=shortened(ended.complaint or ""),
    )


def _visible(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(visible(text) for text in texts)


def shortened(text: str) -> str:
    """Return what an event repeats of a text, with everything hidden in it made visible."""
    shown = visible(text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 4]} ..."
