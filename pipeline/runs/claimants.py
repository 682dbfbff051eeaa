"""Tells which run has claimed an issue, where it is, how it stands, and what may be done about it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.outcomes import Reason, status_word
from pipeline.runs.lease import FileLease

if TYPE_CHECKING:
    from pipeline.runs.roster import Roster
    from pipeline.runs.store import Claim

RUNNING = "running"
GONE = "gone"
DAMAGED = "damaged"


@dataclass(frozen=True)
class Claimant:
    """The run that has an issue.

    Attributes:
        issue: The issue.
        run: What the run is called from any worktree of the repository.
        worktree: Where it is, or was.
        status: How it stands, in the word of `runs`: an outcome, `paused`, `running`, `queued`, `interrupted`,
            `damaged`, or `gone` with its folder.
        locked: Why git keeps the worktree although it is gone (a disk that is not mounted); None if it does not.
        gate: Where among its gates it waits for an answer; None where it does not.
    """

    issue: str
    run: str
    worktree: str
    status: str
    locked: str | None = None
    gate: str | None = None

    @property
    def actions(self) -> tuple[str, ...]:
        """Return the commands that are safe, wherever in the repository they are typed."""
        if self.status == RUNNING:
            return (f"redfirst show {self.run}", f"redfirst show {self.run} --log --follow")
        if self.status == GONE:
            kept = (f"git worktree unlock {shlex.quote(self.worktree)}",) if self.locked is not None else ()
            return (*kept, f"redfirst abandon {self.issue}")
        if self.status == DAMAGED:
            return (f"redfirst show {self.run}", f"redfirst abandon {self.run}")
        on = "resume" if self.gate is None else "approve"
        return (f"redfirst show {self.run}", f"redfirst {on} {self.run}", f"redfirst abandon {self.run}")

    def refusal(self) -> UserError:
        """Return the error that says so to somebody who wants to start on the issue."""
        return UserError(
            f"{self.issue} is claimed by {self.run} in {self.worktree}, {self._standing()}",
            Reason.CLAIMED_ELSEWHERE,
            details={"holder": self.run, "worktree": self.worktree, "status": self.status},
            actions=self.actions,
        )

    def _standing(self) -> str:
        if self.status == RUNNING:
            return "which is running: watch it"
        if self.status == GONE and self.locked is not None:
            why = f" ({self.locked})" if self.locked else ""
            return f"which is not there; git keeps that worktree as locked{why}. Attach its disk, or unlock and abandon"
        if self.status == GONE:
            return "which is gone with its folder: free the issue"
        if self.status == DAMAGED:
            return "which is damaged: give it up"
        if self.gate is not None:
            return f"which is {self.status} at {self.gate}: answer it, or give it up"
        return f"which is {self.status}: go on with that run, or give it up"


def claimant(roster: Roster, issue: str, claim: Claim, status: str | None = None) -> Claimant:
    """Return who has the issue.

    Args:
        roster: Of the repository.
        issue: The issue.
        claim: What it says who has it.
        status: How the run stands, where that is known already.
    """
    if not (claim.folder / "run.json").is_file():
        path = Path(claim.worktree)
        locked = next((each.locked for each in roster.worktrees if each.path == path and not each.is_there), None)
        return Claimant(issue, claim.name, claim.worktree, GONE, locked)
    how, gate = (status, None) if status else _standing_of(claim.folder)
    return Claimant(issue, roster.spoken(claim.folder), claim.worktree, how, gate=gate)


def _standing_of(folder: Path) -> tuple[str, str | None]:
    """Return how the run stands, and where among its gates it waits for an answer."""
    from pipeline.runs.gates import gate_place  # noqa: PLC0415  (heavy, and only where somebody is refused)
    from pipeline.runs.run import Run  # noqa: PLC0415  (heavy, and only where somebody is refused)

    live = FileLease.is_held(folder)
    try:
        run = Run.load(folder, driving=False)
    except UserError:
        return DAMAGED, None
    outcome, rests = run.state.outcome, "queued" if run.queued else "interrupted"
    if outcome is not None:
        return status_word(outcome, run.state.reason), gate_place(run)
    return RUNNING if live else rests, gate_place(run)
