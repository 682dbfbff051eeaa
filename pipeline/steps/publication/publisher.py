"""Names who publishes, and the commit that it is published on: the run of an issue, or one step of a recipe's run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pipeline.config.sources import tracker_folder
from pipeline.judge.policy.paths import is_tracker
from pipeline.progress import few
from pipeline.run.journal_kinds import Published, PublishOnto
from pipeline.steps.publication.trees import above

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.repo import Repository
    from pipeline.run.spending import AnyRun
    from pipeline.steps.publication.commits import Planned


class Publisher(Protocol):
    """What a publication needs. The `Context` of an issue's run has it, and so has `RecipeContext`."""

    @property
    def run(self) -> AnyRun: ...  # noqa: D102  (as the contexts say)
    @property
    def repository(self) -> Repository: ...  # noqa: D102
    @property
    def publication(self) -> str | None:
        """Return which one of a run's publications this is; None where a run has one."""
        ...


def since(ctx: Publisher) -> str:
    """Return the commit that others may have committed on since: where the run began, or what it published last."""
    info, repository = ctx.run.info, ctx.repository
    before = [line.data for line in ctx.run.journal.of(Published) if line.data.publication != ctx.publication]
    last = before[-1].commits[-1] if before else info.start_commit
    tip = repository.resolve(f"refs/heads/{info.branch}")
    return last if tip is not None and repository.is_ancestor(last, tip) else info.start_commit


_SHOWN: Final = 3


@dataclass(frozen=True)
class Base:
    """A commit that the run's commits are put on.

    `tip` is where the branch points: at this commit, or at one before it. With `merging` files may be merged that both
    sides changed: a person named the commit (`resume --onto`).
    """

    commit: str
    tip: str
    merging: bool = False


@dataclass(frozen=True)
class Built:
    """Commits that no branch has yet, oldest first, and the ids of the issues that they file."""

    commits: tuple[str, ...]
    filed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Blocked:
    """Why the commits cannot go on the branch as it is now.

    `tip` is where it points, None where a person cannot put the commits there either; with `mergeable` a person may ask
    for both changes of files to be merged.
    """

    why: str
    details: tuple[str, ...] = ()
    tip: str | None = None
    mergeable: bool = False


def start_of(ctx: Publisher) -> Base:
    """Return where the run began, as the base of its commits."""
    return Base(ctx.run.info.start_commit, ctx.run.info.start_commit)


def choose(ctx: Publisher) -> Base | Blocked:
    """Return what the commits are put on as things stand: the branch's tip, or the commit that a person named."""
    repository, info = ctx.repository, ctx.run.info
    tip, here = repository.resolve(f"refs/heads/{info.branch}"), repository.branch()
    if tip is None:
        return Blocked(f"the branch {info.branch} is gone; it began at {info.start_commit[:12]}")
    if here != info.branch:
        where = "HEAD is detached" if here is None else f"you are on {here}"
        back = f"git switch {shlex.quote(info.branch)}, redfirst resume {info.run_id}"
        return Blocked(f"{where}, and the run publishes to {info.branch}: {back}")
    if not repository.is_ancestor(info.start_commit, tip):
        return Blocked(
            f"{info.branch} at {tip[:12]} no longer holds {info.start_commit[:12]}, where the run began", tip=tip
        )
    named = ctx.run.journal.of(PublishOnto)
    onto = named[-1].data.commit if named else None
    if onto is not None and repository.is_ancestor(tip, onto):
        return Base(onto, tip, merging=True)
    return Base(tip, tip)


def blocked(ctx: Publisher, base: Base, why: Sequence[str], *, mergeable: bool = False) -> Blocked:
    """Return that the commits cannot go on *base*, with each reason."""
    branch, onto = ctx.run.info.branch, "there" if base.commit == base.tip else f"on {base.commit[:12]}"
    more = (f"{len(why) - _SHOWN} more in evidence/branch-moved.md",) if len(why) > _SHOWN else ()
    said = "; ".join((*why[:_SHOWN], *more))
    told = f"{branch} is at {base.tip[:12]} now, and the result does not go {onto}: {said}"
    return Blocked(told, tuple(why), base.tip, mergeable)


@dataclass(frozen=True)
class Meeting:
    """A path of the run that others changed, too, or a file of one side where the other has a folder."""

    path: str
    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    cases: bool = False
    """Whether the two differ in case alone where the file system takes them for one: no merge of texts helps."""

    def __str__(self) -> str:
        return f"{self.path} was changed by {few(self.theirs)} and by {few(self.ours)}"


def meetings(ctx: Publisher, base: Base, work: Sequence[Planned]) -> tuple[Meeting, ...]:
    """Return where the run's changes meet those between its start and *base*.

    Files of the tracker are left out: what becomes of them is computed again on the base.
    """
    repository, began = ctx.repository, since(ctx)
    if base.commit == began:
        return ()
    same = str.casefold if repository.config("core.ignorecase") == "true" else str
    changed = (change.path for change in repository.diff(began, base.commit))
    tracker = tracker_folder(repository.worktree)
    theirs = {same(path): path for path in changed if not is_tracker(path, tracker)}
    folders = {folder for path in theirs for folder in above(path)}
    ours: dict[str, list[str]] = {}
    for each in work:
        for change in repository.diff(each.before, each.after):
            ours.setdefault(change.path, []).append(each.of)
    found: list[Meeting] = []
    for path, whose in sorted(ours.items()):
        key = same(path)
        met = [theirs[place] for place in (key, *above(key)) if place in theirs]
        met += [theirs[place] for place in theirs if place.startswith(f"{key}/")] if key in folders else []
        if met:
            commits = repository.touching(began, base.commit, *met)
            said = tuple(f"{commit[:12]} ({repository.subject(commit)})" for commit in commits)
            cases = not any(f"{one}/".startswith(f"{path}/") or f"{path}/".startswith(f"{one}/") for one in met)
            found.append(Meeting(path, said or ("a merge",), tuple(dict.fromkeys(whose)), cases))
    return tuple(found)
