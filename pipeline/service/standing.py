"""Tells where somebody stands in a repository: runs that go on, wait or may land, and which issues are ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.service.ended_runs import has_ended
from pipeline.service.issue_records import FOLDER, claims_of
from pipeline.service.land_choice import chosen_runs
from pipeline.service.run_list import newest_runs
from todo import FolderSource, Tracker, TrackerError

if TYPE_CHECKING:
    from pipeline.git import Repository
    from pipeline.service.runs_document import RunLine


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What there is to do in a repository.

    Attributes:
        driven: Runs that a process drives.
        waiting: Runs that have not ended and that no process drives: a person has to answer, or to resume.
        landable: Finished runs that are not on their base, and `onto` that base; none where they have several bases.
        ready: Ids of the issues that can be worked on; None where the tracker cannot be read, `problem` says why.
        has_issues: Whether there is a tracker.
    """

    driven: tuple[RunLine, ...] = ()
    waiting: tuple[RunLine, ...] = ()
    landable: tuple[str, ...] = ()
    onto: str = ""
    ready: tuple[str, ...] | None = ()
    has_issues: bool = True
    problem: str = ""


def standing(repository: Repository) -> Standing:
    """Return where somebody stands in this repository; nothing is written."""
    document, _ = newest_runs(repository, 0)
    open_ = [line for line in document.runs if not has_ended(line)]
    landable, onto = _landable(repository)
    folder = repository.worktree / FOLDER
    ready: tuple[str, ...] | None = ()
    problem = ""
    if folder.is_dir():
        try:
            claimed = claims_of(repository.worktree)
            ready = tuple(issue.id for issue in Tracker(FolderSource(folder)).ready() if issue.id not in claimed)
        except TrackerError as error:
            ready, problem = None, f"{FOLDER}: {error.message}"
    return Standing(
        driven=tuple(line for line in open_ if line.live),
        waiting=tuple(line for line in open_ if not line.live),
        landable=landable,
        onto=onto,
        ready=ready,
        has_issues=folder.is_dir(),
        problem=problem,
    )


def _landable(repository: Repository) -> tuple[tuple[str, ...], str]:
    try:
        choice = chosen_runs(repository, (), None)
    except UserError:  # several bases, or a base that is gone: `land` says which
        return (), ""
    return tuple(each.name for each in choice.candidates), choice.onto
