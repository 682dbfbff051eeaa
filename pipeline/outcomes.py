"""Outcomes of a run, their reasons and exit codes: the closed words of machines, commands and errors (contract 2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """The outcome of a run that is not being driven (contract 2)."""

    COMPLETED = "completed"
    COMPLETED_WITH_BLOCKERS = "completed_with_blockers"
    PARTIAL = "partial"
    PARKED = "parked"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


class Reason(StrEnum):
    """The reason of an outcome or error, from a closed list (contract 2)."""

    DONE = "done"
    NOTHING_TO_DO = "nothing_to_do"
    BLOCKERS = "blockers"
    STEPS_OPEN = "steps_open"
    APPROVAL = "approval"
    INPUT = "input"
    WORKTREE_CHANGED = "worktree_changed"
    BRANCH_MOVED = "branch_moved"
    SIGNING = "signing"
    REGRESSION = "regression"
    ENVIRONMENT = "environment"
    AGENT_UNUSABLE = "agent_unusable"
    BUDGET = "budget"
    AGENT_UNAVAILABLE = "agent_unavailable"
    LOCKED = "locked"
    SUPERSEDED = "superseded"
    HUB_UNAVAILABLE = "hub_unavailable"
    CLAIMED_ELSEWHERE = "claimed_elsewhere"
    ESCAPE = "escape"
    LOOPS_EXHAUSTED = "loops_exhausted"
    EVIDENCE_NOT_REACHED = "evidence_not_reached"
    CLEANUP_NEEDED = "cleanup_needed"
    STALE = "stale"
    USAGE = "usage"
    CONFIG = "config"
    BARE_REPOSITORY = "bare_repository"
    DETACHED_HEAD = "detached_head"
    BRANCH_IS_BASE = "branch_is_base"
    DIRTY_TREE = "dirty_tree"
    UNTRUSTED = "untrusted"
    RECIPE_INVALID = "recipe_invalid"
    RECIPE_NOT_FOUND = "recipe_not_found"
    INPUT_INVALID = "input_invalid"
    DISK = "disk"
    TRACKER_MISSING = "tracker_missing"
    TRACKER_INVALID = "tracker_invalid"
    ISSUE_NOT_FOUND = "issue_not_found"
    ISSUE_NOT_TODO = "issue_not_todo"
    DEPENDENCY_UNMET = "dependency_unmet"
    DEPENDENCY_MISSING = "dependency_missing"
    BASELINE_IMPOSSIBLE = "baseline_impossible"
    INTERRUPTED = "interrupted"
    ABANDONED = "abandoned"


COMPLETED: Final = frozenset({Outcome.COMPLETED, Outcome.COMPLETED_WITH_BLOCKERS})
"""The outcomes of a run whose work is committed. One that failed commits only a note."""
FINAL: Final = frozenset({*COMPLETED, Outcome.FAILED, Outcome.REJECTED})
"""The outcomes after which a run can never go on."""

EXIT_CODES: Final[dict[Outcome, int]] = {
    Outcome.COMPLETED: 0,
    Outcome.COMPLETED_WITH_BLOCKERS: 3,
    Outcome.PARKED: 4,
    Outcome.PARTIAL: 8,
    Outcome.FAILED: 7,
    Outcome.CANCELLED: 130,
    Outcome.REJECTED: 2,
}
"""Exit codes by outcome, unless `REASON_EXIT_CODES` has the reason."""

REASON_EXIT_CODES: Final[dict[Reason, int]] = {
    Reason.BUDGET: 5,
    Reason.AGENT_UNAVAILABLE: 75,
    Reason.LOCKED: 75,
    Reason.SUPERSEDED: 75,
    Reason.HUB_UNAVAILABLE: 75,
    Reason.CLAIMED_ELSEWHERE: 75,
    Reason.ESCAPE: 6,
}


ASKED: Final = frozenset({Reason.APPROVAL, Reason.INPUT})
"""Why a run is parked that waits for a person's answer, and goes on with none."""

PAUSED: Final = "paused"
"""What a run that a person stopped is called where people read: it is kept, and goes on with `resume`."""


def status_word(outcome: Outcome, reason: Reason | None) -> str:
    """Return how a run stands, in a word."""
    return PAUSED if reason is Reason.INTERRUPTED else outcome.value


def stands_words(outcome: Outcome, reason: Reason | None) -> str:
    """Return how a run stands, with why."""
    word = status_word(outcome, reason)
    return word if word == PAUSED or reason is None else f"{word} ({reason.value})"


def exit_code(outcome: Outcome, reason: Reason) -> int:
    """Return the process exit code for an outcome and its reason (contract 2)."""
    return REASON_EXIT_CODES.get(reason, EXIT_CODES[outcome])
