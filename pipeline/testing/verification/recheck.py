"""Checks one commit again: its evidence is what it names, its tests were RED before, and all is GREEN now.

The evidence tells which tests are meant and what they showed. Who wrote the commit may have written that, too: it
selects and explains. A commit is verified when its own tests, measured over its parent's code, showed at least one
legal RED, and all of it, measured in the commit, is GREEN with nothing lost.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, Literal

from pipeline.errors import UserError
from pipeline.judge.policy.paths import is_tracker
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.taskfile import parse_task_md
from pipeline.outcomes import Reason
from pipeline.repo import GitError, TooLargeError, UntouchedRepository
from pipeline.run.store import issue_of
from pipeline.testing.measure.measuring import MeasurementContext, UnmeasurableError, changed_paths
from pipeline.testing.measure.suspicions import means_of_forgery
from pipeline.testing.verification import claims
from pipeline.testing.verification.claimed_commit import ClaimedCommit, Unchecked
from pipeline.testing.verification.red_green import check_green, measure_both
from pipeline.testing.verification.results import CommitCheck, Problem, Status, VerifyDocument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.judge.reports.tasks import Task
    from pipeline.testing.verification.context import VerificationContext


_MOST_TASKS = 200


async def recheck(ctx: MeasurementContext, commit: str) -> CommitCheck:
    """Return what is true of what *commit* claims."""
    claim = claims.claim_of(ctx.repository, commit)
    found = CommitCheck(commit=commit, subject=ctx.repository.subject(commit), status=Status.UNCHECKED)
    try:
        if isinstance(claim, claims.NoClaim):
            sound = Status.NOTHING_LOST if claim.of_recipe else Status.NOTHING_CLAIMED
            status = Status.UNCHECKED if claim.broken else sound
            found = found.model_copy(update={"status": status, "why": claim.why, "run_id": claim.run_id})
            return found if claim.run_id is None or claim.broken else await _without_task(ctx, found)
        ctx.say(f"{commit[:12]}: task {claim.task} of {claim.run_id}")
        found = found.model_copy(update={"run_id": claim.run_id, "task": claim.task})
        return await _checked(ctx, claim, found)
    except (Unchecked, UnmeasurableError, TooLargeError, GitError) as error:
        return found.model_copy(update={"status": Status.UNCHECKED, "why": str(error)})


async def _without_task(ctx: MeasurementContext, found: CommitCheck) -> CommitCheck:
    """Return the check of a commit without a task: it may touch no test, and break none.

    It closes an issue, tidies production, or is what a step of a recipe wrote.
    """
    parents = [_tree_of(ctx, commit) for commit in ctx.repository.parents(found.commit)]
    tree = _tree_of(ctx, found.commit)
    changed = (
        [path for path in changed_paths(ctx, parents[0], tree) if not is_tracker(path, ctx.config.tracker.folder)]
        if parents
        else []
    )
    if not changed:
        return found
    runs = await measure_both(ctx, {"the parent": parents[0], "the commit": tree})
    green = await check_green(ctx, None, runs, frozenset())
    tests = [path for path in changed if runs.after.layout.is_test_side(path)]
    why = "serves tests, and is changed by a commit of the run that has no evidence"
    problems = (*green.problems, *(Problem(id=path, why=why) for path in tests))
    status = Status.REFUTED if problems else found.status
    means = means_of_forgery(ctx, parents[0], tree, runs.after.layout)
    notes = (*green.notes, f"changes {', '.join(changed)}; nothing that passed before is lost", *means)
    return found.model_copy(
        update={"status": status, "kept": green.kept, "problems": problems, "notes": () if problems else notes}
    )


async def _checked(ctx: MeasurementContext, claim: claims.Claim, found: CommitCheck) -> CommitCheck:
    repository = ctx.repository
    kept = claims.kept_evidence(repository, claim)
    if not isinstance(kept, claims.Kept):
        if kept.left_out:
            number, first = len(kept.left_out), kept.left_out[0]
            raise Unchecked(
                f"there is more evidence of {claim.run_id} here than is looked into; left out: {first}"
                f"{f' and {number - 1} more' if number > 1 else ''}. Remove the refs that nobody needs: "
                f"git for-each-ref | grep {claim.run_id}"
            )
        if not kept.others:
            raise Unchecked(claims.not_kept(repository, claim))
        why = f"the evidence in {', '.join(kept.others)} is not the one that the trailer Red-Evidence names"
        return found.model_copy(update={"status": Status.REFUTED, "problems": (Problem(why=why),)})
    parents = repository.parents(found.commit)
    if len(parents) != 1:
        raise Unchecked(f"the commit of a task has one parent, and this one has {len(parents)} here")
    commit = ClaimedCommit(
        ctx,
        claim,
        kept,
        tasks=_tasks(kept, claim),
        parent=_tree_of(ctx, parents[0]),
        tree=_tree_of(ctx, found.commit),
        start=_red_base(ctx, claim, found.commit),
    )
    return await commit.check(found.model_copy(update={"evidence": kept.store.where}))


def _tree_of(ctx: MeasurementContext, commit: str) -> str:
    """Return the tree of a commit.

    Raises:
        TooLargeError: it names paths without number; git would never end to compare it.
    """
    tree = ctx.repository.tree_of(commit)
    ctx.repository.entries(tree)
    return tree


def _red_base(ctx: MeasurementContext, claim: claims.Claim, commit: str) -> str | None:
    """Return the tree that a fix of tests alone was measured over: that of the start of its run."""
    if claim.red_base is None:
        return None
    base = ctx.repository.resolve(f"{claim.red_base}^{{commit}}")
    if base is None or not ctx.repository.is_ancestor(base, commit):
        raise Unchecked(f"the trailer Red-Base names {claim.red_base}, which is not in the history of this commit")
    for each in ctx.repository.history(f"{base}..{commit}"):  # over an old enough commit every test is RED
        if (claims.RUN_ID, claim.run_id) not in ctx.repository.trailers(each):
            told = f"{each[:12]} ({ctx.repository.subject(each)})"
            raise Unchecked(f"the trailer Red-Base names {base[:12]}; since then came {told}, not of {claim.run_id}")
    return _tree_of(ctx, base)


def _tasks(kept: claims.Kept, claim: claims.Claim) -> tuple[Task, ...]:
    """Return the tasks whose symbols were missing when RED was measured, the one in question first."""
    others = [name for name in kept.store.tasks() if name != claim.task] if claim.red_base is not None else []
    if len(others) > _MOST_TASKS:
        raise Unchecked(f"{kept.store.where} has {len(others)} tasks, more than any run")
    found: list[Task] = []
    for name in (claim.task, *others):
        content = kept.store.read(f"task-{name}.md")
        task = None if content is None else parse_task_md(content.decode("utf-8", "replace"))
        if isinstance(task, Malformed) or task is None:
            why = "is missing" if task is None else f"cannot be read: {task.sentence}"
            raise Unchecked(f"task-{name}.md in {kept.store.where} {why}")
        named = {None, f"sha256:{hashlib.sha256(content or b'').hexdigest()}"}  # older commits name none
        if name == claim.task and claim.task_file not in named:
            why = "is not the one that the trailer Task-File names"
            raise Unchecked(f"task-{name}.md in {kept.store.where} {why}")
        found.append(task)
    return tuple(found)


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
        checks = tuple(
            CommitCheck(commit=one, subject=ctx.repository.subject(one), status=Status.UNCHECKED, why=str(error))
            for one in commits
        )
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
    runs = claims.known_runs(repository)
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
    hint, actions = (" Runs of others have to be fetched.", (claims.FETCH,)) if not found else ("", ())
    raise UserError(f"{asked!r} {what} (runs: {known}).{hint}", Reason.USAGE, actions=("redfirst runs", *actions))


def _commits_of_run(repository: UntouchedRepository, run_id: str) -> tuple[str, ...]:
    """Return the commits that carry the run's name: those of HEAD's history, else those of any branch."""
    for revisions in (("HEAD",), ("--branches", "--remotes")):
        found = repository.history(*revisions, saying=f"{claims.RUN_ID}: {run_id}")
        ours = tuple(commit for commit in found if (claims.RUN_ID, run_id) in repository.trailers(commit))
        if ours:
            return ours
    raise UserError(f"No commit on any branch here carries {claims.RUN_ID}: {run_id}.", Reason.USAGE)
