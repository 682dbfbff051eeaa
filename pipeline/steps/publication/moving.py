"""Moves the user's index, files and branch to the published commits, and takes back what a crash left half done.

Whoever publishes goes the same way (`put_on_branch`): commits as objects, kept by a ref and named in the journal; then
the user's tracker files put back; then index and files; then compare-and-swap of the branch; then `published`. This
order makes a crash harmless anywhere: one in between leaves our change staged on the old branch, never the reverse.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from pipeline.matrix.engine.journal_kinds import RunResumed, RunStopped
from pipeline.matrix.routing.state import Event
from pipeline.run import tracker
from pipeline.run.journal_kinds import Published, PublishIntended, PublishMoving
from pipeline.run.run_ref import drop_publication, keep_publication
from pipeline.steps.publication.commits import Planned, signature
from pipeline.steps.publication.publisher import Base, Blocked, Built, Publisher, blocked, choose, meetings
from pipeline.steps.publication.suite_check import hold
from pipeline.steps.publication.trees import put_on
from pipeline.testing.verification.recheck import recheck
from pipeline.testing.verification.results import Status
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from pipeline.matrix.engine.journal import Line
    from pipeline.repo import Repository
    from pipeline.run.hub import Hub
    from pipeline.run.spending import AnyRun
    from pipeline.steps.context import Context

_BAD = frozenset({Status.REFUTED, Status.UNCHECKED})
OtherT = TypeVar("OtherT")


async def put_on_branch(
    ctx: Publisher, build: Callable[[Base], Awaitable[Built | OtherT]], hub: Hub | None = None
) -> PublishIntended | Blocked | Event | OtherT:
    """Return what the branch holds now, or what is in the way: then nothing of the user's has changed.

    Args:
        ctx: Who publishes.
        build: Makes the commits on a base, where they are not made yet; or returns something else, which is returned.
        hub: Where the branch is moved before it is here; None where it is not. With the one publication of an issue's
            run its claim on the issue goes there, too.
    """
    tried, first = intended(ctx), not under_way(ctx)
    if not tried or not is_published(ctx, tried[-1].commits[-1]):
        base = choose(ctx)
        if isinstance(base, Blocked):
            return base
        if not tried or (tried[-1].base or ctx.run.info.start_commit) != base.commit:
            built = await build(base)
            if not isinstance(built, Built):
                return built
            intend(ctx, built, base)
        new, ends = intended(ctx)[-1].commits[-1], ctx.publication is None
        if hub is not None and (why := await hub.checkpoint(ctx.run, commit=new, ends=ends)) is not None:
            return Event(signal=Signal.BRANCH_MOVED, note=why)
        refusal = move(ctx, new, base, first=first)
        if refusal is not None:
            return refusal
    said = note_published(ctx)
    drop_publication(ctx.repository, ctx.run)
    return said


def intended(ctx: Publisher) -> list[PublishIntended]:
    """Return what this publication was to bring to the branch, whenever it was tried; the last one counts."""
    return [line.data for line in ctx.run.journal.of(PublishIntended) if line.data.publication == ctx.publication]


def under_way(ctx: Publisher) -> bool:
    """Return whether the run began to publish something that it has not brought to its end, this or another time.

    The one publication of an issue's run is under way until the run is over.
    """
    begun = ctx.run.journal.of(PublishIntended)
    ended = {line.data.publication for line in ctx.run.journal.of(Published)} - {None}
    return bool(begun) and begun[-1].data.publication not in ended


def note_published(ctx: Publisher) -> PublishIntended:
    """Say once in the journal that the branch holds what was intended last; return that."""
    said = intended(ctx)[-1]
    known = (line.data.publication for line in ctx.run.journal.of(Published))
    if ctx.publication not in known:
        which = {} if ctx.publication is None else {"publication": ctx.publication}
        branch = ctx.run.info.branch
        ctx.run.journal.append(Published.model_validate({"branch": branch, "commits": said.commits, **which}))
    return said


def refusal_of_files(ctx: Publisher, base: Base, work: Sequence[Planned]) -> Blocked | None:
    """Return where files of the run meet those changed before *base*, unless they may be merged there and can be."""
    met = meetings(ctx, base, work)
    if not met:
        return None
    touching = tuple(dict.fromkeys((*_conflicts(ctx, base, work), *(one.path for one in met if one.cases))))
    if base.merging and not touching:
        return None
    why = [str(one) for one in met]
    why += [f"the two changes of {', '.join(touching)} do not merge"] if touching else []
    return blocked(ctx, base, why, mergeable=not touching)


def _conflicts(ctx: Publisher, base: Base, work: Iterable[Planned]) -> tuple[str, ...]:
    """Return the files in which the run's changes and those before *base* touch each other."""
    tree = ctx.repository.tree_of(base.commit)
    found: list[str] = []
    for each in work:
        put = put_on(ctx.repository, tree, each.before, each.after)
        tree = put.tree
        found += put.conflicts
    return tuple(dict.fromkeys(found))


