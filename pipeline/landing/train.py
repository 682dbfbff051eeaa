"""Lands finished runs one after the other: picked, measured again, landed, or told why not (ADR-R205).

The runs stand in a row, and each is picked onto what the ones before made of the base: nothing lands that was not
measured over exactly what it lands on. The base is moved by compare-and-swap, with index and files where a worktree has
it, in the order of publication: files first, then the branch. What a kill leaves in between is our change, staged on
the old tip; the run's journal names it, and the next `land` brings it to its end or takes it back.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pipeline.landing.pick import Conflict, Picked, picked
from pipeline.landing.table import Found, Then, found_of, then
from pipeline.runs import tracker
from todo import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.git import Repository, Signature
    from pipeline.landing.pick import Result
    from pipeline.verification.results import CommitCheck


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
    there.take_back_half(tip, new, since)
    return False


def _moved(repository: Repository, branch: str) -> str:
    now = repository.resolve(f"refs/heads/{branch}")
    return f"{branch} moved to {(now or 'nothing')[:12]} meanwhile"


Check = Callable[[str], Awaitable["CommitCheck"]]
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
        self.say(f"{result.run_id}: picked onto {self.branch} at {tip[:12]}")
        new = picked(self.repository, result, tip, who, key=self.repository.signing_key())
        if isinstance(new, Conflict):
            return Landing(Found.CONFLICT, Then.TELL, tip, why=new.why[:_MOST_TOLD])
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
    from pipeline.git import Signature  # noqa: PLC0415

    seconds = int(epoch) if epoch.isdecimal() else int(datetime.now(UTC).timestamp())
    return Signature(*identity, f"{seconds} +0000")


def _problems(checks: Sequence[CommitCheck]) -> tuple[str, ...]:
    last = checks[-1]
    of = f"task {last.task}" if last.task else last.subject
    return tuple(f"{of}: {problem}" for problem in last.problems[:_MOST_TOLD]) or (f"{of}: {last.why}",)
