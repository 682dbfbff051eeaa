"""Tells where somebody stands in a repository: runs that go on, wait or may land, and which issues are ready.

It reads what `runs` and `issue ready` read, and writes nothing into the repository. What takes long to load is loaded
only where a run has ended.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pipeline.config import folders
from pipeline.config.sources import repository_file, tracker_folder
from pipeline.errors import UserError
from pipeline.service.ended_runs import has_ended
from pipeline.service.issue_records import claims_of
from pipeline.service.run_list import newest_runs
from todo import FolderSource, Tracker, TrackerError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.service.run_line import RunLine, RunsDocument


@dataclass(frozen=True, kw_only=True)
class StandingLine:
    """One thing to know, and the command that comes next of it."""

    about: Literal["repository", "configuration", "run", "landing", "tracker", "issue"]
    says: str
    next: str


@dataclass(frozen=True, kw_only=True)
class StandingDocument:
    """What `redfirst --json` prints: what waits, then what is next. `repository` is null outside of one."""

    schema: Literal["redfirst.standing/1"] = "redfirst.standing/1"
    ok: Literal[True] = True
    repository: str | None
    lines: tuple[StandingLine, ...]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What there is to do in a repository.

    Attributes:
        has_commit: Whether there is anything that a run could begin from.
        configured: Whether any file says which agents play the roles.
        uncommitted: The repository's own file, where git does not have it yet.
        config_problem: Why it cannot be read.
        runs: The runs that were read.
        driven: Runs that a process drives.
        waiting: Runs that have not ended and that no process drives: a person has to answer, or to resume.
        landable: Finished runs that are not on their base, and `onto` that base; none where they have several bases.
        ready: Ids of the issues that can be worked on; None where the tracker cannot be read, `problem` says why.
        has_issues: Whether there is a tracker.
    """

    has_commit: bool
    configured: bool
    uncommitted: str
    config_problem: str
    runs: RunsDocument
    driven: tuple[RunLine, ...]
    waiting: tuple[RunLine, ...]
    landable: tuple[str, ...]
    onto: str
    ready: tuple[str, ...] | None
    has_issues: bool
    problem: str


def standing(repository: Repository) -> Standing:
    """Return where somebody stands in this repository."""
    document, rest = newest_runs(repository, 0)
    open_ = [line for line in document.runs if not has_ended(line)]
    some_ended = rest.runs or len(open_) < len(document.runs)
    landable, onto = _landable(repository) if some_ended else ((), "")
    folder = repository.worktree / tracker_folder(repository.worktree)
    ready, problem = _ready(repository, folder) if folder.is_dir() else ((), "")
    has_commit = repository.resolve("HEAD") is not None
    own, uncommitted, config_problem = _own_file(repository, has_commit=has_commit)
    return Standing(
        has_commit=has_commit,
        configured=own or (folders.config_folder(os.environ) / "config.toml").is_file(),
        uncommitted=uncommitted,
        config_problem=config_problem,
        runs=document,
        driven=tuple(line for line in open_ if line.live),
        waiting=tuple(line for line in open_ if not line.live),
        landable=landable,
        onto=onto,
        ready=ready,
        has_issues=folder.is_dir(),
        problem=problem,
    )


def _ready(repository: Repository, folder: Path) -> tuple[tuple[str, ...] | None, str]:
    """Return the issues that are ready; None, and why, where the tracker cannot be read."""
    tracker = Tracker(FolderSource(folder))
    try:
        claimed = claims_of(repository.worktree)
        return tuple(issue.id for issue in tracker.ready() if issue.id not in claimed), ""
    except TrackerError as error:
        return None, f"{folder.name}: {error.message}"


def _own_file(repository: Repository, *, has_commit: bool) -> tuple[bool, str, str]:
    """Return whether the repository has a file of ours, its name where git does not have it, why it cannot be read."""
    try:
        found = repository_file(repository.worktree, lambda _: None)
    except UserError as error:
        return True, "", error.message
    if found is None:
        return False, "", ""
    tracked = has_commit and repository.resolve(f"HEAD:{found.name}") is not None
    return True, "" if tracked else found.name, ""


def _landable(repository: Repository) -> tuple[tuple[str, ...], str]:
    from pipeline.service.land_choice import chosen_runs  # noqa: PLC0415  (heavy; only where a run has ended)

    try:
        choice = chosen_runs(repository, (), None)
    except UserError:  # several bases, or a base that is gone: `land` says which
        return (), ""
    return tuple(each.name for each in choice.candidates), choice.onto
