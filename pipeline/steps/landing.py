"""Lands finished runs one after the other: picked, measured again, landed, or told why not (ADR-R205).

The runs stand in a row, and each is picked onto what the ones before made of the base: nothing lands that was not
measured over exactly what it lands on. The base is moved by compare-and-swap, with index and files where a worktree has
it, in the order of publication: files first, then the branch. What a kill leaves in between is our change, staged on
the old tip; the run's journal names it, and the next `land` brings it to its end or takes it back.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.run import tracker
from pipeline.run.store import REBASED_FROM
from pipeline.steps.publication.trees import put_on
from pipeline.testing.verification import results
from pipeline.testing.verification.results import CommitCheck
from todo import NO_EDITS, Edits, Issue, NewIssue, Status, Tracker

if TYPE_CHECKING:
    from pipeline.repo import Repository, Signature


MOST_PICKS: Final = 5
"""How often a run is picked while others move the base."""


class Found(StrEnum):
    """What came of a pick."""

    VERIFIED = "verified"
    CONFLICT = "conflict"
    REFUTED = "refuted"
    REGRESSION = "regression"
    UNCHECKED = "unchecked"
    BASE_MOVED = "base_moved"
    IN_THE_WAY = "in_the_way"
    WAITS = "waits"


class Then(StrEnum):
    """What follows."""

    LAND = "land"
    PICK_AGAIN = "pick_again"
    ORDER_AGAIN = "order_again"
    TELL = "tell"
    WAIT = "wait"


TABLE: Final[Mapping[Found, tuple[Then, Then]]] = {
    Found.VERIFIED: (Then.LAND, Then.LAND),
    Found.CONFLICT: (Then.ORDER_AGAIN, Then.TELL),
    Found.REFUTED: (Then.ORDER_AGAIN, Then.TELL),
    Found.REGRESSION: (Then.ORDER_AGAIN, Then.TELL),
    Found.UNCHECKED: (Then.TELL, Then.TELL),
    Found.BASE_MOVED: (Then.PICK_AGAIN, Then.TELL),
    Found.IN_THE_WAY: (Then.TELL, Then.TELL),
    Found.WAITS: (Then.WAIT, Then.WAIT),
}
"""What follows at first, and once that was done as often as it may be."""


def then(found: Found, *, picks: int = 1, ordered: bool = False) -> Then:
    """Return what follows.

    Args:
        found: What came of the last pick.
        picks: How often the run was picked by now.
        ordered: Whether the issue was ordered again already, after this run or with it.
    """
    spent = picks >= MOST_PICKS if found is Found.BASE_MOVED else ordered
    return TABLE[found][spent]


def found_of(checks: Collection[CommitCheck]) -> Found:
    """Return what measuring the picked commits again comes to, by the first that does not hold.

    Where all tests of such a commit hold, and something else does not, others are lost: a regression.
    """
    for check in checks:
        if check.status is results.Status.UNCHECKED:
            return Found.UNCHECKED
        if check.status is results.Status.REFUTED:
            own = all(test.before_holds and test.after_holds for test in check.tests)
            return Found.REGRESSION if check.tests and own else Found.REFUTED
    return Found.VERIFIED


def place_of(repository: Repository, branch: str) -> Repository | None:
    """Return the repository as seen from the worktree that has the branch checked out, None where none has."""
    there = (repository.at(each) for each in repository.worktrees() if each.is_there)
    return next((each for each in there if each.branch() == branch), None)


def move(repository: Repository, branch: str, tip: str, new: str, since: float) -> tuple[Found, str]:
    """Take the branch from *tip* to *new*; VERIFIED, or why not: then nothing is otherwise than it was.

    Args:
        repository: From any worktree.
        branch: The base.
        tip: Where it must point now.
        new: Where it points then.
        since: When the move began, in seconds since the epoch.
    """
    ref, there = f"refs/heads/{branch}", place_of(repository, branch)
    if repository.resolve(ref) != tip:
        return Found.BASE_MOVED, _moved(repository, branch)
    if there is None and repository.unseen_branch() == branch:
        return (
            Found.IN_THE_WAY,
            f"the main checkout has {branch}, and only git there knows where it is: land from there",
        )
    if there is not None:
        lock = there.index_lock(since)
        if lock is not None:
            return Found.IN_THE_WAY, f"another git holds {lock}; if none is running, remove that file"
        there.refresh_index()
        refusal = there.move_worktree(tip, new)
        if refusal is not None:
            return Found.IN_THE_WAY, f"the files of {there.worktree} stay, refused by git: {refusal}"
        there.free_branch(ref, new, since)
    if repository.set_ref(ref, new, tip):
        return Found.VERIFIED, ""
    if there is not None:
        there.move_worktree(new, tip)
    if repository.resolve(ref) == tip:
        return Found.IN_THE_WAY, f"{ref} was not moved by git: has a killed one left {ref}.lock? Remove it"
    return Found.BASE_MOVED, _moved(repository, branch)


def settle(repository: Repository, branch: str, tip: str, new: str, since: float) -> bool:
    """Bring a move to its end that a kill has cut off, or take back what it left; return whether the base has *new*.

    Args:
        repository: From any worktree.
        branch: The base.
        tip: Where it pointed when the move began.
        new: Where it was to point.
        since: When that was, in seconds since the epoch.
    """
    ref, there = f"refs/heads/{branch}", place_of(repository, branch)
    now = repository.resolve(ref)
    if now is not None and repository.is_ancestor(new, now):
        return True
    if now != tip or there is None or there.index_lock(since) is not None:
        return False
    if there.index_is(new):
        there.free_branch(ref, new, since)
        return repository.set_ref(ref, new, tip)
    if {change.path for change in there.diff(tip, new)}.isdisjoint(there.staged(tip)):
        there.take_back_half(tip, new, since)
    else:  # it is all there, beside what the user had staged
        there.refresh_index()
        there.move_worktree(new, tip)
    return False


def _moved(repository: Repository, branch: str) -> str:
    now = repository.resolve(f"refs/heads/{branch}")
    return f"{branch} moved to {(now or 'nothing')[:12]} meanwhile"


Check = Callable[[str], Awaitable[CommitCheck]]
"""Measures again what a commit claims."""
Intend = Callable[[str, tuple[str, ...]], None]
"""Is told what the base is about to be moved from, and to which commits."""
_MOST_TOLD: Final = 20


@dataclass(frozen=True)
class Landing:
    """What came of one run: what was found last and what follows, on which tip, and the commits as they were picked."""

    found: Found
    then: Then
    tip: str
    picked: Picked | None = None
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Train:
    """Lands runs on a branch.

    Attributes:
        repository: Where commits are made, from any worktree.
        branch: The base.
        check: What measures a commit again.
        say: Is told how it goes on.
    """

    repository: Repository
    branch: str
    check: Check
    say: Callable[[str], None]

    async def land(self, result: Result, who: Signature, intend: Intend, *, ordered: bool) -> Landing:
        """Put one run on the base, or return why it does not go there.

        Args:
            result: The run.
            who: Who commits, and when.
            intend: Is told before anything of the user's moves.
            ordered: Whether its issue was ordered again already.

        Raises:
            SigningError: the user signs commits, and it did not work.
        """
        picks = 0
        while True:
            picks += 1
            landing = await self._once(result, who, intend)
            follows = then(landing.found, picks=picks, ordered=ordered)
            if follows is not Then.PICK_AGAIN:
                return replace(landing, then=follows)
            self.say(f"    {landing.why[0]}: picked again")

    async def _once(self, result: Result, who: Signature, intend: Intend) -> Landing:
        tip = self.tip()
        waits = unmet(self.repository, result.issue, tip)
        if waits:
            why = f"{result.issue} depends on {', '.join(waits)}, not Done on {self.branch}"
            return Landing(Found.WAITS, Then.WAIT, tip, why=(why,))
        self.say(f"{result.run_id}: put onto {self.branch} at {tip[:12]}")
        new = picked(self.repository, result, tip, who, key=self.repository.signing_key())
        if isinstance(new, Conflict):
            return Landing(new.found, Then.TELL, tip, why=new.why[:_MOST_TOLD])
        checks = await self._checked(new.work)
        found = found_of(checks)
        if found is not Found.VERIFIED:
            return Landing(found, Then.TELL, tip, new, _problems(checks))
        if self.tip() != tip:
            return Landing(Found.BASE_MOVED, Then.TELL, tip, new, (f"{self.branch} moved meanwhile",))
        intend(tip, new.commits)
        found, why = move(self.repository, self.branch, tip, new.commits[-1], time.time())
        return Landing(found, Then.TELL, tip, new, (why,) if why else ())

    def tip(self) -> str:
        """Return where the base points.

        Raises:
            LookupError: it is gone.
        """
        found = self.repository.resolve(f"refs/heads/{self.branch}")
        if found is None:
            raise LookupError(self.branch)
        return found

    async def _checked(self, commits: Sequence[str]) -> tuple[CommitCheck, ...]:
        """Return what is true of the commits, up to the first that does not hold."""
        found: list[CommitCheck] = []
        for commit in commits:
            found.append(await self.check(commit))
            if found_of(found[-1:]) is not Found.VERIFIED:
                break
        return tuple(found)


def unmet(repository: Repository, issue: str, commit: str) -> tuple[str, ...]:
    """Return the issues that one depends on and that are not Done in a commit; one that is not there holds nobody up.

    Raises:
        UserError: the tracker there is broken.
    """
    issues = tracker.in_tree(repository, repository.tree_of(commit))
    with tracker.as_user_errors(issues):
        if issue not in issues.ids:
            return ()
        needed = [other for other in issues.read(issue).depends_on if other in issues.ids]
        return tuple(other for other in needed if issues.read(other).status is not Status.DONE)


def now_signed(identity: tuple[str, str], epoch: str) -> Signature:
    """Return who commits, now; SOURCE_DATE_EPOCH counts where it is set."""
    from pipeline.repo import Signature  # noqa: PLC0415

    seconds = int(epoch) if epoch.isdecimal() else int(datetime.now(UTC).timestamp())
    return Signature(*identity, f"{seconds} +0000")


def _problems(checks: Sequence[CommitCheck]) -> tuple[str, ...]:
    last = checks[-1]
    of = f"task {last.task}" if last.task else last.subject
    return tuple(f"{of}: {problem}" for problem in last.problems[:_MOST_TOLD]) or (f"{of}: {last.why}",)


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
    """Why they do not go there, one sentence each; of a tracker that cannot be read nobody has to do work again."""

    why: tuple[str, ...]
    found: Found = Found.CONFLICT


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
        return Conflict((f"{error.message} Mend that there, then land it again",), Found.IN_THE_WAY)
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
