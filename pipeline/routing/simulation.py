"""Walking the matrix with signals from a file, and no agent: what would be decided, and what it would cost.

The file is strict: an entry that cannot be taken is an error with its place and the accepted words. Trees may be left
out, since a walk without agents has none: each step that makes one then gets a name of its own. Nothing performs I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipeline.engine.machine import TRUNK, action_value
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.routing.actions import Again, Forward, LeaveOut, NextTask, Return
from pipeline.routing.machine import MatrixMachine, advance, limit_of, signals_of
from pipeline.routing.matrix import MATRIX
from pipeline.routing.state import Event, NewTask, RunState, Settings, Trees
from pipeline.routing.state_changes import DRAFTS
from pipeline.routing.vocabulary import Loop, Role, Signal, Step
from pipeline.routing.words import action_words, step_words
from pipeline.yaml_text import YamlError, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.routing.machine import Decision

SCHEMA: Final = "redfirst.simulation/1"
RESUMED: Final = "RESUMED"
"""The entry that stands for a person who resumes a parked or cancelled run."""

START: Final = "start"


class SignalsError(ValueError):
    """An entry of the file that cannot be taken; `pointer` is a JSON pointer to it."""

    def __init__(self, message: str, pointer: str = "", accepted: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.accepted = tuple(accepted)


class Entry(BaseModel):
    """One entry of a signals file; a bare word is an entry that has only its signal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    signal: str
    role: Role | None = None
    tree: str | None = None
    tasks: tuple[NewTask, ...] = ()
    blockers: tuple[str, ...] = ()
    reason: Reason | None = None
    note: str = ""
    task: str | None = None
    """Which of the tasks that are worked on side by side reports it; left out: the first that has something to do."""


_INTEGRATED: Final = frozenset(row.signal for row in MATRIX if row.step is Step.INTEGRATE)
_ENTRIES: Final = TypeAdapter(tuple[Entry, ...])


@dataclass(frozen=True)
class Taken:
    """One entry and what was decided on it; `decision` is None for RESUMED."""

    number: int
    entry: Entry
    decision: Decision | None
    before: RunState
    after: RunState

    @property
    def counters(self) -> list[str]:
        """Return the limits that were counted, or found reached: `plan_review 1/2`, `seam 1/1 used up`."""
        if self.decision is None:
            return []
        paid = [(key.partition("@")[0], count) for key, count in self.decision.counters.items()]
        empty = [f"{loop.value} used up" for loop in self.decision.exhausted]
        return [*empty, *(f"{name} {count}{_of(limit_of(self.before, Loop(name)))}" for name, count in paid)]


