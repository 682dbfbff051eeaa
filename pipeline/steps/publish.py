"""PUBLISH (phase 9): code, tracker and follow-ups as commits on the branch, in one publication (architecture 8).

Before anything is written the suite over the result is held against the baseline once more (`hold`). The order makes
a crash harmless anywhere: commits as objects, kept by a ref and named in the journal; then the user's tracker files put
back; then index and files; then compare-and-swap of the branch; then `published`. A crash in between leaves our change
staged on the old branch, never the reverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pipeline.evidence.compare import carried_on, expectations, judge_green, passed, still_passing
from pipeline.git import SigningError
from pipeline.languages.protocol import Selection
from pipeline.measure.measuring import UnmeasurableError, measure
from pipeline.measure.old_tests.regression import confirm
from pipeline.reports.markdown import bullets
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Signal
from pipeline.runs import tracker
from pipeline.runs.events import Published, PublishIntended
from pipeline.runs.store import publish_ref, release_claim
from pipeline.steps.evidence.records import baseline_of, kept_tests, quarantine_of_run, read_evidence
from pipeline.steps.publication.commits import build_commits
from pipeline.steps.publication.summary import write_summary
from pipeline.steps.publication.wording import evidence, notes, word

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipeline.steps.context import Context

_SHOWN: Final = 3


async def run(ctx: Context) -> Event:
    """Return PUBLISHED, or why the branch cannot be moved now; then nothing of the user's has changed.

    REGRESSION is returned where a test that passed before the run does not pass over its result.
    """
    intended = ctx.run.journal.of(PublishIntended)
    again = bool(intended)
    if not intended:
        broken = None if ctx.state.nothing_changed else await _regression(ctx)
        if broken is not None:
            return broken
        worded = await word(ctx)
        if isinstance(worded, Event):
            return worded
        try:
            commits, follow_ups = build_commits(ctx, worded.items)
        except SigningError as error:
            return Event(signal=Signal.SIGNING_FAILED, note=str(error))
        ctx.repository.set_ref(publish_ref(ctx.repository, ctx.run.info.run_id), commits[-1])
        ctx.run.journal.append(PublishIntended(commits=tuple(commits), follow_ups=tuple(follow_ups)))
        intended = ctx.run.journal.of(PublishIntended)
    commits = intended[-1].data.commits
    follow_ups = intended[-1].data.follow_ups
    refusal = move(ctx, commits[-1], again=again)
    if refusal is not None:
        return refusal
    if not ctx.run.journal.of(Published):
        ctx.run.journal.append(Published(branch=ctx.run.info.branch, commits=tuple(commits)))
    ctx.repository.delete_ref(publish_ref(ctx.repository, ctx.run.info.run_id))
    release_claim(ctx.repository, ctx.issue, ctx.run.info.run_id)
    told = notes(ctx)
    name = write_summary(ctx, commits=commits, follow_ups=(*follow_ups, *told))
    note = "; ".join((f"{len(commits)} commit(s) on {ctx.run.info.branch}", *told))
    return Event(signal=Signal.PUBLISHED, note=note, evidence=(name, *evidence(ctx)))


async def _regression(ctx: Context) -> Event | None:
    """Return why the result cannot go out, whatever was said of it; None where nothing is lost."""
    try:
        held = await hold(ctx, ctx.state.head)
    except UnmeasurableError as error:
        return error.event
    if not held.lost:
        return None
    name = ctx.write("evidence/published.md", held_md(held))
    more = f"; and {len(held.lost) - _SHOWN} more" if len(held.lost) > _SHOWN else ""
    note = f"not published: {'; '.join(held.lost[:_SHOWN])}{more}"
    return Event(signal=Signal.REGRESSION, note=note, evidence=(name,))


def move(ctx: Context, new: str, *, again: bool) -> Event | None:
    """Take worktree, index and branch to *new*; None, or the event of a refusal that changed nothing.

    Args:
        ctx: The run.
        new: The commit to publish.
        again: It was tried before: a crash may have left index and files anywhere between the start and *new*.
    """
    repository, info = ctx.repository, ctx.run.info
    ref = f"refs/heads/{info.branch}"
    old, began = info.start_commit, _began(ctx)
    now = repository.resolve(ref)
    if now is not None and repository.is_ancestor(new, now):
        return None  # published before the crash
    if now != old or repository.branch() != info.branch:
        return Event(signal=Signal.BRANCH_MOVED, note=_moved_recipe(ctx, now, new))
    lock = repository.index_lock(began)
    if lock is not None:
        why = f"another git holds {lock}; if none is running, remove that file, then resume"
        return Event(signal=Signal.WORKTREE_CHANGED, note=why)
    if not (again and repository.index_is(new)):  # it is, when a crash came between the files and the branch
        if again:
            repository.take_back_half(old, new)
        changed = tracker.put_back(ctx.run, repository.worktree)
        if changed:
            why = f"{', '.join(changed)} changed while the run held the issue; commit or undo that, then resume"
            return _refused(ctx, why)
        repository.refresh_index()
        refusal = repository.move_worktree(old, new)
        if refusal is not None:
            return _refused(ctx, f"git refused to update the files: {refusal}")
    repository.free_branch(ref, new, began)
    if repository.set_ref(ref, new, old):
        return None
    undone = repository.move_worktree(new, old)
    kept = "" if undone is None else f" (the files could not be taken back: {undone})"
    tracker.show_again(ctx.run, repository.worktree)
    now = repository.resolve(ref)
    if now == old:
        why = f"git did not move {ref}: has a killed git left {ref}.lock? Remove it, then resume"
        return Event(signal=Signal.BRANCH_MOVED, note=why + kept)
    return Event(signal=Signal.BRANCH_MOVED, note=_moved_recipe(ctx, now, new) + kept)


def take_back(ctx: Context) -> tuple[str, ...]:
    """Undo what a crash left between files and branch, for a run that is given up.

    Returns:
        The files of the publication, where the user has changed them since: then they stay as they are.
    """
    repository, info = ctx.repository, ctx.run.info
    intended = ctx.run.journal.of(PublishIntended)
    old = info.start_commit
    if not intended or repository.branch() != info.branch or repository.resolve("HEAD") != old:
        return ()
    new = intended[-1].data.commits[-1]
    published = tuple(change.path for change in repository.diff(old, new))
    if repository.index_lock(_began(ctx)) is not None:
        return published
    if not repository.index_is(new):
        repository.take_back_half(old, new)
        return ()
    repository.refresh_index()
    return () if repository.move_worktree(new, old) is None else published


def _began(ctx: Context) -> float:
    """Return when this run began to publish, in seconds since the epoch: locks of ours are not older."""
    return datetime.fromisoformat(ctx.run.journal.of(PublishIntended)[0].at).timestamp()


def _refused(ctx: Context, why: str) -> Event:
    tracker.show_again(ctx.run, ctx.repository.worktree)
    return Event(signal=Signal.WORKTREE_CHANGED, note=why)


def _moved_recipe(ctx: Context, now: str | None, new: str) -> str:
    """Return what a person does when the branch is not where the run began: by comparing trees (architecture 8)."""
    repository, info = ctx.repository, ctx.run.info
    if now is not None and repository.tree_of(now) == repository.tree_of(new):
        return f"{info.branch} already carries exactly this result ({now[:12]}); nothing is left to do: abandon the run"
    return (
        f"{info.branch} moved from {info.start_commit[:12]} to {(now or 'nothing')[:12]}. The result is {new[:12]}: "
        # abandon first: it puts back the tracker files, which would be in the way
        f"redfirst abandon {info.run_id} and then git cherry-pick {info.start_commit[:12]}..{new[:12]}; or put the "
        f"branch back and redfirst resume {info.run_id}"
    )


@dataclass(frozen=True)
class Held:
    """What does not hold of a tree, one sentence each, path or id first; `passing` tests passed before and pass now."""

    lost: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    passing: int = 0


async def hold(ctx: Context, tree: str) -> Held:
    """Return whether everything that passed before the run, or at the GREEN of a task, passes over *tree*.

    A run of all tests of exactly this tree is used if there was one: the last GREEN is one, unless something was
    changed since.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    baseline = baseline_of(ctx)
    expected = {**quarantine_of_run(ctx).without(expectations(baseline)), **kept_tests(ctx)}
    leave = frozenset(test.id for task in ctx.state.done_tasks for test in ctx.task(task.id).tests_to_change)
    seen = await measure(ctx, tree, what="the result, all tests")
    evidences = (read_evidence(ctx, task.id) for task in ctx.state.done_tasks)
    ledgers = [found.ledger for found in evidences if found is not None and found.ledger is not None]
    renames = {old: new for ledger in ledgers for old, new in ledger.renames.items()}
    moves = carried_on(expected, seen.records, renames, leave)
    verdict = judge_green(None, seen, expected, tests_to_change=leave | moves, unread_before=baseline.unread)
    before = {entry for entry in verdict.regressions if entry in baseline.records and passed(baseline.records[entry])}
    suspects = await confirm(ctx, sorted(before), tree, ctx.state.start, seen)
    brought = set(verdict.regressions) - before  # by this run: the tree that it began with says nothing of these
    again = await _failing_again(ctx, tree, brought)
    lost = (
        *(f"{entry} passed and fails now" for entry in sorted({*suspects.regressions, *again})),
        *(f"{entry} is gone, and no task may remove it" for entry in verdict.missing),
        *(f"{path} cannot be collected, and could before" for path in verdict.uncollected),
        *(f"{entry} is a strict xfail, and passes now" for entry in verdict.stale_xfail),
    )
    flaky = sorted({*suspects.flaky, *(brought - again)})
    return Held(lost, tuple(flaky), still_passing(expected, seen, None))


async def _failing_again(ctx: Context, tree: str, tests: Collection[str]) -> set[str]:
    if not tests:
        return set()
    again = await measure(
        ctx, tree, Selection(ids=frozenset(tests)), again=True, what="the result, failing tests again"
    )
    return {entry for entry in tests if entry not in again.records or not passed(again.records[entry])}


def held_md(held: Held) -> str:
    """Return what was measured, for a person."""
    head = f"{held.passing} of the tests that passed before pass over what is to be published."
    flaky = [f"{entry} is flaky, and not counted" for entry in held.flaky]
    return f"# The suite before publication\n\n{head}\n\n{bullets([*held.lost, *flaky])}\n"
