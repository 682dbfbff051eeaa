"""One run: run.json, journal and the state that folding the journal gives. Folding recomputes each decision."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason
from pipeline.routing.render import action_value
from pipeline.routing.state import Event, RunState, Settings
from pipeline.runs.events import (
    EVENTS,
    ArtifactWritten,
    ChangeAdmitted,
    ChangeRejected,
    ConfigChanged,
    DecisionMade,
    DispatchFinished,
    DispatchStarted,
    GateOpened,
    RunFinished,
    RunParked,
    RunResumed,
    RunStarted,
    TaskDone,
)
from pipeline.runs.files import to_json, write_atomic
from pipeline.runs.info import DispatchRecord, DispatchResult, RunInfo
from pipeline.runs.journal import Clock, Journal, readable, text_of, utc_now
from pipeline.runs.records import ARTIFACT_LIMIT, read_record, refuse_strange, remove_temporaries
from pipeline.runs.store import issue_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.routing.machine import Decision, Machine
    from pipeline.routing.state import Effect
    from pipeline.routing.vocabulary import Loop
    from pipeline.runs.journal import Line

_JOURNAL = "journal.jsonl"


@dataclass(frozen=True)
class Decided:
    """One decision of the run, with the states before and after it: what `explain` reads."""

    line: Line
    event: Event
    before: RunState
    after: RunState
    decision: Decision


class Run:
    """A run that is read, or (under its lease) driven.

    Attributes:
        folder: `.workflow/run-<ID>[@n]`, absolute.
        state: What folding the journal gives.
        records: The last start of each dispatch, by number.
        results: The finished dispatches, by name.
        history: The decisions, oldest first.
        artifacts: sha256 of each artifact as the journal names it last, by its path in the run folder.
    """

    def __init__(self, folder: Path, info: RunInfo, journal: Journal, machine: Machine) -> None:
        self.folder = folder
        self.info = info
        self.journal = journal
        self.machine = machine
        settings = Settings(info.limits, frozenset(info.gates), info.park_on_blockers)
        self.state: RunState = machine.initial(info.start_tree, settings)
        self.records: dict[int, DispatchRecord] = {}
        self.results: dict[str, DispatchResult] = {}
        self.history: list[Decided] = []
        self.artifacts: dict[str, str] = {}
        self._said: set[str] = set()
        self._open_effects: dict[str, Effect] = {}
        for line in journal.lines:
            self._fold(line)

    @classmethod
    def create(
        cls,
        folder: Path,
        info: RunInfo,
        machine: Machine,
        *,
        clock: Clock = utc_now,
        sandbox: Mapping[str, str] | None = None,
    ) -> Run:
        """Make the run folder with run.json and the journal's first line, which names the sandbox (architecture 6).

        Raises:
            UserError: the disk does not take it.
        """
        if folder.exists():
            refuse_strange(folder)
            remove_temporaries(folder)
        _write(folder, "run.json", to_json(info.model_dump(mode="json", by_alias=True)))
        run = cls(folder, info, Journal(folder / _JOURNAL, [], clock=clock), machine)
        said = {"run_id": info.run_id, "issue": info.issue, "start_commit": info.start_commit}
        run.journal.append(RunStarted.model_validate({**said, **_sandbox(sandbox)}))
        return run

    @classmethod
    def load(cls, folder: Path, machine: Machine, *, driving: bool, clock: Clock = utc_now) -> Run:
        """Return the run in *folder*; `driving` (under the lease) also repairs what a crash left half said.

        Raises:
            UserError: the run is damaged, or was written by a version that decides otherwise.
        """
        info = _info(folder)
        path = folder / _JOURNAL
        run = cls(folder, info, Journal.open(path, clock=clock) if driving else Journal.read(path), machine)
        if driving:
            run.recover()
        return run

    @classmethod
    def salvage(cls, folder: Path, machine: Machine) -> Run:
        """Return a damaged run as far as it can be read, so that it can be given up; its journal is set aside.

        Raises:
            UserError: run.json cannot be read either, or the disk does not take it.
        """
        path = folder / _JOURNAL
        run = cls(folder, _info(folder), Journal(path, []), machine)
        damaged = read_record(folder, _JOURNAL) if path.exists() else b""  # not too large: that was asked
        for line in readable(damaged):
            try:
                run._fold(line)
            except UserError:
                break
            run.journal.lines.append(line)
            run.journal.epoch = line.epoch
        aside = sum(1 for _ in folder.glob("journal.damaged-*")) + 1
        _write(folder, f"journal.damaged-{aside}.jsonl", damaged)
        _write(folder, _JOURNAL, "".join(map(text_of, run.journal.lines)))
        return run

    def recover(self) -> None:
        """Say in the journal what happened before a crash but was not said: finished dispatches, effects."""
        remove_temporaries(self.folder)
        if not self.journal.lines:
            self.journal.append(RunStarted(run_id=self.info.run_id, issue=self.info.issue))
        for record in list(self.records.values()):
            path = self.folder / "dispatches" / record.dispatch / "result.json"
            if record.dispatch not in self.results and path.exists():
                self.finish_dispatch(self._result(record.dispatch))
        for name, result in self.results.items():
            if name not in self._said:
                self._say_changes(result)
        for effect in list(self._open_effects.values()):
            self._say(effect)

    # --- writing -----------------------------------------------------------------------------------------------

    def decide(self, event: Event) -> Decision:
        """Advance the run by *event*; the decision and its effects are in the journal when this returns."""
        state, decision = self.machine.advance(self.state, event)
        line = self.journal.append(
            DecisionMade(
                step=decision.step.value,
                task=decision.task,
                signal=event.signal.value,
                row=decision.row,
                action=dict(action_value(decision.action)),
                counters=dict(decision.counters),
                exhausted=tuple(loop.value for loop in decision.exhausted),
                evidence=tuple(event.evidence),
                visit=decision.visit,
                event=event.model_dump(mode="json", exclude_defaults=True),
            )
        )
        self.history.append(Decided(line, event, self.state, state, decision))
        self.state = state
        for effect in decision.effects:
            self._say(effect)
        return decision

    def start_dispatch(self, record: DispatchRecord) -> None:
        """Journal that a dispatch starts; it counts against DISPATCHES from here on."""
        self._fold(self.journal.append(DispatchStarted.model_validate(record.model_dump(mode="json"))))

    def finish_dispatch(self, result: DispatchResult) -> None:
        """Journal that a dispatch is finished; its result.json is on disk already."""
        data = result.model_dump(mode="json", include={"dispatch", "signal", "gate", "tree", "usage", "complaint"})
        self._fold(self.journal.append(DispatchFinished.model_validate(data)))
        self._say_changes(result)

    def _say_changes(self, result: DispatchResult) -> None:
        if result.gate is None:
            return
        said = ChangeAdmitted if result.gate == "admitted" else ChangeRejected
        line = self.journal.append(
            said(
                dispatch=result.dispatch,
                paths=tuple(change.path for change in result.changes),
                dropped=result.dropped,
                violations=result.violations,
            )
        )
        self._fold(line)

    def write_artifact(self, name: str, content: str | bytes) -> Path:
        """Write an artifact below the run folder, then journal it; unchanged content is not written again."""
        path = self.folder / name
        data = content.encode("utf-8", errors="surrogateescape") if isinstance(content, str) else content
        there = path.exists() and self.read(name) == data
        if not there:
            _write(self.folder, name, data)
        digest = sha256_hex(data)
        if not there or self.artifacts.get(name) != digest:  # a crash may have come between file and line
            self._fold(self.journal.append(ArtifactWritten(path=name, sha256=digest)))
        return path

    def read(self, name: str) -> bytes:
        """Return the content of an artifact.

        Raises:
            OSError: it is not there, or is none that a run writes.
        """
        return read_record(self.folder, name, ARTIFACT_LIMIT)

    def resume(self, *, sandbox: Mapping[str, str] | None = None) -> None:
        """Go on after a park, a cancellation or a crash: a new epoch, the same step (matrix 1, RESUMED)."""
        self.journal.epoch += 1
        said = {"step": self.state.step.value, "was": self.state.outcome}
        self._fold(self.journal.append(RunResumed.model_validate({**said, **_sandbox(sandbox)})))

    def abandon(self) -> None:
        """Say that the user gave the run up; it can never go on (contract 2)."""
        self._fold(self.journal.append(RunFinished(outcome=Outcome.CANCELLED.value, reason=Reason.ABANDONED.value)))

    def change_limits(self, limits: dict[Loop, int], config_hash: str) -> None:
        """Raise (or lower) limits for the rest of the run; journalled."""
        self._fold(self.journal.append(ConfigChanged(limits=limits, config_hash=config_hash)))

    def _say(self, effect: Effect) -> None:
        self._open_effects[effect.id] = effect
        self._fold(self.journal.append(EVENTS[effect.kind].model_validate({"id": effect.id, **effect.data})))

    # --- folding -----------------------------------------------------------------------------------------------

    def _fold(self, line: Line) -> None:
        match line.data:
            case DecisionMade() as said:
                self._refold(line, said)
            case DispatchStarted() as record:
                self.records[record.number] = record
                self.state = replace(self.state, dispatches=self.state.dispatches + 1)
            case DispatchFinished(dispatch=name):
                self.results[name] = self._result(name)
            case ChangeAdmitted(dispatch=name) | ChangeRejected(dispatch=name):
                self._said.add(name)
            case ArtifactWritten(path=path, sha256=digest):
                self.artifacts[path] = digest
            case RunResumed():
                self.state = self.machine.resume(self.state)
            case ConfigChanged(limits=changed):
                limits = {**self.state.settings.limits, **changed}
                self.state = replace(self.state, settings=replace(self.state.settings, limits=limits))
            case TaskDone() | GateOpened() | RunParked() | RunFinished() as effect:
                self._open_effects.pop(str(effect.id), None)
                if isinstance(effect, RunFinished | RunParked) and effect.reason == Reason.ABANDONED.value:
                    self.state = replace(self.state, outcome=Outcome.CANCELLED, reason=Reason.ABANDONED)
            case _:
                pass

    def _result(self, name: str) -> DispatchResult:
        path = self.folder / "dispatches" / name / "result.json"
        try:
            content = read_record(self.folder, f"dispatches/{name}/result.json")
            return DispatchResult.model_validate(json.loads(content.decode("utf-8", "surrogateescape")))
        except (OSError, ValueError, RecursionError) as error:
            why = str(error).splitlines()[0]
            raise UserError(
                f"{self.info.run_id} is damaged: the result of {name} cannot be read ({why}). Put the file back, or: "
                f"redfirst abandon {self.info.run_id}",
                Reason.USAGE,
                path=str(path),
                actions=(f"redfirst abandon {self.info.run_id}",),
            ) from error

    def _refold(self, line: Line, said: DecisionMade) -> None:
        """Recompute a decision from its event and compare it with what was recorded (architecture 9)."""
        try:
            decided = self._recompute(line, said)
        except (LookupError, ValueError):
            decided = None
        if decided is None:
            raise UserError(
                f"{self.info.run_id} was decided otherwise at journal line {line.seq} ({said.row}): it was "
                f"written by redfirst {self.info.redfirst_version}, whose matrix differs. Go on with that version, "
                f"or: redfirst abandon {self.info.run_id}",
                Reason.USAGE,
                path=str(self.journal.path),
                pointer=f"/{line.seq - 1}",
                actions=(f"redfirst abandon {self.info.run_id}",),
            )
        self.history.append(decided)
        self.state = decided.after
        self._open_effects |= {effect.id: effect for effect in decided.decision.effects}

    def _recompute(self, line: Line, said: DecisionMade) -> Decided | None:
        event = Event.model_validate(said.event)
        state, decision = self.machine.advance(self.state, event)
        same = (
            decision.row == said.row
            and action_value(decision.action) == said.action
            and decision.counters == said.counters
        )
        return Decided(line, event, self.state, state, decision) if same else None


def _write(folder: Path, name: str, content: str | bytes) -> None:
    write_atomic(folder / name, content, below=folder.parents[1])


def _info(folder: Path) -> RunInfo:
    refuse_strange(folder)
    try:
        info = RunInfo.model_validate_json(read_record(folder, "run.json"))
        if (info.run_id, info.issue) != (folder.name, issue_of(folder.name)):
            raise ValueError(f"it is of {info.run_id}, which works on {info.issue}")  # noqa: TRY301  (told as any other)
        return info  # noqa: TRY300  (the same)
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise UserError(
            f"{folder.name} cannot be read: run.json: {why}. Put the file back; if it is lost, remove {folder} and "
            "free the issue: git for-each-ref refs/redfirst/claims",
            Reason.USAGE,
            path=str(folder / "run.json"),
            actions=("git for-each-ref refs/redfirst/claims",),
        ) from error


def _sandbox(facts: Mapping[str, str] | None) -> dict[str, object]:
    return {} if facts is None else {"sandbox": dict(facts)}


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of *data* in hex."""
    return hashlib.sha256(data).hexdigest()
