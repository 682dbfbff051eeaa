"""Picks the commits of a finished run onto another commit in objects, and computes the tracker's again there.

No worktree is needed, and nothing of the user's is written. Lines of README.md that stand side by side are two changes
of one place to git; to the tracker's library each is the line of an issue.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.runs import tracker
from pipeline.runs.landed import REBASED_FROM
from pipeline.steps.publication.trees import put_on
from todo import NO_EDITS, Edits, NewIssue, Status

if TYPE_CHECKING:
    from pipeline.git import Repository, Signature
    from todo import Issue, Tracker

_RED_BASE: Final = re.compile(r"(?m)^Red-Base: .*$")
_SHOWN: Final = 3


@dataclass(frozen=True)
class Result:
    """What a finished run has to land: its commits, oldest first; the last one is the tracker's."""

    run_id: str
    issue: str
    branch: str
    commits: tuple[str, ...]


@dataclass(frozen=True)
class Picked:
    """The commits on their new base, oldest first; the last one is the tracker's. `filed` are its new issues."""

    commits: tuple[str, ...]
    filed: tuple[str, ...] = ()

    @property
    def work(self) -> tuple[str, ...]:
        """Return those that claim something."""
        return self.commits[:-1]


@dataclass(frozen=True)
class Conflict:
    """Why they do not go there, one sentence each."""

    why: tuple[str, ...]


def picked(repository: Repository, result: Result, tip: str, who: Signature, *, key: str | None) -> Picked | Conflict:
    """Return the commits of a run on *tip*, or what is in the way. Where they stand on it they are as they are.

    Args:
        repository: Where objects are written.
        result: The run.
        tip: What they are put on.
        who: Who commits, and when; the author of a commit stays.
        key: What they are signed with, None for no signature ("" = the user's default key).

    Raises:
        SigningError: the user signs commits, and it did not work.
    """
    if repository.parents(result.commits[0]) == (tip,):
        return Picked(result.commits)
    parent, tree = tip, repository.tree_of(tip)
    work: list[str] = []
    for commit in result.commits[:-1]:
        before, after = repository.tree_of(f"{commit}^"), repository.tree_of(commit)
        put = put_on(repository, tree, before, after)
        if put.conflicts:
            return Conflict(tuple(_met(repository, result, tip, path) for path in put.conflicts))
        if put.tree == tree:
            continue  # others have made the same change
        author, message = repository.author(commit), _message(repository, commit, tip)
        parent = repository.commit_tree(put.tree, (parent,), message, author, committer=who, sign=key)
        tree = put.tree
        work.append(parent)
    issues = tracker.in_tree(repository, tree)
    try:
        with tracker.as_user_errors(issues):
            filed, edits = _closed(repository, result, issues, work)
    except UserError as error:
        return Conflict((error.message,))
    tree = tracker.tree_with(repository, tree, issues, edits)
    last = result.commits[-1]
    message = _message(repository, last, tip)
    commit = repository.commit_tree(tree, (parent,), message, repository.author(last), committer=who, sign=key)
    return Picked((*work, commit), filed)


def _message(repository: Repository, commit: str, tip: str) -> str:
    """Return the message of a commit for its copy on *tip*: what RED of a fix of tests is measured over is there."""
    text = _RED_BASE.sub(f"Red-Base: {tip}", repository.message(commit).rstrip("\n"))
    return f"{text}\n{REBASED_FROM}: {commit}\n"


def _met(repository: Repository, result: Result, tip: str, path: str) -> str:
    """Return who changed a file of the run, too."""
    parted = repository.merge_base(result.commits[-1], tip)
    theirs = repository.touching(parted, tip, path) if parted is not None else ()
    told = [f"{commit[:12]} ({repository.subject(commit)})" for commit in theirs[-_SHOWN:]]
    return f"{path} was changed by {', '.join(told) or 'others'} where {result.run_id} changes it, too"


def _closed(repository: Repository, result: Result, issues: Tracker, work: list[str]) -> tuple[tuple[str, ...], Edits]:
    """Return the issues that the run files, and the edits of the tracker, as the run leaves it."""
    last = result.commits[-1]
    before, after = (tracker.in_tree(repository, repository.tree_of(each)) for each in (f"{last}^", last))
    edits = issues.set_status(result.issue, Status.DONE)
    day = datetime.fromtimestamp(int(repository.author(last).date.split()[0]), UTC).date()
    from pipeline.steps.publication.commits import closing_text  # noqa: PLC0415  (heavy; not for what only chooses runs)

    text = closing_text(result.branch, result.run_id, work)
    edits = edits.then(issues.with_edits(edits).comment(result.issue, day, text))
    filed: list[str] = []
    for new in after.ids:
        if new not in before.ids:
            name, more = _filed(issues.with_edits(edits), after, new)
            filed += [name] if name is not None else []
            edits = edits.then(more)
    return tuple(filed), edits


def _filed(issues: Tracker, after: Tracker, issue_id: str) -> tuple[str | None, Edits]:
    """Return the id that an issue gets which the run has filed, None where it is open there already; and the edits."""
    new: Issue = after.read(issue_id)
    if issues.find_duplicate(new.title, new.parent) is not None:
        return None, NO_EDITS
    told = NewIssue(title=new.title, parent=new.parent, labels=new.labels, depends_on=new.depends_on)
    free, _ = issues.draft(told)
    text = (after.raw(f"{issue_id}.md") or b"").decode()
    if free != issue_id:  # others have filed one of this number
        text = text.replace(f"id: {issue_id}\n", f"id: {free}\n", 1).replace(f"# {issue_id}: ", f"# {free}: ", 1)
    return issues.create(told, edited=text)
