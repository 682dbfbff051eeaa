"""Makes a branch and a linked worktree for an issue outside the checkout (`run --worktree`)."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar

from pipeline.app.at_hub import look_up_base
from pipeline.app.run_config import RunOptions, read_config
from pipeline.config.sources import LARGEST, repository_file, same_words
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.progress import few
from pipeline.queue.order_lines import NotNowError, OrderWorktree
from pipeline.queue.orders import fleet_for, log_of
from pipeline.repo import GitError, Repository
from pipeline.run import tracker
from pipeline.run.checkout import fill_submodules, has_submodules
from pipeline.run.files import locked, remove_abandoned, to_json, write_atomic
from pipeline.run.ignored import bring_ignored
from pipeline.run.preconditions import known_base, refuse_claimed
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster
from pipeline.run.store import OWNER, WORKFLOW, is_on, issue_of
from pipeline.run.summary_facts import commits_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    T = TypeVar("T")

_SLUG_LIMIT: Final = 40
_SHOWN: Final = 3
_UNFINISHED: Final = "initializing"
"""How git locks a worktree while it makes it. Who has our lock sees it only of a git that was killed."""
_GOES_ON: Final = re.compile(
    r"(-(a|an|and|are|as|at|be|by|for|from|if|in|into|is|not?|of|on|or|than|that|the|to|when|where|which|with|without))+$"
)
"""Last words after which a sentence goes on."""


@dataclass(frozen=True)
class Begins:
    """Where a worktree begins: the base, its commit, and the title of the issue there."""

    base: str
    tip: str
    title: str


def begins(repository: Repository, options: RunOptions) -> Begins:
    """Return where the worktree of a run would begin; nothing is written.

    Raises:
        UserError: the issue is missing or not committed, another run has it, or it is done on a branch that the base
            does not have; or no base is known.
    """
    base = options.base or known_base(repository)
    url = fleet_for(repository, options.environ).hub if options.order is not None else None
    newer = look_up_base(repository, url, base) if base and url else None
    tip = newer or (repository.resolve(base) if base else None)
    if base is None or tip is None:
        raise UserError(
            "Name the base branch: --base REF.",
            Reason.USAGE,
            actions=(f"redfirst run {options.issue} --worktree --base REF",),
        )
    title = tracker.read_committed(repository, tip, options.issue, base)[1].title
    refuse_claimed(repository, options.issue)
    if options.previous is None:
        _refuse_done(repository, options.issue, tip)
    return Begins(base, tip, title)


def create(repository: Repository, options: RunOptions) -> tuple[Repository, RunOptions]:
    """Return the repository as seen from a new linked worktree on a new branch, and the options for it.

    What is there already, as the worktree of an earlier run, stays as it is: the new one has a number then.

    Raises:
        UserError: as `begins`.
    """
    at = begins(repository, options)
    base, tip, slug = at.base, at.tip, slug_of(at.title)
    read_config(repository, tip, options.flags, options.environ)  # what no run could begin with is said first
    # `git worktree add` is not safe in parallel: one at a time.
    with locked(repository.common_dir) as lock:
        try:
            old = _left(repository, options)
            if old is not None:
                return _finished(repository, old, issue=options.issue, order=options.order), replace(options, base=base)
            branch, folder = _free(repository, options.issue.lower(), slug)
            if options.order is not None:  # said first: so the next driver of the order finds what this one may leave
                with log_of(repository, options.environ).locked() as log:
                    log.add(OrderWorktree(order=options.order, folder=str(folder), branch=branch, tip=tip))
        except NotNowError as error:  # nothing is wrong with the order: its worker tries again
            raise UserError(error.message, Reason.LOCKED, actions=error.actions) from error
        made = make_worktree(repository, folder, branch, tip, issue=options.issue, order=options.order, holds=(lock,))
    return made, replace(options, base=base)


def make_worktree(
    repository: Repository,
    folder: Path,
    branch: str,
    tip: str,
    *,
    issue: str | None,
    order: str | None,
    is_new: bool = True,
    holds: tuple[int, ...] = (),
) -> Repository:
    """Return the repository as seen from a new linked worktree, with all that git leaves out, which says whose it is.

    Args:
        repository: Seen from anywhere.
        folder: Where it is made.
        branch: What is checked out there.
        tip: The commit of that branch.
        issue: What it is for.
        order: What it came of.
        is_new: Whether the branch is made, too.
        holds: Handles that git keeps open.

    Raises:
        UserError: git does not make it.
    """
    try:
        repository.add_worktree(folder, branch, tip if is_new else None, holds=holds)
    except GitError as error:
        raise UserError(f"The worktree could not be made: {error.stderr.strip()}", Reason.LOCKED) from error
    return _finished(repository, Repository.find(folder), issue=issue, order=order)


def _finished(repository: Repository, made: Repository, *, issue: str | None, order: str | None) -> Repository:
    """Return a new worktree, as git has made it, with all that git leaves out and the file that says whose it is.

    Whoever did this before may have died in the midst of it, so that it is done again.
    """
    folder, tip = made.worktree, made.resolve("HEAD")
    bring_ignored(repository, folder)
    fill_submodules(repository, made.tree_of("HEAD"), folder, made.git_dir / "redfirst-index")
    remove_abandoned(made.git_dir / OWNER)
    said = {"issue": issue, "order": order, "branch": made.branch(), "tip": tip, "folder": str(folder.resolve())}
    write_atomic(made.git_dir / OWNER, to_json({"schema": "redfirst.worktree/1", **said}))
    return made


def slug_of(title: str) -> str:
    """Return what a branch's name says of a title: the whole words that fit, the last one none that dangles."""
    said = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    if len(said) <= _SLUG_LIMIT:
        return said
    words = said[: _SLUG_LIMIT + 1].rpartition("-")[0]
    return _GOES_ON.sub("", words) or said[:_SLUG_LIMIT]


