"""Walking the machine in tests: signals as words, trees as names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.matrix.routing.advance import MatrixMachine, advance
from pipeline.matrix.routing.state import EVERYBODY, Event, NewTask, Settings
from pipeline.outcomes import Reason
from pipeline.vocabulary import Loop, Role, Signal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.matrix.routing.advance import Decision
    from pipeline.matrix.routing.state import Phases, RunState

START = "start"


def begin(
    limits: Mapping[Loop, int] | None = None,
    gates: Iterable[str] = (),
    *,
    park: bool = False,
    phases: Phases = EVERYBODY,
    parallel: int = 1,
) -> RunState:
    """A run that has done nothing yet."""
    settings = Settings(limits or {}, frozenset(gates), park_on_blockers=park, phases=phases, parallel=parallel)
    return MatrixMachine(START, settings).initial()


def tasks(*names: str | NewTask) -> tuple[NewTask, ...]:
    return tuple(NewTask(id=name) if isinstance(name, str) else name for name in names)


def event(said: str, **facts: Any) -> Event:
    """One event from words: `RED=tree`, `MALFORMED@check`, `DRAFTED:1,2` (tasks), `NEEDS_WORK!plan-1` (blockers)."""
    word, _, blockers = said.partition("!")
    word, _, drafted = word.partition(":")
    word, _, role = word.partition("@")
    word, _, tree = word.partition("=")
    found: dict[str, Any] = {"signal": Signal(word)}
    if tree:
        found["tree"] = tree
    if role:
        found["role"] = Role(role)
    if drafted:
        found["tasks"] = tasks(*drafted.split(","))
    if blockers:
        found["blockers"] = tuple(blockers.split(","))
    if word == Signal.PRECONDITION:
        found["reason"] = Reason.DIRTY_TREE
    return Event(**{**found, **facts})


def walk(state: RunState, *said: str | Event) -> RunState:
    """The state after these events; one string may hold several words."""
    return walk_with_decisions(state, *said)[0]


def walk_with_decisions(state: RunState, *said: str | Event) -> tuple[RunState, list[Decision]]:
    decisions: list[Decision] = []
    for part in said:
        for item in [part] if isinstance(part, Event) else [event(word) for word in part.split()]:
            state, decision = advance(state, item)
            decisions.append(decision)
    return state, decisions


TO_SPLIT = "OK CLAIMED DRAFTED ACCEPTABLE"


def at_first_task(*drafted: str | NewTask, limits: Mapping[Loop, int] | None = None) -> RunState:
    """A run whose split of these tasks (one by default) was accepted."""
    split = Event(signal=Signal.DRAFTED, tasks=tasks(*(drafted or ("1",))))
    return walk(begin(limits), TO_SPLIT, split, "ACCEPTABLE")
