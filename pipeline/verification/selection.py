"""Finds the commits that `verify ARGUMENT` means (one, a range, those of a run), and gives one verdict on all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pipeline.errors import UserError
from pipeline.git import GitError, TooLargeError
from pipeline.measure.measuring import UnmeasurableError
from pipeline.outcomes import Reason
from pipeline.runs.store import issue_of
from pipeline.verification.claims import FETCH, RUN_ID, known_runs
from pipeline.verification.recheck import recheck, unchecked
from pipeline.verification.results import Status, VerifyDocument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.git import UntouchedRepository
    from pipeline.verification.context import VerificationContext

_EXITS: Final[Mapping[Status, Literal[0, 2, 7, 8]]] = {
    Status.VERIFIED: 0,
    Status.REFUTED: 7,
    Status.UNCHECKED: 2,
    Status.NOT_TESTABLE: 2,
    Status.NOTHING_LOST: 8,
    Status.NOTHING_CLAIMED: 2,
}


async def verified(ctx: VerificationContext, asked: str) -> VerifyDocument:
    """Return what is true of the commits that *asked* means.

    Raises:
        UserError: it means none, or the tests cannot be run here at all.
    """
    commits = commits_of(ctx.repository, asked)
    try:
        await ctx.prepare(ctx.repository.tree_of(commits[-1]))
        checks = tuple([await recheck(ctx, commit) for commit in commits])
    except UnmeasurableError as error:
        raise UserError(f"The tests cannot be run here: {error}", Reason.ENVIRONMENT) from error
    except (TooLargeError, GitError) as error:  # of the tree that should be prepared
        checks = tuple(unchecked(ctx, commit, error) for commit in commits)
    status = together(check.status for check in checks)
    return VerifyDocument(
        ok=status is Status.VERIFIED, status=status, exit_code=_EXITS[status], asked=asked, commits=checks
    )


def together(statuses: Iterable[Status]) -> Status:
    """Return the word for all of them, the worst one; commits that claim nothing do not count beside others."""
    found = set(statuses)
    order = (Status.REFUTED, Status.UNCHECKED, Status.NOT_TESTABLE, Status.VERIFIED, Status.NOTHING_LOST)
    return next((status for status in order if status in found), Status.NOTHING_CLAIMED)


def commits_of(repository: UntouchedRepository, asked: str) -> tuple[str, ...]:
    """Return the commits that a word means, oldest first; the exact name of a run comes first, then a commit.

    Raises:
        UserError: there are none, or the word fits more than one run.
    """
    runs = known_runs(repository)
    if asked in runs:
        return _commits_of_run(repository, asked)
    if ".." in asked:
        old, _, new = asked.partition("..")
        ends = [repository.resolve(f"{end or 'HEAD'}^{{commit}}") for end in (old, new.removeprefix("."))]
        if None in ends:
            raise UserError(f"{asked} is not a range of commits here.", Reason.USAGE)
        commits = repository.history(f"{ends[0]}..{ends[1]}")
        if not commits:
            raise UserError(f"There is no commit in {asked}.", Reason.USAGE)
        return commits
    commit = repository.resolve(f"{asked}^{{commit}}")
    if commit is not None:
        return (commit,)
    return _commits_of_run(repository, _run_called(asked, runs))


def _run_called(asked: str, runs: frozenset[str]) -> str:
    """Return the run that a name or a prefix means; an issue stands for its newest run (as in every command)."""
    of_issue = sorted((run for run in runs if issue_of(run) == asked), key=lambda run: (len(run), run))
    found = of_issue[-1:] or sorted(run for run in runs if asked and run.startswith((asked, f"run-{asked}")))
    if len(found) == 1:
        return found[0]
    known = ", ".join(found or sorted(runs)) or "none"
    what = "fits more than one run" if found else "is neither a commit nor a run here"
    hint, actions = (" Runs of others have to be fetched.", (FETCH,)) if not found else ("", ())
    raise UserError(f"{asked!r} {what} (runs: {known}).{hint}", Reason.USAGE, actions=("redfirst runs", *actions))


def _commits_of_run(repository: UntouchedRepository, run_id: str) -> tuple[str, ...]:
    """Return the commits that carry the run's name: those of HEAD's history, else those of any branch."""
    for revisions in (("HEAD",), ("--branches", "--remotes")):
        found = repository.history(*revisions, saying=f"{RUN_ID}: {run_id}")
        ours = tuple(commit for commit in found if (RUN_ID, run_id) in repository.trailers(commit))
        if ours:
            return ours
    raise UserError(f"No commit on any branch here carries {RUN_ID}: {run_id}.", Reason.USAGE)
