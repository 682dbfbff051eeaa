"""Chooses the run where a command names none; for what changes something there has to be exactly one."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason
from pipeline.run.lease import FileLease
from pipeline.run.recipe_run import load_run
from pipeline.run.runs_of_repository import Roster
from pipeline.run.store import WORKFLOW, run_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pipeline.repo import Repository
    from pipeline.run.spending import AnyRun

_CAN_GO_ON: Final = frozenset({Outcome.PARKED, Outcome.CANCELLED, Outcome.PARTIAL})


def _unfinished(run: AnyRun) -> bool:
    state = run.state
    if state.outcome is None:
        return not FileLease.is_held(run.folder)
    return state.outcome in _CAN_GO_ON and state.reason is not Reason.ABANDONED


def _at_a_gate(run: AnyRun) -> bool:
    return run.state.outcome is Outcome.PARKED and run.state.reason is Reason.APPROVAL


_MEANT: Final[Mapping[str, tuple[Callable[[AnyRun], bool], str]]] = {
    "resume": (_unfinished, "can go on"),
    "approve": (_at_a_gate, "waits at an approval point"),
    "reject": (_at_a_gate, "waits at an approval point"),
    "abandon": (_unfinished, "is unfinished"),
    "stop": (lambda run: FileLease.is_held(run.folder), "is driven now"),
}


def meant_by(command: str, repository: Repository, rest: Sequence[str] = ()) -> tuple[str, str]:
    """Return the only run of this worktree that a command could mean, and why it is the one.

    Args:
        command: What would change it: resume, approve, reject, abandon, stop.
        repository: Seen from the worktree.
        rest: What else was typed, for the command that names the run.

    Raises:
        UserError: there is none, or more than one; a run of another worktree is only named, never taken.
    """
    fits, words = _MEANT[command]
    found = [name for name in run_names(repository) if _fits(repository.worktree / WORKFLOW / name, fits)]
    if len(found) == 1:
        return found[0], f"the only run here that {words}"
    if not found:
        raise _none_here(command, repository, rest)
    raise UserError(
        f"More than one run of this worktree {words}: {', '.join(found)}. Name the one that is meant.",
        Reason.USAGE,
        details={"runs": found},
        actions=tuple(_named(command, name, rest) for name in found),
    )


def _none_here(command: str, repository: Repository, rest: Sequence[str]) -> UserError:
    """Return the refusal where no run of this worktree fits, which names those of the others that do."""
    fits, words = _MEANT[command]
    roster = Roster(repository)
    elsewhere = [place for place in roster.runs if place.worktree.path != roster.here and _fits(place.folder, fits)]
    names = [roster.spoken(place.folder) for place in elsewhere]
    there = "; ".join(f"{name} in {place.worktree.path}" for name, place in zip(names, elsewhere, strict=True))
    driven = [] if names else [roster.spoken(place.folder) for place in roster.runs if FileLease.is_held(place.folder)]
    further = f". In another one: {there}." if names else ", and none of another one."
    if driven:
        further = (
            f" and at rest. Driven now: {', '.join(driven)}. Watch it, or end it with Ctrl-C where it was started."
        )
    return UserError(
        f"No run of this worktree {words}{further}",
        Reason.USAGE,
        details={"runs": names},
        actions=(
            *(_named(command, name, rest) for name in names),
            *(f"redfirst show {name} --log --follow" for name in driven),
        )
        or ("redfirst runs",),
    )


def _named(command: str, name: str, rest: Sequence[str]) -> str:
    return shlex.join(["redfirst", command, name, *rest])


def _fits(folder: Path, fits: Callable[[AnyRun], bool]) -> bool:
    try:
        return fits(load_run(folder, driving=False))
    except UserError:  # a damaged run is named by who means it
        return False
