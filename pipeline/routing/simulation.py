"""Walks the matrix with signals from a file and no agent: what would be decided, and what it would cost.

The file is strict: an entry that cannot be taken is an error with its place and the accepted words. Trees may be left
out, since a walk without agents has none: each step that makes one then gets a name of its own. Nothing performs I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipeline.engine.machine import TRUNK
from pipeline.outcomes import Outcome, Reason
from pipeline.routing.actions import Again, LeaveOut
from pipeline.routing.lookup import limit_of, signals_of
from pipeline.routing.machine import MatrixMachine, advance
from pipeline.routing.matrix import MATRIX
from pipeline.routing.state import Event, MatrixLane, NewTask, RunState, Settings, Trees
from pipeline.routing.state_changes import DRAFTS
from pipeline.routing.vocabulary import Loop, Role, Signal, Step
from pipeline.routing.words import step_words
from pipeline.yaml_text import YamlError, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.routing.machine import Decision

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
        return [*empty, *(f"{name} {count}{of_limit(limit_of(self.before, Loop(name)))}" for name, count in paid)]


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
    return sum(0 if _is_taken(lane, after) else len(_asked_in(lane, after)) for lane in new)


def _asked_in(lane: MatrixLane, state: RunState) -> tuple[Role, ...]:
    return state.slots if lane == state.trunk else state.phases.slots(lane.step)


def _is_taken(lane: MatrixLane, state: RunState) -> bool:
    """Return whether what would be drafted is there already."""
    if lane.step is Step.PLAN:
        return state.phases.given and lane.via is None
    return lane.step is Step.SPLIT and state.passes_split


def _event(state: RunState, number: int, entry: Entry) -> Event:
    """Return the entry as an event of the step that the run stands at; what is unambiguous may be left out."""
    here = f"/{number - 1}"
    lane = _lane(state, number, entry)
    state = state.seen_from(lane)
    accepted = words_of(state)
    if entry.signal not in accepted:
        raise SignalsError(f"Entry {number}: {_unrouted(state, entry.signal, accepted)}", f"{here}/signal", accepted)
    signal = Signal(entry.signal)
    slots = state.slots
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
    if state.one_writer and signal is Signal.CLAIMED and not tasks:
        tasks = (NewTask(id="1"),)
    if state.parallel > 1:  # a walk knows no files that two tasks might share
        tasks = tuple(task if task.after is not None else task.model_copy(update={"after": ()}) for task in tasks)
    return Event(
        signal=signal,
        lane=lane,
        role=role,
        tree=tree,
        trees=_parted(state, signal, tree) or _over_head(state, signal, tree),
        tasks=tasks,
        blockers=entry.blockers,
        reason=entry.reason,
        note=entry.note,
    )


def _parted(state: RunState, signal: Signal, tree: str) -> Trees | None:
    """Return the trees that BUILD makes of what it was handed, where that has tests."""
    if state.trunk.step is not Step.BUILD or signal is Signal.NOT_TESTABLE:
        return None
    return Trees(start=state.head, tests=f"{tree}-red", red=f"{tree}-red", candidate=tree)


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


def of_limit(limit: int | None) -> str:
    """Return a limit behind what is counted, nothing where there is none: `/2`."""
    return "" if limit is None else f"/{limit}"
