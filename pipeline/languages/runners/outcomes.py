"""What a run of compiled tests came to as a whole, from the records of our programs."""

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
"""Characters that are kept of what was printed, for people."""
COMPILING: Final = "compiling the tests reached the time limit"
_SHOWN: Final = 20


@dataclass(frozen=True)
class Unusable:
    """Why there is nothing to run. `errors` are there if the project itself is at fault."""

    state: RunState
    detail: str
    errors: tuple[CollectionError, ...] = ()


def nothing(why: Unusable, completed: Completed, *, command: tuple[str, ...], tail: str) -> Observation:
    """Return the observation of a project of which no test could be run."""
    said = tail or completed.stderr.decode("utf-8", "replace")
    return Observation(
        state=why.state, detail=why.detail, collection_errors=why.errors, command=command, tail=said[-TAIL:]
    )


def unfinished(session: Session, completed: Completed, detail: str = COMPILING) -> Unusable:
    """Return why a session did not come to what was asked of it; `detail` where it does not say so itself."""
    state = RunState.TIMED_OUT if completed.timed_out or session.is_late else RunState.UNUSABLE
    return Unusable(state, session.fault or detail)


def state_of(session: Session, *, timed_out: bool) -> tuple[RunState, str]:
    """Return whether a run of tests may be believed, and why not; `timed_out` if the box ended it."""
    if session.fault:
        return RunState.UNUSABLE, session.fault
    if timed_out or session.is_late:
        return RunState.TIMED_OUT, "the test run reached its time limit"
    if not session.is_whole:
        return RunState.CRASHED, "the test run died"
    return RunState.COMPLETE, ""


def with_the_last(records: dict[str, TestRecord], session: Session, state: RunState) -> dict[str, TestRecord]:
    """Return the records with the end of the test during which the run as a whole ended."""
    started = [line.id for line in session.of(Start) if line.id in records]
    if state not in {RunState.CRASHED, RunState.TIMED_OUT} or not started or records[started[-1]].outcome is not None:
        return records
    ended = Ended.TIMED_OUT if state is RunState.TIMED_OUT else Ended.CRASHED
    return {**records, started[-1]: records[started[-1]].model_copy(update={"outcome": ended})}


def unwatched(reasons: Iterable[str]) -> list[str]:
    """Return in words why processes could not be watched, each reason once."""
    return [f"{UNWATCHED}: {why}" for why in sorted({*reasons} - {""})]


def shortened(words: Sequence[str]) -> tuple[str, ...]:
    """Return the first words of a long list, and how many there are more."""
    rest = () if len(words) <= _SHOWN else (f"... and {len(words) - _SHOWN} more",)
    return (*words[:_SHOWN], *rest)
