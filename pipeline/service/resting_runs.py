"""Tells of runs that nobody is at work on: since why, until when, and what somebody can do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.outcomes import Outcome, Reason
from pipeline.reset_times import as_moment, moment_words
from pipeline.runs.store import WORKFLOW, key_of_run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from pipeline.service.run_line import RunLine

_ASKS: Final = frozenset({Reason.APPROVAL, Reason.INPUT})


def folder_of(line: RunLine) -> Path:
    """Return the folder of a run."""
    return Path(line.worktree) / WORKFLOW / line.name


def limit_of(line: RunLine) -> datetime | None:
    """Return when the limit ends that a run is parked by, or that its dead driver waited for; None where none is known.

    Who stopped a run by hand takes it up by hand.
    """
    waits = line.outcome in {None, Outcome.PARKED} and not line.live
    try:
        return as_moment(line.not_before) if waits and line.not_before is not None else None
    except (ValueError, OverflowError):  # a stranger's journal
        return None


def limit_words(line: RunLine) -> str:
    """Return why a run that is limited does not go on, and what to do who cannot wait."""
    until = moment_words(line.not_before or "")
    resume = f"redfirst resume {key_of_run(folder_of(line))}"
    return f"not before {until}, when the limit of its account ends. It goes on then, and before by: {resume}"


def rests(lines: Iterable[RunLine], covered: Collection[str]) -> dict[str, str]:
    """Return a sentence on each parked run that no open order is for, by what the run is called.

    Args:
        lines: The runs.
        covered: The folders of runs that open orders are for.
    """
    found: dict[str, str] = {}
    for line in lines:
        if line.outcome is Outcome.PARKED and not line.live and str(folder_of(line)) not in covered:
            run = key_of_run(folder_of(line))
            found[run] = f"{run} is parked ({line.reason}): {_what_to_do(line, run)}"
    return found


def _what_to_do(line: RunLine, run: str) -> str:
    if limit_of(line) is not None:
        return limit_words(line)
    if line.reason in _ASKS:
        return f"it waits for you at {line.gate_place or 'a question'}: redfirst show {run} --packet"
    if line.reason is Reason.AGENT_UNAVAILABLE:
        return f"nobody said when its service is there again. When it is: redfirst resume {run}"
    return f"see what it needs: redfirst show {run}"
