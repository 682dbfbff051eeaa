"""Walks the matrix with signals from a file and no agent: what would be decided, and what it would cost.

The file is strict: an entry that cannot be taken is an error with its place. Trees may be left out, since a walk
without agents has none: each step that makes one then gets a name of its own. Nothing performs I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from pipeline.data_types import Frozen
from pipeline.matrix.engine.protocols import TRUNK, action_value
from pipeline.matrix.routing.actions import Again, Forward, LeaveOut, NextTask, Return
from pipeline.matrix.routing.advance import Decision, MatrixMachine, advance
from pipeline.matrix.routing.lookup import limit_of, signals_of
from pipeline.matrix.routing.matrix import MATRIX
from pipeline.matrix.routing.plain_words import action_words, step_words
from pipeline.matrix.routing.state import Event, MatrixLane, NewTask, RunState, Settings, Trees
from pipeline.matrix.routing.state_changes import DRAFTS
from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.vocabulary import Loop, Role, Signal, Step
from pipeline.yaml_text import YamlError, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.matrix.engine.protocols import Decision as AnyDecision

RESUMED: Final = "RESUMED"
"""The entry that stands for a person who resumes a parked or cancelled run."""
_INTEGRATED: Final = frozenset(row.signal for row in MATRIX if row.step is Step.INTEGRATE)
_Said = TypeVar("_Said")


class SignalsError(ValueError):
    """An entry of the file that cannot be taken; `pointer` is a JSON pointer to it."""

    def __init__(self, message: str, pointer: str = "", accepted: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.pointer = pointer
        self.accepted = tuple(accepted)


class Entry(Frozen):
    """One entry of a signals file; a bare word is an entry that has only its signal."""

    signal: str
    role: Role | None = None
    tree: str | None = None
    tasks: tuple[NewTask, ...] = ()
    blockers: tuple[str, ...] = ()
    reason: Reason | None = None
    note: str = ""
    task: str | None = None
    """Which of the tasks that are worked on side by side reports it; left out: the first that has something to do."""


_ENTRY: Final = TypeAdapter(Entry)


@dataclass(frozen=True)
class Taken:
    """One entry and what was decided on it: as lines for a person, and as a document."""

    lines: tuple[str, ...]
    value: dict[str, Any]


@dataclass(frozen=True)
class Walk:
    """A whole walk: what was taken, how the run stands then, and what can come next: nothing when it has ended."""

    taken: tuple[Taken, ...]
    state: Any
    waits_for: tuple[str, ...]
    value: dict[str, Any]
    """What its document has of its own."""
    notes: tuple[str, ...]
    """What a person is told at the end."""
    schema: str = "redfirst.simulation/1"


def walk_text(walk: Walk) -> str:
    """Return a walk for people: each decision with what it paid, then how the run stands."""
    lines = [line for taken in walk.taken for line in taken.lines]
    lines += [""] if lines else []
    state = walk.state
    if state.outcome is not None and state.reason is not None:
        lines.append(f"Outcome: {state.outcome} ({state.reason}), exit {exit_code(state.outcome, state.reason)}.")
    return "\n".join([*lines, *walk.notes])


def walk_value(walk: Walk) -> dict[str, Any]:
    """Return a walk as a document, for `--json`."""
    outcome, reason = walk.state.outcome, walk.state.reason
    return {
        "schema": walk.schema,
        "ok": True,
        "decisions": [taken.value for taken in walk.taken],
        **walk.value,
        "outcome": outcome,
        "reason": reason,
        "exit_code": exit_code(outcome, reason) if outcome and reason else None,
        "waits_for": list(walk.waits_for),
    }


def decision_value(decision: AnyDecision) -> dict[str, Any]:
    """Return what the document of a walk has of each decision."""
    return {
        "row": decision.row,
        "action": action_value(decision.action),
        "counters": dict(decision.counters),
        "effects": [{"kind": effect.kind, **effect.data} for effect in decision.effects],
    }


def entries_of(text: str) -> list[Any]:
    """Return the entries of a YAML or JSON list; a word alone is a signal.

    Raises:
        SignalsError: the text is no list.
    """
    try:
        found: Any = read(text, aliases=True).value
    except YamlError as error:
        raise SignalsError(f"This is neither YAML nor JSON: {error}") from error
    if not isinstance(found, list):
        raise SignalsError("Expected a list of signals, such as [OK, CLAIMED, DRAFTED].")
    return [{"signal": item} if isinstance(item, str) else item for item in found]  # pyright: ignore[reportUnknownVariableType]  YAML


def checked(form: TypeAdapter[_Said], number: int, said: Any) -> _Said:
    """Return an entry in its form.

    Raises:
        SignalsError: it has another one; names the place.
    """
    try:
        return form.validate_python(said)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = [str(part) for part in fault["loc"]]
        raise SignalsError(
            f"Entry {number}{', ' if place else ''}{'.'.join(place)}: {fault['msg']}.",
            "/".join(["", str(number - 1), *place]),
        ) from error


def simulate(text: str, settings: Settings | None = None) -> Walk:
    """Return the walk that the entries of a YAML or JSON list lead to.

    Raises:
        SignalsError: an entry cannot be taken where it stands; names it and what the step may report.
    """
    machine = MatrixMachine("start", settings or Settings())
    state = machine.initial()
    taken: list[Taken] = []
    for number, said in enumerate(entries_of(text), 1):
        entry, before = checked(_ENTRY, number, said), state
        if entry.signal == RESUMED and RESUMED in words_of(state):
            state = machine.resume(state)
            step = state.trunk.step
            value = {"number": number, "signal": RESUMED, "step": step.value, "phase": step.phase}
            taken.append(Taken((f"{number:>3}  {step_words(step)}  {RESUMED}",), value))
            continue
        try:
            state, decision = advance(state, _event(state, number, entry))
        except SignalsError:
            raise
        except ValueError as error:
            raise SignalsError(f"Entry {number}: {error}.", f"/{number - 1}") from error
        state = replace(state, dispatches=state.dispatches + dispatches_due(decision, before, state))
        taken.append(_taken(number, entry, decision, before, state))
    beside = [str(state.lanes[lane].task) for lane in state.due(())] if state.beside else []
    limit = limit_of(state, Loop.DISPATCHES)
    value = {
        "step": state.trunk.step.value,
        "phase": state.trunk.step.phase,
        "task": state.current,
        "side_by_side": beside,
        "gate": state.trunk.gate,
        "dispatches": {"at_most": state.dispatches, "limit": limit},
        "blockers": list(state.open_blockers),
    }
    over = " A run that needs them all is parked before that." if limit is not None and state.dispatches > limit else ""
    used = f"Dispatches: at most {state.dispatches}{_of_limit(limit)}.{over}"
    return Walk(tuple(taken), state, words_of(state), value, (*_waiting(state, beside), used))


def _waiting(state: RunState, beside: list[str]) -> list[str]:
    words = words_of(state)
    if not words:
        return []
    of = ""
    if beside and state.outcome is None:
        of, state = f" of task {beside[0]}", state.seen_from(state.due(())[0])
    waits = f"The run waits in {step_words(state.trunk.step)}{of} for one of: {', '.join(words)}."
    return [f"{waits} Side by side: {', '.join(beside)}; an entry's task says which." if len(beside) > 1 else waits]


def _taken(number: int, entry: Entry, decision: Decision, before: RunState, after: RunState) -> Taken:
    step, task = decision.step, decision.task
    words = does = action_words(decision.action, step)
    if isinstance(decision.action, NextTask | Forward | Return) and after.outcome is None:
        seen = after.seen_from(f"task-{task}") if f"task-{task}" in after.lanes else after
        task_now = f" task {seen.current}" if seen.current else ""
        words = f"{words}: {step_words(seen.trunk.step)}{task_now}"
        if seen.beside:
            tasks = ", ".join(f"{lane.task} in {step_words(lane.step)}" for lane in seen.beside.values())
            words = f"side by side: {tasks}"
    counts = [f"{loop.value} used up" for loop in decision.exhausted]
    for key, count in decision.counters.items():
        name = key.partition("@")[0]
        counts.append(f"{name} {count}{_of_limit(limit_of(before, Loop(name)))}")
    lines = (
        f"{number:>3}  {step_words(step)}{f' task {task}' if task else ''}  {entry.signal}: {words}",
        "; ".join([f"     row {decision.row}", *counts]),
        *(
            f"     {effect.kind} {' '.join(f'{key}={value}' for key, value in effect.data.items())}"
            for effect in decision.effects
        ),
    )
    value = {
        "number": number,
        "signal": entry.signal,
        "step": step.value,
        "phase": step.phase,
        "task": task,
        "words": does,
        "exhausted": [loop.value for loop in decision.exhausted],
        **decision_value(decision),
    }
    return Taken(lines, value)


def _of_limit(limit: int | None) -> str:
    """Return a limit behind what is counted, nothing where there is none: `/2`."""
    return "" if limit is None else f"/{limit}"


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
