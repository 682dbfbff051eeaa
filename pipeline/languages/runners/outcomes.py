"""Judges a run of compiled tests as a whole, from the records of our programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import Ended, Observation, RunState
from pipeline.languages.runners.exec_guard import UNWATCHED
from pipeline.languages.runners.sessions import Start

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.evidence.observation import CollectionError, TestRecord
    from pipeline.languages.runners.sessions import Session
    from pipeline.process import Completed

TAIL: Final = 8_000
"""The most characters of output that are kept for people."""
COMPILING: Final = "compiling the tests reached the time limit"
_SHOWN: Final = 20


@dataclass(frozen=True)
class Unusable:
    """The reason why no test can be run. `errors` are set if the project itself is at fault."""

    state: RunState
    detail: str
    errors: tuple[CollectionError, ...] = ()


def nothing(why: Unusable, completed: Completed, *, command: tuple[str, ...], tail: str) -> Observation:
    """Return the observation of a project none of whose tests could be run."""
    said = tail or completed.stderr.decode("utf-8", "replace")
    return Observation(
        state=why.state, detail=why.detail, collection_errors=why.errors, command=command, tail=said[-TAIL:]
    )


def unfinished(session: Session, completed: Completed, detail: str = COMPILING) -> Unusable:
    """Return why a session did not complete; `detail` is used if the session has no reason."""
    state = RunState.TIMED_OUT if completed.timed_out or session.is_late else RunState.UNUSABLE
    return Unusable(state, session.fault or detail)


def state_of(session: Session, *, timed_out: bool) -> tuple[RunState, str]:
    """Return the state of a run of tests, and why it cannot be used; `timed_out` if the box ended it."""
    if session.fault:
        return RunState.UNUSABLE, session.fault
    if timed_out or session.is_late:
        return RunState.TIMED_OUT, "the test run reached its time limit"
    if not session.is_whole:
        return RunState.CRASHED, "the test run died"
    return RunState.COMPLETE, ""


def with_last_outcome(records: dict[str, TestRecord], session: Session, state: RunState) -> dict[str, TestRecord]:
    """Return the records, with the run's own end added to the test that was running then."""
    started = [line.id for line in session.of(Start) if line.id in records]
    if state not in {RunState.CRASHED, RunState.TIMED_OUT} or not started or records[started[-1]].outcome is not None:
        return records
    ended = Ended.TIMED_OUT if state is RunState.TIMED_OUT else Ended.CRASHED
    return {**records, started[-1]: records[started[-1]].model_copy(update={"outcome": ended})}


def unwatched(reasons: Iterable[str]) -> list[str]:
    """Return in words why processes could not be watched, each reason once."""
    return [f"{UNWATCHED}: {why}" for why in sorted({*reasons} - {""})]


def shortened(words: Sequence[str]) -> tuple[str, ...]:
    """Return the first words of a long list, and the number of the others."""
    rest = () if len(words) <= _SHOWN else (f"... and {len(words) - _SHOWN} more",)
    return (*words[:_SHOWN], *rest)
