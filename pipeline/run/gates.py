"""Lists what is safe to type next, by how a run stands (contract 1), and describes the gate that it waits at."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.judge.reports.markdown import parse
from pipeline.matrix.engine.journal_kinds import DecisionMade
from pipeline.outcomes import Outcome, Reason
from pipeline.run.drafts import PLAN, open_drafts, undone_edits
from pipeline.vocabulary import Role, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipeline.run.run import Run
    from pipeline.run.spending import AnyRun

WAYS_BACK: Final = {"plan": ("plan",), "split": ("split", "plan"), "commit": ("fix", "split", "plan")}
"""The gates in their order, and where each can send a run back to; the first is its default."""
SUMMARY: Final = "summary.md"
TO_BE_MADE: Final = "Commits to Be Made"
"""The section of summary.md that names them, while a run waits at approval point commit."""
TO_BE_FILED: Final = "Issues to Be Filed"
"""The section of summary.md that has their titles, while a run waits at approval point commit."""

_STAGES: Final = {"plan": "plan", "split": "split", "commit": "final"}
_APPROVED: Final = {
    "plan": "goes on with plan.md as you leave it: it is split into tasks",
    "split": "goes on with the tasks as you leave them: tests are written",
    "commit": "puts the commits on {branch}",
}
_REJECTED: Final = {
    ("plan", "plan"): "drafts the plan again, from what you leave and your feedback",
    ("split", "split"): "cuts the tasks again, from what you leave and your feedback",
    ("split", "plan"): "drafts the plan again, from what you leave; drops the tasks",
    ("commit", "fix"): "makes fix tasks of your feedback; what is done stays",
    ("commit", "split"): "cuts further tasks from the plan; what is done stays",
    ("commit", "plan"): "begins again with the plan; what is done becomes a patch",
}


@dataclass(frozen=True)
class GateAnswer:
    """A command that answers a gate, and what it does there."""

    command: str
    does: str


@dataclass(frozen=True)
class OpenGate:
    """A gate that a run waits at. Paths are absolute; `edit` are the files of which an edit counts when it is approved.

    `place` has the name, and its number among the gates of the run; `commits` are the subjects of what would be
    committed; `notes` say which edit of a person a new draft undoes, and which issues are filed with the commits.
    """

    name: str
    place: str
    edit: tuple[str, ...]
    read: tuple[str, ...]
    commits: tuple[str, ...]
    answers: tuple[GateAnswer, ...]
    notes: tuple[str, ...] = ()


def gate_of(run: Run) -> str | None:
    """Return the gate that the run waits at (plan, split, commit), or None."""
    waits = run.state.trunk.step is Step.GATE and run.state.outcome is Outcome.PARKED
    return run.state.trunk.gate if waits else None


def gate_place(run: Run) -> str | None:
    """Return where among its gates the run waits: `approval point plan (1 of 3)`; None where it waits at none.

    A run may wait at commit for its blockers alone, unasked.
    """
    name = gate_of(run)
    if name is None:
        return None
    gates = [gate for gate in WAYS_BACK if gate in run.state.gates or gate == name]
    return f"approval point {name} ({gates.index(name) + 1} of {len(gates)})"


def open_gate(run: Run) -> OpenGate | None:
    """Return the gate that the run waits at, None where it waits at none."""
    name, place = gate_of(run), gate_place(run)
    if name is None or place is None:
        return None
    edit = open_drafts(run.state)
    further = {"plan": (), "split": (PLAN,), "commit": (SUMMARY,)}[name]
    read = [one for one in (*further, *_last_review(run, _STAGES[name])) if (run.folder / one).is_file()]
    to_file = _planned(run, TO_BE_FILED) if name == "commit" else ()
    return OpenGate(
        name=name,
        place=place,
        edit=tuple(str(run.folder / one) for one in edit),
        read=tuple(str(run.folder / one) for one in read),
        commits=_planned(run, TO_BE_MADE) if name == "commit" else (),
        answers=tuple(_answers(run, name)),
        notes=(*undone_edits(run), *(f"your approval files this issue, too: {title}" for title in to_file)),
    )


def _answers(run: Run, name: str) -> Iterator[GateAnswer]:
    run_id = run.info.run_id
    if name == "commit":
        yield GateAnswer(f"redfirst diff {run_id}", "shows what would be committed")
    yield GateAnswer(f"redfirst approve {run_id}", _APPROVED[name].format(branch=run.info.branch))
    for to in WAYS_BACK[name]:
        way = "" if to == WAYS_BACK[name][0] else f" --to {to}"
        yield GateAnswer(f'redfirst reject {run_id}{way} --feedback "..."', _REJECTED[name, to])
    yield GateAnswer(f"redfirst abandon {run_id}", "ends the run without a commit; its work stays as work.patch")


def _last_review(run: Run, stage: str) -> tuple[str, ...]:
    found = [re.fullmatch(rf"reviews/{stage}-(\d+)\.md", name) for name in run.artifacts]
    numbers = [int(match[1]) for match in found if match is not None]
    last = f"reviews/{stage}-{max(numbers, default=0)}"
    return (f"{last}.md", f"{last}-simplify.md") if numbers else ()


def _planned(run: Run, title: str) -> tuple[str, ...]:
    """Return the lines of a section of the summary."""
    try:
        document = parse(run.read(SUMMARY).decode("utf-8", "replace"))
    except OSError:
        return ()
    return tuple(line.text.removeprefix("- ") for line in document.section(title) if line.text.startswith("- "))


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
        Reason.SUPERSEDED: ("redfirst runs",),
        Reason.HUB_UNAVAILABLE: ("redfirst doctor",),
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