def _left(repository: Repository, options: RunOptions) -> Repository | None:
    """Return the worktree that a driver of the same order had made when it died; None where it cannot be used."""
    if options.order is None:
        return None
    log = log_of(repository, options.environ)
    log.read_on()
    order = log.orders.get(options.order)
    said = order.worktree if order is not None else None
    if said is None:
        return None
    found = next((one for one in repository.worktrees() if str(one.path) == said.folder), None)
    if found is None or found.locked == _UNFINISHED:
        repository.remove_unfinished(None if found is None else found.path, said.branch, said.tip)
        return None
    if not found.is_there or found.locked is not None:
        return None
    made = repository.at(found)
    is_new = made.resolve("HEAD") == said.tip and made.branch() == said.branch and not made.status()
    return made if is_new and not any(found.path.glob(f"{WORKFLOW}/run-*/run.json")) else None


def left_behind(here: Repository, made: Repository) -> tuple[str, ...]:
    """Return what of the checkout here is not in the new worktree: files, and words of the configuration."""
    changed = sorted(line[3:] for line in here.status(WORKFLOW))
    files = f"not committed, so not in that worktree: {few(changed, _SHOWN)}"
    return (*([files] if changed else []), *_other_words(here, made))


def _other_words(here: Repository, made: Repository) -> tuple[str, ...]:
    with suppress(UserError):  # two files: who uses this checkout is told
        found = repository_file(here.worktree, lambda name: made.blob(f"HEAD:{name}", LARGEST))
        if found is not None and not found.tracked:
            return (f"{found.name} of {here.worktree} does not count there: it is not committed",)
        if found is not None and not same_words(found, here.worktree):
            return (f"{found.name} says something else in {here.worktree}: there it counts as it is committed",)
    return ()


async def begun(here: Repository, made: Repository, start: Awaitable[T], say: Callable[[str], None]) -> T:
    """Return what the start of a run returns; where it is refused, the worktree that was made for it is taken back.

    Args:
        here: The repository as seen from where somebody stands.
        made: The same as seen from the new worktree.
        start: Begins the run there.
        say: Is told that it was taken back.
    """
    tip = made.resolve("HEAD")
    try:
        return await start
    except UserError as error:
        branch = made.branch()
        runs = list(made.worktree.glob(f"{WORKFLOW}/run-*"))
        if error.reason is not Reason.INTERRUPTED and branch and tip and not runs:
            fresh = not made.status()  # with submodules git has to be forced, and then it looks at nothing
            here.remove_worktree(made.worktree, branch, tip, submodules=fresh and has_submodules(made, tip))
            say(f"took back the worktree {made.worktree} and its branch: the run was refused")
        raise


def _refuse_done(repository: Repository, issue: str, tip: str) -> None:
    """Refuse to pay a second time for what only waits to be merged."""
    roster = Roster(repository)
    for place in roster.runs:
        if issue_of(place.name) != issue:
            continue
        try:
            run = Run.load(place.folder, driving=False)
        except UserError:
            continue
        commits = commits_of(run)
        there = repository.resolve(f"refs/heads/{run.info.branch}")
        if (
            commits
            and there
            and repository.is_ancestor(commits[-1], there)
            and not is_on(repository, commits, run.info.start_commit, tip)
        ):
            name = roster.spoken(place.folder)
            raise UserError(
                f"{issue} is done already: {name} put its commits on the branch {run.info.branch}, and the base "
                f"does not have them. Put them there: redfirst land {name}. To do the issue again: "
                f"redfirst run {issue} --worktree --previous {name}",
                Reason.USAGE,
                path=str(place.worktree.path),
                actions=(f"redfirst show {name}", f"git log --stat {tip[:12]}..{shlex.quote(run.info.branch)}"),
            )


def _free(repository: Repository, issue: str, slug: str) -> tuple[str, Path]:
    """Return a branch and a folder that nobody has, both with the same number where one is needed."""
    numbered = ((f"{name}-{slug}" if slug else name, folder) for name, folder in free_places(repository, issue))
    return next(one for one in numbered if not repository.resolve(f"refs/heads/{one[0]}"))


def free_places(repository: Repository, name: str) -> Iterator[tuple[str, Path]]:
    """Yield folders beside the main checkout that nobody has, and how each is called: *name*, with a number."""
    main = repository.main_checkout
    known = {each.path for each in repository.worktrees()}  # git refuses a place that it knows, be it gone or not
    for number in count(1):
        numbered = name if number == 1 else f"{name}-{number}"
        folder = main.parent / f"{main.name}-{numbered}"
        if not (os.path.lexists(folder) or folder.resolve() in known):
            yield numbered, folder
