"""Lists the commands that are safe to type next, by how a run stands (contract 1)."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from pipeline.engine.events import DecisionMade
from pipeline.outcomes import Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.routing.vocabulary import Role
    from pipeline.runs.run import Run
    from pipeline.runs.spending import AnyRun

_WATCH: Final = ("redfirst show {run} --log --follow",)
_DESK: Final = "redfirst desk {run} --role {role}"
_GO_ON: Final = ("redfirst resume {run}", "redfirst abandon {run}")
_AGAIN: Final = ("{again}",)
_WHY: Final = ("redfirst explain {run} --last",)
_RESULT: Final = ("git log --stat {start}..{branch}", "redfirst diff {run}")
_ONTO: Final = "redfirst resume {run} --onto {branch}"
_LIMIT: Final = re.compile(r"(budget(?:\.\w+)*\.(?:cost_usd|tokens)) = ")
_WORK: Final = ("redfirst explain {run}", "redfirst diff {run}")

ACTIONS: Final[Mapping[Outcome, Mapping[Reason, tuple[str, ...]]]] = {
    Outcome.COMPLETED: {
        Reason.DONE: _RESULT,
        Reason.NOTHING_TO_DO: (*_WHY, "git log --stat {start}..{branch}"),
    },
    Outcome.COMPLETED_WITH_BLOCKERS: {
        Reason.BLOCKERS: ("redfirst show {run}", "redfirst issue list --label followup", *_RESULT),
    },
    Outcome.PARTIAL: {Reason.STEPS_OPEN: ("redfirst resume {run}",)},
    Outcome.PARKED: {
        Reason.APPROVAL: (
            "redfirst show {run}",
            "redfirst diff {run}",
            "redfirst approve {run}",
            'redfirst reject {run} --feedback "..."',
            "redfirst abandon {run}",
        ),
        Reason.INPUT: ("redfirst show {run} --packet", 'redfirst answer {run} "..."', "redfirst abandon {run}"),
        Reason.WORKTREE_CHANGED: (*_WHY, "git status", *_GO_ON),
        Reason.BRANCH_MOVED: (*_WHY, "git log {start}..{branch}", *_GO_ON),
        Reason.SIGNING: (
            *_WHY,
            "git config --show-origin --get-regexp '^(gpg|user.signingkey|commit.gpgsign)'",
            *_GO_ON,
        ),
        Reason.REGRESSION: (*_WHY, "redfirst diff {run}", *_GO_ON),
        Reason.ENVIRONMENT: (*_WHY, "redfirst doctor", *_GO_ON),
        Reason.AGENT_UNUSABLE: (*_WHY, "redfirst doctor", *_GO_ON),
        Reason.BUDGET: (
            "redfirst show {run}",
            "redfirst explain {run} --last",
            "redfirst resume {run} --set {limit}",
            "redfirst abandon {run}",
        ),
        Reason.AGENT_UNAVAILABLE: ("redfirst doctor", *_GO_ON),
        Reason.LOCKED: _WATCH,
    },
    Outcome.FAILED: {
        Reason.ESCAPE: ("redfirst explain {run} --last", "git status", "git reflog", "redfirst doctor"),
        Reason.LOOPS_EXHAUSTED: (*_WORK, *_AGAIN),
        Reason.EVIDENCE_NOT_REACHED: (*_WORK, *_AGAIN),
        Reason.BASELINE_IMPOSSIBLE: (*_WHY, "redfirst doctor", *_AGAIN),
        Reason.CLEANUP_NEEDED: (*_WHY, "git status", "redfirst doctor"),
    },
    Outcome.CANCELLED: {
        Reason.INTERRUPTED: ("redfirst show {run}", *_GO_ON),
        Reason.ABANDONED: (*_WORK, *_AGAIN),
    },
    Outcome.REJECTED: {
        Reason.USAGE: ("redfirst --help",),
        Reason.STALE: ("redfirst show {run} --packet",),
        Reason.CONFIG: ("redfirst config show", "redfirst doctor", *_AGAIN),
        Reason.BARE_REPOSITORY: ("git worktree add ../work {branch}",),
        Reason.DETACHED_HEAD: ("git switch {branch}", *_AGAIN),
        Reason.BRANCH_IS_BASE: ("git switch -c {own}", "redfirst run {issue} --worktree"),
        Reason.BRANCH_MOVED: _AGAIN,
        Reason.DIRTY_TREE: ("git status", "git stash --include-untracked", *_AGAIN),
        Reason.UNTRUSTED: ("redfirst config show", "redfirst trust", *_AGAIN),
        **dict.fromkeys(
            (Reason.RECIPE_INVALID, Reason.RECIPE_NOT_FOUND, Reason.INPUT_INVALID), ("redfirst recipes list",)
        ),
        Reason.DISK: ("redfirst doctor", *_AGAIN),
        Reason.ENVIRONMENT: (*_WHY, "redfirst doctor", *_AGAIN),
        Reason.TRACKER_MISSING: ("redfirst issue new --title TITLE --id {issue}",),
        Reason.TRACKER_INVALID: ("redfirst issue lint", *_AGAIN),
        Reason.ISSUE_NOT_FOUND: ("redfirst issue list",),
        Reason.ISSUE_NOT_TODO: ("redfirst issue show {issue}", "redfirst issue status {issue} todo", *_AGAIN),
        Reason.DEPENDENCY_UNMET: ("redfirst issue show {issue}", "redfirst issue ready"),
        Reason.DEPENDENCY_MISSING: ("redfirst issue show {issue}", "redfirst issue lint"),
        Reason.CLAIMED_ELSEWHERE: ("redfirst runs", "git for-each-ref refs/redfirst/claims"),
        Reason.LOCKED: _WATCH,
        Reason.BASELINE_IMPOSSIBLE: (*_WHY, "redfirst doctor", *_AGAIN),
    },
}
"""What is safe to do next, by outcome and reason; commands, with capital words for what only the user knows."""


def _reached(run: Run) -> str:
    """Return the limit that parked the run, as it is raised with `--set`."""
    named = _LIMIT.search(_last_note(run))
    return f"{named[1]}=AMOUNT" if named is not None else "limits.dispatches=NUMBER"


def onto_advised(run: AnyRun) -> str | None:
    """Return the command that merges files which both changed, where the run is parked with this advice."""
    branch = shlex.quote(run.info.branch)  # git allows $, ; and quotes in its name
    line = _ONTO.format(run=run.info.run_id, branch=branch)
    return line if run.state.reason is Reason.BRANCH_MOVED and line in _last_note(run) else None


def _last_note(run: AnyRun) -> str:
    decisions = run.journal.of(DecisionMade)
    return str(decisions[-1].data.note or "") if decisions else ""


def begun_again(run: Run) -> str:
    """Return the command that begins the issue anew, by the same recipe."""
    recipe = run.info.recipe
    by = f" --recipe {shlex.quote(recipe.name)}" if recipe is not None and recipe.name != "issue" else ""
    return f"redfirst run {run.issue}{by}"


def safe_next_actions(run: Run, *, live: bool = False, desks: Iterable[Role] = ()) -> tuple[str, ...]:
    """Return the commands that are safe now.

    Args:
        run: The run.
        live: A process drives it; then there is nothing to do but to watch, and to answer where it waits.
        desks: The roles that a person plays, and at whose desks something is asked.
    """
    state, info = run.state, run.info
    if live:
        found = _WATCH
    elif state.outcome is None or state.reason is None:
        found = _GO_ON  # its driver died
    else:
        found = ACTIONS[state.outcome].get(state.reason, _WHY)
    branch = shlex.quote(info.branch)
    words = {"run": info.run_id, "issue": run.issue, "branch": branch, "start": info.start_commit[:12]}
    words |= {"limit": _reached(run), "own": run.issue.lower(), "again": begun_again(run)}
    if onto_advised(run) is not None:
        found = (_ONTO, *(action for action in found if action != _GO_ON[0]))  # a plain resume would park again
    asked = [_DESK.format(run=info.run_id, role=role) for role in desks]
    return (*asked, *(action.format_map(words) for action in found))
