"""A run of any machine: its journal, and the state that results from folding it. Folding recomputes each decision."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic

from pipeline.errors import UserError
from pipeline.matrix.engine.journal import JOURNAL, Journal, Line
from pipeline.matrix.engine.journal_kinds import (
    EVENTS,
    ArtifactWritten,
    ConfigChanged,
    DecisionMade,
    EffectMade,
    GateAnswered,
    InputGiven,
    RunFinished,
    RunQueued,
    RunResumed,
    RunStopped,
)
from pipeline.matrix.engine.protocols import TRUNK, DecisionT, Effect, EventT, Machine, StateT, Store, action_value
from pipeline.outcomes import Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.matrix.engine.journal_kinds import Answerer, JournalEvent, Reopened


@dataclass(frozen=True)
class Decided(Generic[StateT, EventT, DecisionT]):
    """One decision of the run, with the states before and after it, as `explain` shows it."""

    line: Line
    event: EventT
    before: StateT
    after: StateT
    decision: DecisionT


class MachineRun(Generic[StateT, EventT, DecisionT]):
    """A run of a machine, for reading or, under its lease, for driving.

    Attributes:
        store: Where it is kept.
        journal: What it said, oldest first.
        machine: What decides.
        state: What folding the journal gives.
        history: The decisions, oldest first.
        artifacts: sha256 of each artifact as the journal names it last, by its name in the store.
    """

    def __init__(
        self, store: Store, journal: Journal, machine: Machine[StateT, EventT, DecisionT], *, program: str
    ) -> None:
        self.store = store
        self.journal = journal
        self.machine = machine
        self.state: StateT = machine.initial()
        self.history: list[Decided[StateT, EventT, DecisionT]] = []
        self.artifacts: dict[str, str] = {}
        self._program = program
        self._open_effects: dict[str, Effect] = {}
        for line in journal.lines:
            self.fold(line)

    def recover(self) -> None:
        """Journal the effects that were decided before a crash but not written."""
        for effect in list(self._open_effects.values()):
            self._say(effect)

    # --- writing -----------------------------------------------------------------------------------------------

    def decide(self, event: EventT) -> DecisionT:
        """Decide about *event*; the decision and its effects are in the journal when this returns."""
        state, decision = self.machine.advance(self.state, event)
        line = self.journal.append(
            DecisionMade(
                step=str(decision.step),
                task=decision.task,
                signal=str(event.signal),
                row=decision.row,
                action=dict(action_value(decision.action)),
                counters=dict(decision.counters),
                exhausted=tuple(map(str, decision.exhausted)),
                evidence=event.evidence,
                visit=decision.visit,
                event=event.model_dump(mode="json", exclude_defaults=True),
                **({} if event.lane == TRUNK else {"lane": event.lane}),
            )
        )
        self._take(Decided(line, event, self.state, state, decision))
        for effect in decision.effects:
            self._say(effect)
        return decision

    @property
    def queued(self) -> bool:
        """Return whether the run was answered and has not been driven since."""
        return bool(self.journal.lines) and isinstance(self.journal.lines[-1].data, RunQueued)

    def answer_gate(
        self,
        answer: str,
        event: EventT,
        artifacts: Mapping[str, str] | None = None,
        by: Answerer | None = None,
        *,
        edited: Mapping[str, str | None] | None = None,
    ) -> None:
        """Record an answer at the gate of a lane; for *artifacts* and *edited* see `GateAnswered`."""
        gate = (self.state.trunk.gate or "") if event.lane == TRUNK else event.lane
        who: dict[str, str] = {} if by is None else by.model_dump()
        said = {"gate": gate, "answer": answer, "artifacts": dict(artifacts or {}), "edited": dict(edited or {}), **who}
        self.journal.append(GateAnswered.model_validate(said))
        self.decide(event)

    def tell(self, event: JournalEvent) -> None:
        """Add a line to the journal, and apply it to the state."""
        self.fold(self.journal.append(event))

    def queue(self) -> None:
        """Record that the run continues as soon as somebody drives it; nothing if it does not continue."""
        if self.state.outcome is None and not self.queued:
            self.journal.append(RunQueued(step=str(self.state.trunk.step)))

    def resume(
        self,
        *,
        sandbox: Mapping[str, str] | None = None,
        flags: Mapping[str, Mapping[str, str]] | None = None,
        program: Mapping[str, str] | None = None,
        reopened: Reopened | None = None,
    ) -> None:
        """Resume after a park, a cancellation or a crash: a new epoch, the same step; *flags* override earlier ones.

        With *reopened*, what it names is to be done, and nothing else that is over.
        """
        was = "queued" if self.queued else self.state.outcome
        said = {"step": str(self.state.trunk.step), "was": was}
        self.journal.epoch += 1
        more: dict[str, object] = {} if sandbox is None else {"sandbox": dict(sandbox)}
        more |= {"flags": flags} if flags else {}
        more |= {"program": program} if program else {}
        more |= {"reopened": reopened.model_dump(mode="json", exclude_defaults=True)} if reopened is not None else {}
        self.tell(RunResumed.model_validate({**said, **more}))

    def abandon(self) -> None:
        """Journal that the user abandoned the run; it can never go on (contract 2)."""
        self.tell(RunFinished(outcome=Outcome.CANCELLED.value, reason=Reason.ABANDONED.value))

    def write_artifact(self, name: str, content: str | bytes) -> None:
        """Write an artifact and journal it; unchanged content is not written again."""
        data = content.encode("utf-8", errors="surrogateescape") if isinstance(content, str) else content
        digest = sha256_hex(data)
        there = self._holds(name, data)
        if not there:
            self.store.write(name, data)
        if not there or self.artifacts.get(name) != digest:  # a crash may have come between file and line
            self.tell(ArtifactWritten(path=name, sha256=digest))

    def read(self, name: str) -> bytes:
        """Return the content of an artifact.

        Raises:
            OSError: it is not there, or is none that a run writes.
        """
        return self.store.read(name)

    def _holds(self, name: str, content: bytes) -> bool:
        try:
            return self.store.read(name) == content
        except OSError:
            return False

    def _say(self, effect: Effect) -> None:
        self._open_effects[effect.id] = effect
        self.tell(EVENTS[effect.kind].model_validate({"id": effect.id, **effect.data}))

    # --- folding -----------------------------------------------------------------------------------------------

    def fold(self, line: Line) -> None:
        """Apply a line of the journal to the state.

        Raises:
            UserError: the machine decides otherwise today.
        """
        match line.data:
            case DecisionMade() as said:
                self._take(self._recomputed(line, said))
            case ArtifactWritten(path=path, sha256=digest):
                self.artifacts[path] = digest
            case RunResumed() | InputGiven():
                self.state = self.machine.resume(self.state)
            case ConfigChanged(limits=changed):
                self.state = replace(self.state, limits={**self.state.limits, **changed})
            case RunStopped(id=None, reason=Reason.ABANDONED.value):  # no decision: the user's word
                self.state = replace(self.state, outcome=Outcome.CANCELLED, reason=Reason.ABANDONED)
            case EffectMade(id=id_):
                self._open_effects.pop(str(id_), None)
            case _:
                pass

    def _take(self, decided: Decided[StateT, EventT, DecisionT]) -> None:
        self.history.append(decided)
        self.state = decided.after
        self._open_effects |= {effect.id: effect for effect in decided.decision.effects}

    def _recomputed(self, line: Line, said: DecisionMade) -> Decided[StateT, EventT, DecisionT]:
        """Return the decision computed again from a recorded event; fail if it differs from the recorded one."""
        try:
            event = self.machine.read(said.event)
            state, decision = self.machine.advance(self.state, event)
        except (LookupError, ValueError) as error:
            raise self._decided_otherwise(line, said) from error
        found = (event.lane, decision.row, action_value(decision.action), decision.counters)
        if found != (said.lane, said.row, said.action, said.counters):
            raise self._decided_otherwise(line, said)
        return Decided(line, event, self.state, state, decision)

    def _decided_otherwise(self, line: Line, said: DecisionMade) -> UserError:
        name = self.store.name
        return UserError(
            f"{name} was decided otherwise at journal line {line.seq} ({said.row}): it was written by {self._program}, "
            f"whose rows differ. Go on with that version, or: redfirst abandon {name}",
            Reason.USAGE,
            path=self.store.where(JOURNAL),
            pointer=f"/{line.seq - 1}",
            actions=(f"redfirst abandon {name}",),
        )


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of *data* in hex."""
    return hashlib.sha256(data).hexdigest()