@dataclass(frozen=True)
class Walk:
    """A whole walk: what was taken, and how the run stands then."""

    taken: tuple[Taken, ...]
    state: RunState

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Return the words that can come next; none when the run has ended."""
        return words_of(self.state)

    @property
    def side_by_side(self) -> tuple[str, ...]:
        """Return the tasks that can report something, if they are worked on side by side."""
        state = self.state
        return tuple(str(state.lanes[lane].task) for lane in state.due(())) if state.beside else ()


def parse_signals(text: str) -> tuple[Entry, ...]:
    """Return the entries of a YAML or JSON list.

    Raises:
        SignalsError: the text is no list of entries; names the place and the accepted words.
    """
    try:
        found: Any = read(text, aliases=True).value
    except YamlError as error:
        raise SignalsError(f"This is neither YAML nor JSON: {error}") from error
    if not isinstance(found, list):
        raise SignalsError("Expected a list of signals, such as [OK, CLAIMED, DRAFTED].")
    items: list[Any] = [{"signal": item} if isinstance(item, str) else item for item in found]  # pyright: ignore[reportUnknownVariableType]  YAML
    try:
        return _ENTRIES.validate_python(items)
    except ValidationError as error:
        raise _refusal(error) from error


def simulate(entries: Iterable[Entry], settings: Settings | None = None) -> Walk:
    """Return the walk that *entries* lead to.

    Raises:
        SignalsError: an entry cannot be taken where it stands; names it and what the step may report.
    """
    machine = MatrixMachine(START, settings or Settings())
    state = machine.initial()
    taken: list[Taken] = []
    for number, entry in enumerate(entries, 1):
        before = state
        if entry.signal == RESUMED and RESUMED in words_of(state):
            state, decision = machine.resume(state), None
        else:
            event = _event(state, number, entry)
            try:
                state, decision = advance(state, event)
            except ValueError as error:
                raise SignalsError(f"Entry {number}: {error}.", f"/{number - 1}") from error
            state = replace(state, dispatches=state.dispatches + dispatches_due(decision, before, state))
        taken.append(Taken(number, entry, decision, before, state))
    return Walk(tuple(taken), state)


def words_of(state: RunState) -> tuple[str, ...]:
    """Return the entries that can come now, in the order of the vocabulary; of tasks side by side those of the first.

    CANCELLED, by which the user stops the run, is among them.
    """
    if state.beside and state.outcome is None:
        state = state.seen_from(state.due(())[0])
    if state.outcome is None or state.trunk.step is Step.GATE:
        return tuple(signal.value for signal in Signal if signal in signals_of(state))
    return (RESUMED,) if state.outcome in {Outcome.PARKED, Outcome.CANCELLED} else ()


def dispatches_due(decision: Decision, before: RunState, after: RunState) -> int:
    """Return how many dispatches a decision leads to, at most: IMPLEMENT may find GREEN without one."""
    if after.outcome is not None or isinstance(decision.action, LeaveOut):
        return 0
    if isinstance(decision.action, Again):
        return 1
    new = [lane for lane in after.lanes.values() if lane.visit > before.visits]
    return sum(
        0 if lane.step is Step.SPLIT and after.passes_split else len(after.phases.slots(lane.step)) for lane in new
    )


def _event(state: RunState, number: int, entry: Entry) -> Event:
    """Return the entry as an event of the step that the run stands at; what is unambiguous may be left out."""
    here = f"/{number - 1}"
    lane = _lane(state, number, entry)
    state = state.seen_from(lane)
    accepted = words_of(state)
    if entry.signal not in accepted:
        raise SignalsError(f"Entry {number}: {_unrouted(state, entry.signal, accepted)}", f"{here}/signal", accepted)
    signal = Signal(entry.signal)
    slots = state.phases.slots(state.trunk.step)
    role = entry.role or (slots[0] if len(slots) == 1 else None)
    if entry.role is not None and slots and entry.role not in slots:
        raise SignalsError(
            f"Entry {number}: {step_words(state.trunk.step)} does not ask {entry.role}, only: {', '.join(slots)}.",
            f"{here}/role",
            [slot.value for slot in slots],
        )
    if signal in DRAFTS and state.trunk.step is Step.SPLIT and not entry.tasks:
        raise SignalsError(
            f'Entry {number}: the split needs its tasks, for example tasks: [{{id: "1"}}].', f"{here}/tasks"
        )
    tree = entry.tree or f"tree-{number}"
    tasks = entry.tasks
    if state.parallel > 1:  # a walk knows no files that two tasks might share
        tasks = tuple(task if task.after is not None else task.model_copy(update={"after": ()}) for task in tasks)
    return Event(
        signal=signal,
        lane=lane,
        role=role,
        tree=tree,
        trees=_over_head(state, signal, tree),
        tasks=tasks,
        blockers=entry.blockers,
        reason=entry.reason,
        note=entry.note,
    )


def _over_head(state: RunState, signal: Signal, tree: str) -> Trees | None:
    """Return the trees that INTEGRATE makes where the head is not what the task began with."""
    if state.trunk.step is not Step.INTEGRATE or signal not in _INTEGRATED or state.task.start == state.head:
        return None
    red = None if signal in {Signal.TEST_CONFLICT, Signal.RED_GONE} else f"{tree}-red"
    return Trees(start=state.head, tests=f"{tree}-tests", red=red, candidate=tree)


def _lane(state: RunState, number: int, entry: Entry) -> str:
    """Return the lane of an entry: that of its task, else the first that has something to do."""
    due = {str(state.lanes[lane].task): lane for lane in state.due(())} if state.beside else {}
    if entry.task is not None and entry.task not in due:
        accepted = tuple(due)
        only = f"only: {', '.join(accepted)}" if accepted else "no tasks are worked on side by side"
        words = f"Entry {number}: task {entry.task} reports nothing now; {only}."
        raise SignalsError(words, f"/{number - 1}/task", accepted)
    return due[entry.task] if entry.task is not None else next(iter(due.values()), TRUNK)


def _unrouted(state: RunState, word: str, accepted: Sequence[str]) -> str:
    if not accepted:
        return f"{word} comes after the run has ended as {state.outcome}; it takes no more entries."
    where = f"the run is {state.outcome} and" if accepted == (RESUMED,) else step_words(state.trunk.step)
    close = get_close_matches(word.upper(), accepted, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    return f"{where} cannot take {word}, only: {', '.join(accepted)}.{hint}"


def _refusal(error: ValidationError) -> SignalsError:
    problem = error.errors(include_url=False)[0]
    place = [str(part) for part in problem["loc"]]
    where = f"Entry {int(place[0]) + 1}" + (f", {'.'.join(place[1:])}" if place[1:] else "")
    accepted: list[str] = []
    match problem["type"]:
        case "extra_forbidden":
            accepted = list((NewTask if "tasks" in place[:-1] else Entry).model_fields)
            said = "this key is not known"
        case "enum":
            accepted = [word.value for word in (Role if place[-1] == "role" else Reason)]
            said = f"{problem['input']!r} is not known"
        case "model_type":
            accepted = list(Entry.model_fields)
            said = "expected a word, or keys and values"
        case "string_type":
            said = f"{problem['input']!r} must be a text: put it in quotes"
        case _:
            said = problem["msg"]
    only = f"; accepted: {', '.join(accepted)}" if accepted else ""
    return SignalsError(f"{where}: {said}{only}.", "/" + "/".join(place), accepted)


# --- what a walk looks like ------------------------------------------------------------------------------------------


def walk_text(walk: Walk) -> str:
    """Return a walk for people: each decision with what it paid, then how the run stands."""
    lines: list[str] = []
    for taken in walk.taken:
        lines += _taken_lines(taken)
    state = walk.state
    limit = limit_of(state, Loop.DISPATCHES)
    over = " A run that needs them all is parked before that." if limit is not None and state.dispatches > limit else ""
    used = f"Dispatches: at most {state.dispatches}{_of(limit)}.{over}"
    return "\n".join([*lines, *([""] if lines else []), *_standing(walk), used])


def _taken_lines(taken: Taken) -> list[str]:
    decision = taken.decision
    if decision is None:
        return [f"{taken.number:>3}  {step_words(taken.after.trunk.step)}  {RESUMED}"]
    task = f" task {decision.task}" if decision.task else ""
    words = action_words(decision.action, decision.step)
    after = taken.after
    if isinstance(decision.action, NextTask | Forward | Return) and after.outcome is None:
        lane = f"task-{decision.task}"
        after = after.seen_from(lane) if lane in after.lanes else after
        task_now = f" task {after.current}" if after.current else ""
        words = f"{words}: {step_words(after.trunk.step)}{task_now}"
        if after.beside:
            tasks = ", ".join(f"{lane.task} in {step_words(lane.step)}" for lane in after.beside.values())
            words = f"side by side: {tasks}"
    lines = [f"{taken.number:>3}  {step_words(decision.step)}{task}  {taken.entry.signal}: {words}"]
    lines.append(f"     row {decision.row}" + "".join(f"; {counter}" for counter in taken.counters))
    effects = (
        (effect.kind, " ".join(f"{key}={value}" for key, value in effect.data.items())) for effect in decision.effects
    )
    return [*lines, *(f"     {kind} {facts}" for kind, facts in effects)]


def _standing(walk: Walk) -> list[str]:
    state = walk.state
    beside = walk.side_by_side
    at = state.seen_from(state.due(())[0]) if beside and state.outcome is None else state
    of = f" of task {beside[0]}" if beside and state.outcome is None else ""
    waits = f"The run waits in {step_words(at.trunk.step)}{of} for one of: {', '.join(walk.waits_for)}."
    if len(beside) > 1 and state.outcome is None:
        waits += f" Side by side: {', '.join(beside)}; an entry's task says which."
    if state.outcome is None or state.reason is None:
        return [waits]
    ended = f"Outcome: {state.outcome} ({state.reason}), exit {exit_code(state.outcome, state.reason)}."
    return [ended, waits] if walk.waits_for else [ended]


def walk_value(walk: Walk) -> dict[str, Any]:
    """Return a walk as a document, for `--json`."""
    state = walk.state
    ended = state.outcome is not None and state.reason is not None
    return {
        "schema": SCHEMA,
        "ok": True,
        "decisions": [_taken_value(taken) for taken in walk.taken],
        "step": state.trunk.step.value,
        "phase": state.trunk.step.phase,
        "task": state.current,
        "side_by_side": list(walk.side_by_side),
        "gate": state.trunk.gate,
        "outcome": state.outcome,
        "reason": state.reason,
        "exit_code": exit_code(state.outcome, state.reason) if ended and state.outcome and state.reason else None,
        "waits_for": list(walk.waits_for),
        "dispatches": {"at_most": state.dispatches, "limit": limit_of(state, Loop.DISPATCHES)},
        "blockers": list(state.open_blockers),
    }


def _taken_value(taken: Taken) -> dict[str, Any]:
    decision = taken.decision
    value: dict[str, Any] = {"number": taken.number, "signal": taken.entry.signal}
    if decision is None:
        return {**value, "step": taken.after.trunk.step.value, "phase": taken.after.trunk.step.phase}
    return {
        **value,
        "step": decision.step.value,
        "phase": decision.step.phase,
        "task": decision.task,
        "row": decision.row,
        "action": action_value(decision.action),
        "words": action_words(decision.action, decision.step),
        "counters": decision.counters,
        "exhausted": [loop.value for loop in decision.exhausted],
        "effects": [{"kind": effect.kind, **effect.data} for effect in decision.effects],
    }


def _of(limit: int | None) -> str:
    return "" if limit is None else f"/{limit}"