async def unproven(ctx: Context, base: Base, commits: Sequence[str]) -> tuple[str, ...]:
    """Return what does not hold of the commits of work on *base*: a claim, or the suite over all of them.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    if commits:
        ctx.say(f"    {ctx.run.info.branch} moved: each commit is measured again on {base.commit[:12]}")
    for commit in commits:
        checked = await recheck(ctx, commit)
        if checked.status in _BAD:
            of = f"task {checked.task}" if checked.task else checked.subject
            return tuple(f"{of}: {problem}" for problem in checked.problems) or (f"{of}: {checked.why}",)
    if not commits:
        return ()
    tree, under = (ctx.repository.tree_of(commit) for commit in (commits[-1], base.commit))
    return (await hold(ctx, tree, under)).lost


def carried(ctx: Context, tip: str) -> str | None:
    """Return that *tip* has what was to be published, so that nothing is left to do; None where it has not.

    Either its files are exactly those (a crash had left them staged), or a person has put each commit there, conflicts
    resolved: `git cherry-pick` leaves the trailers as they are.
    """
    repository, info = ctx.repository, ctx.run.info
    intended = [line.data.commits for line in ctx.run.journal.of(PublishIntended)]
    name, branch = info.run_id, info.branch
    picked = repository.history(f"{info.start_commit}..{tip}", saying=f"Run-Id: {name}")
    mine = [commit for commit in picked if ("Run-Id", name) in repository.trailers(commit)]
    subjects = {repository.subject(commit) for commit in mine}
    if intended and {repository.subject(commit) for commit in intended[-1][:-1]} <= subjects and mine:
        closed = repository.subject(intended[-1][-1]) in subjects
        last = "" if closed else f", then redfirst issue status {ctx.issue} done"
        told = f"{branch} has the commits of {name}, as you put them there ({', '.join(one[:12] for one in mine)})"
        return f"{told}; nothing is left to do: redfirst abandon {name}{last}"
    trees = {repository.tree_of(commits[-1]) for commits in intended}
    if repository.tree_of(tip) not in trees:
        return None
    return f"{branch} already carries exactly this result ({tip[:12]}); nothing is left to do: redfirst abandon {name}"


def onto_line(ctx: Publisher) -> str:
    """Return the command that goes on onto the branch as it is now."""
    return f"redfirst resume {ctx.run.info.run_id} --onto {shlex.quote(ctx.run.info.branch)}"


def put_away(repository: Repository, paths: Sequence[str]) -> str:
    """Return, in words, how a person puts away what they have not committed in *paths*, and nothing else of theirs."""
    there = [repository.worktree / path for path in paths]
    if not all(place.is_symlink() or place.exists() for place in there):
        return "commit or undo them first"  # git stash refuses a path that is gone
    return f"put them away first: git stash push --include-untracked -- {shlex.join(paths)}"


def by_hand(ctx: Context, tip: str, commits: Sequence[str]) -> str:
    """Return how a person gets *commits*, which stand on the start, onto *tip* with git alone, or what is in the way.

    Nothing of it is measured there; but it was tried, without touching the user's files.
    """
    repository, info = ctx.repository, ctx.run.info
    name, first = info.run_id, info.start_commit[:12]
    picked = repository.pick(tip, commits, signature(ctx))
    if picked is None:
        return f"the result is {commits[-1][:12]}"
    done, why = picked
    work = len(commits) - 1
    if done < work or not work:
        stops = f"git cherry-pick {first}..{commits[-1][:12]} would stop: {why or 'it changes the tracker alone'}"
        again = f"redfirst abandon {name}, then redfirst run {ctx.issue} --previous {name}"
        return f"{stops}; to have it done again on {info.branch} as it is now, with this result to go by: {again}"
    shown = {*tracker.shown_paths(ctx.run, repository.worktree).values()}
    if not shown.isdisjoint(change.path for change in repository.diff(info.start_commit, tip)):
        done = work  # abandoning leaves the tracker's files changed, so that git would not touch them
    # where the tracker's commit alone does not fit: that is a command of ours
    last = f", then redfirst issue status {ctx.issue} done" if done == work else ""
    touched = {change.path for change in repository.diff(info.start_commit, commits[done - 1])}
    staged = set(repository.staged(tip))
    dirty = sorted(staged | (touched & {line[3:] for line in repository.status()} - shown))
    if dirty:
        return f"git cherry-pick would fit, but for what is not committed: {', '.join(dirty)}"
    end = commits[done - 1][:12]
    return f"not measured there, but it fits: redfirst abandon {name}, then git cherry-pick {first}..{end}{last}"


def intend(ctx: Publisher, built: Built, base: Base) -> None:
    """Keep commits by a ref, and say in the journal that they are to be published.

    With the first ones it also says that the user's files hold nothing of them: version 0.1.0 says nothing.
    """
    journal = ctx.run.journal
    first = not under_way(ctx)
    keep_publication(ctx.repository, ctx.run, built.commits[-1])
    onto = base.commit if base.commit != ctx.run.info.start_commit else None
    said: dict[str, object] = {"commits": built.commits, "follow_ups": built.filed}
    said |= {} if onto is None else {"base": onto}
    said |= {} if ctx.publication is None else {"publication": ctx.publication}
    journal.append(PublishIntended.model_validate(said))
    if first:
        journal.append(PublishMoving())


def move(ctx: Publisher, new: str, base: Base, *, first: bool) -> Event | None:
    """Take worktree, index and branch to *new*; None, or the event of a refusal that changed nothing.

    What a crash left in index and files of an earlier move is taken back, unless this is the *first* one.
    """
    repository, info, tried = ctx.repository, ctx.run.info, [] if first else _begun(ctx, resumed=1)
    ref = f"refs/heads/{info.branch}"
    old, began = base.tip, _began(ctx)
    if not first and is_published(ctx, new):
        return None  # before the crash
    now = repository.resolve(ref)
    if now != old or repository.branch() != info.branch:
        return _moved_on(ctx, now)
    lock = repository.index_lock(began)
    if lock is not None:
        why = f"another git holds {lock}; if none is running, remove that file, then resume"
        return Event(signal=Signal.WORKTREE_CHANGED, note=why)
    if not (tried and repository.index_is(new)):  # it is, when a crash came between the files and the branch
        stays = _take_back_all(ctx, old, tried)
        if tried and not stays:
            ctx.run.journal.append(PublishMoving())
        changed = tracker.put_back(ctx.run, repository.worktree, _committed(ctx, old))
        if changed:
            why = f"{', '.join(changed)} changed while the run held the issue; commit or undo that, then resume"
            return _refused(ctx, why)
        repository.refresh_index()
        ctx.run.journal.append(PublishMoving(commit=new))
        refusal = repository.move_worktree(old, new)
        if refusal is not None:
            if not stays:
                ctx.run.journal.append(PublishMoving())
            return _refused(ctx, _in_the_way(ctx, old, new) or f"git refused to update the files: {refusal}")
    repository.free_branch(ref, new, began)
    if repository.set_ref(ref, new, old):
        return None
    undone = repository.move_worktree(new, old)
    kept = "" if undone is None else f" (the files could not be taken back: {undone})"
    if undone is None:
        ctx.run.journal.append(PublishMoving())
    tracker.show_again(ctx.run, repository.worktree)
    now = repository.resolve(ref)
    if now == old:
        why = f"git did not move {ref}: has a killed git left {ref}.lock? Remove it, then resume"
        return Event(signal=Signal.BRANCH_MOVED, note=why + kept)
    return _moved_on(ctx, now, kept)


def is_published(ctx: Publisher, new: str) -> bool:
    """Return whether the branch holds the commit *new*."""
    now = ctx.repository.resolve(f"refs/heads/{ctx.run.info.branch}")
    return now is not None and ctx.repository.is_ancestor(new, now)


@dataclass(frozen=True)
class Given:
    """A run that publishes nothing more: what its publications left half done may be taken back."""

    run: AnyRun
    repository: Repository
    publication: None = None


def take_back(ctx: Publisher) -> tuple[str, ...]:
    """Undo what a crash left between files and branch, for a run that is given up.

    Returns:
        The files of the publication, where the user has changed them since: then they stay as they are.
    """
    repository, info = ctx.repository, ctx.run.info
    now = repository.resolve("HEAD")
    if now is None or repository.branch() != info.branch or not repository.is_ancestor(info.start_commit, now):
        return ()
    tried = _begun(ctx, resumed=0)
    left = _intended(ctx, now, tried)
    if left and repository.index_lock(_began(ctx)) is not None:
        return tuple(change.path for tree in left for change in repository.diff(now, tree))
    return _take_back_all(ctx, now, tried)


@dataclass(frozen=True)
class _Begun:
    """A publication whose move began, and when, in seconds since the epoch: no file of it is older."""

    said: PublishIntended
    since: float


def _begun(ctx: Publisher, *, resumed: int) -> list[_Begun]:
    """Return the publications that index and files may still hold something of: their move began, and did not end.

    Args:
        ctx: The run.
        resumed: How many of the last `run_resumed` lines are of the driver that asks.
    """
    journal = ctx.run.journal
    intended, moving = journal.of(PublishIntended), journal.of(PublishMoving)
    if not moving:  # version 0.1.0 did not say so: then a driver that died before it stopped the run
        stopped = max((line.seq for line in journal.of(RunStopped)), default=0)
        died = sum(line.seq > stopped for line in journal.of(RunResumed)) > resumed
        return [_Begun(line.data, _seconds(line)) for line in intended if line.seq > stopped or died]
    clean = max((line.seq for line in moving if line.data.commit is None), default=0)
    begun = {line.data.commit: _seconds(line) for line in reversed(moving) if line.seq > clean}
    last = ((line.data, begun.get(line.data.commits[-1])) for line in intended)
    return [_Begun(said, since) for said, since in last if since is not None]


def _take_back_all(ctx: Publisher, now: str, tried: Sequence[_Begun]) -> tuple[str, ...]:
    """Undo what each publication that was tried left of itself, as seen from the branch at *now*; return what stays."""
    repository = ctx.repository
    stays: list[str] = []
    for tree, since in _intended(ctx, now, tried).items():
        ours = {change.path for change in repository.diff(now, tree)}
        staged = ours.intersection(repository.staged(now))
        if not staged:
            repository.take_back_half(now, tree, since)
            continue
        repository.refresh_index()
        if repository.move_worktree(tree, now) is not None:
            stays += sorted(staged)
    return tuple(dict.fromkeys(stays))


def _intended(ctx: Publisher, now: str, tried: Sequence[_Begun]) -> dict[str, float]:
    """Return what index and files may hold of each publication that was tried: trees over that of *now*, and when.

    What the user has committed of it meanwhile is no longer ours to undo.
    """
    repository = ctx.repository
    here = {entry.path: entry for entry in repository.entries(repository.tree_of(now))}
    found: dict[str, float] = {}
    for each in tried:
        base, new = each.said.base or ctx.run.info.start_commit, each.said.commits[-1]
        if repository.is_ancestor(now, base):  # `--onto` may have named a commit that the branch does not have yet
            found.setdefault(repository.tree_of(new), each.since)
            continue
        was = {entry.path: entry for entry in repository.entries(repository.tree_of(base))}
        changes = [c for c in repository.diff(base, new) if here.get(c.path) == was.get(c.path)]
        if changes:
            found.setdefault(repository.build_tree(repository.tree_of(now), changes), each.since)
    return found


def _committed(ctx: Publisher, tip: str) -> frozenset[str]:
    """Return the tracker files shown as In Progress that the user has committed since, and that are as they did."""
    repository, start = ctx.repository, ctx.run.info.start_commit
    if tip == start:
        return frozenset()
    changed = {change.path for change in repository.diff(start, tip)}
    dirty = {line[3:] for line in repository.status()}
    shown = tracker.shown_paths(ctx.run, repository.worktree)
    return frozenset(name for name, path in shown.items() if path in changed and path not in dirty)


def _began(ctx: Publisher) -> float:
    """Return when this run began to publish, in seconds since the epoch: locks of ours are not older."""
    return _seconds(ctx.run.journal.of(PublishIntended)[0])


def _seconds(line: Line[PublishIntended] | Line[PublishMoving]) -> float:
    return datetime.fromisoformat(line.at).timestamp()


def _refused(ctx: Publisher, why: str) -> Event:
    tracker.show_again(ctx.run, ctx.repository.worktree)
    return Event(signal=Signal.WORKTREE_CHANGED, note=why)


def _in_the_way(ctx: Publisher, old: str, new: str) -> str:
    """Return what the user has not committed where the run writes, and how it is put away; "" where nothing is."""
    repository, name = ctx.repository, ctx.run.info.run_id
    written = {change.path for change in repository.diff(old, new)}
    met = sorted(written.intersection(line[3:] for line in repository.status()))
    if not met:
        return ""
    told = f"you have changes in {', '.join(met)} that are not committed, and the run writes there"
    then = f"then redfirst resume {name}; git stash pop brings them back"
    return f"{told}: {put_away(repository, met)}; {then}"


def _moved_on(ctx: Publisher, now: str | None, kept: str = "") -> Event:
    """Return that somebody moved the branch since its tip was looked at."""
    why = f"{ctx.run.info.branch} moved to {(now or 'nothing')[:12]} meanwhile"
    return Event(signal=Signal.TIP_MOVED, note=why + kept)
