"""Prints the journal for people: one readable line for each event, all at once or as they come."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.characters import visible
from pipeline.matrix.engine import journal_kinds as engine
from pipeline.outcomes import PAUSED, Reason
from pipeline.progress import duration
from pipeline.reset_times import moment_words
from pipeline.run import journal_kinds as runs
from pipeline.run.drafts import edit_words
from pipeline.run.folder import followed
from pipeline.vocabulary import Loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pipeline.matrix.engine.journal import Line

_SECONDS: Final = len("2026-11-20T14:02:07")
_LONGEST: Final = 240
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")
_WORDS: Final[Mapping[type, str]] = {
    runs.ClaimTaken: "{issue}",
    engine.ArtifactWritten: "{path}",
    runs.StepStarted: "step {step}: begins",
    runs.StepSettled: "step {step}: {checkpoint}",
    runs.StepHeld: "step {step}: held",
    runs.StepUnsettled: "step {step}: is done again",
    runs.TaskDone: "task {task}: {status}",
    engine.GateOpened: "approval point {gate}: waits for a person",
    engine.PointPassed: "point {point}: passed",
    engine.InputRequested: "{question}: {note}",
    engine.InputGiven: "{question}: {answer} by {actor} ({via})",
    engine.GateExpired: "approval point {gate}: nobody answered in time: {then}",
    engine.RunQueued: "waits to be driven on, at {step}",
}
"""The kinds whose keys say it all."""


def log_line(line: Line) -> str:
    """Return one event as a line: time (UTC), kind, what."""
    what = visible(_what(line))
    if len(what) > _LONGEST:
        what = f"{what[:_LONGEST]} ..."
    return f"{line.at[:_SECONDS].replace('T', ' ')}  {line.kind:<17}  {what}".rstrip()


def follow(folder: Path, emit: Callable[[str], None]) -> None:
    """Hand every line of the run's journal to *emit*, and what is added, until no process drives the run any more.

    Raises:
        UserError: the journal is damaged.
    """
    for line in followed(folder):
        emit(log_line(line))


def _what(line: Line) -> str:  # noqa: C901, PLR0912  (a case for each kind)
    if (words := _WORDS.get(type(line.data))) is not None:
        return words.format(**dict(line.data))
    match line.data:
        case engine.RunStarted() as said:
            of = f" of {said.issue}" if said.issue is not None else ""
            return f"{said.run_id}{of} from {said.start_commit[:12]}{_box(said.sandbox)}"
        case engine.RunResumed() as said:
            was = said.was or "its driver died"
            return f"driver {line.epoch} on {line.host}, at {said.step} (was: {was}){_again(said)}{_box(said.sandbox)}"
        case runs.DispatchStarted() as said:
            return _dispatch_started(said)
        case runs.DispatchFinished() as said:
            failed = f"{said.signal}: {said.complaint or ''}" if said.signal else "answered"
            cost = said.usage.cost_usd
            return f"{said.dispatch}: {failed}" + (f" ({cost:.2f} USD)" if cost is not None else "")
        case runs.DispatchWaits(dispatch=dispatch, not_before=not_before, why=why):
            return f"{dispatch}: waits until {moment_words(not_before)}: {why}"
        case runs.MeasuredTests() as said:
            return _tests(said)
        case runs.TrackerWritten(files=files):
            return ", ".join(files)
        case runs.ChangeAdmitted() as said:
            return f"{said.dispatch}: {', '.join(said.paths) or 'no change'}{_dropped(said.dropped)}"
        case runs.ChangeRejected() as said:
            refused = (f"{refusal.path} ({refusal.rule}): {refusal.why}" for refusal in said.violations)
            return f"{said.dispatch}: {'; '.join(refused)}{_dropped(said.dropped)}"
        case engine.DecisionMade() as said:
            return _decision(said)
        case engine.GateAnswered(gate=gate, answer=answer, actor=actor, via=via) as said:
            edits = (f"; {edit_words(name, kept, actor or 'a person')}" for name, kept in said.edited.items())
            return (
                f"approval point {gate}: {answer}"
                + (f" by {actor} ({via})" if actor is not None else "")
                + "".join(edits)
            )
        case engine.ConfigChanged() as said:
            limits = ", ".join(f"{loop} = {limit}" for loop, limit in sorted(said.limits.items()))
            return "; ".join(said.changes) or limits or said.config_hash[:12]
        case engine.RunParked(outcome=outcome, reason=reason) | engine.RunFinished(outcome=outcome, reason=reason):
            return PAUSED if reason == Reason.INTERRUPTED else f"{outcome}: {reason}"
        case runs.GatesAsked(gates=gates):
            return ", ".join(gates)
        case runs.PublishOnto(commit=commit):
            return commit[:12]
        case runs.PublishIntended(commits=commits, base=base):
            return _commits(commits) + (f" on {base[:12]}" if base is not None else "")
        case runs.PublishMoving(commit=commit):
            return f"files to {commit[:12]}" if commit is not None else "files as they were"
        case runs.Published() as said:
            return f"{said.branch}: {_commits(said.commits)}"
        case runs.LandingIntended(onto=onto, commits=commits) | runs.Landed(onto=onto, commits=commits):
            return f"{onto}: {_commits(commits)}"
        case runs.LandingRefused() as said:
            return f"{said.onto}: {said.found.replace('_', ' ')}: {'; '.join(said.why)} -> {said.then}"
        case _:
            raise LookupError(line.kind)


def _again(said: engine.RunResumed) -> str:
    again = said.reopened
    if again is None:
        return ""
    recipe = "; by another recipe" if again.workflow else ""
    return f"{recipe}; done again: {', '.join(again.steps) or 'nothing'}"


def _dispatch_started(said: runs.DispatchStarted) -> str:
    task = f", task {said.task}" if said.task else ""
    question = f" ({said.question})" if said.question else ""
    again = "; asked again" if said.reask else ""
    return f"{said.dispatch}: @{said.role} to {said.kind}{question}{task}, attempt {said.attempt}{again}"


def _decision(made: engine.DecisionMade) -> str:
    task = f" task {made.task}" if made.task else ""
    action = {key: value for key, value in made.action.items() if value and key != "loop"}
    do = _CAPITAL.sub(" ", str(action.pop("do", "?"))).lower()
    words = str(action.pop("to", do))
    words += f" ({', '.join(map(str, action.values()))})" if action else ""
    paid = "".join(f", {key.replace('@', ' of ')}: {count}" for key, count in made.counters.items())
    empty = "".join(f", {loop} exhausted" for loop in made.exhausted)
    # an answer that does not count says why where it came in; its decision has more to say only where no other follows
    is_said = made.event.get("role") is not None and Loop.UNUSABLE not in made.exhausted
    note = f": {made.note}" if made.note and not is_said else ""
    return f"{made.step}{task}: {made.signal} -> {words}{paid}{empty}{note}"


def _tests(ran: runs.MeasuredTests) -> str:
    missed = f" ({', '.join(ran.collection_errors)})" if ran.collection_errors else ""
    took = f" ({duration(ran.seconds)})" if ran.seconds is not None else ""
    which = "all" if ran.selected is None else f"{len(ran.selected)} selected"
    return f"{ran.what or f'{which} over {ran.tree[:12]}'}: {ran.result}{missed}{took}"


def _commits(commits: Iterable[str]) -> str:
    return ", ".join(commit[:12] for commit in commits)


def _dropped(paths: tuple[str, ...]) -> str:
    return f"; dropped {', '.join(paths)}" if paths else ""


def _box(facts: Mapping[str, str]) -> str:
    return f"; {', '.join(f'{key} {value}' for key, value in sorted(facts.items()))}" if facts else ""
