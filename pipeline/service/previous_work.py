"""Hands a run the earlier one of its issue that did not go onto the base: its patch, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.runs.events import LandingRefused
from pipeline.runs.facts import work_tree
from pipeline.runs.roster import Roster
from pipeline.runs.run import Run

if TYPE_CHECKING:
    from pipeline.git import Repository


def previous_patch(repository: Repository, name: str, issue: str) -> tuple[str, str]:
    """Return what the earlier run is called, and its work as a patch behind the reasons against it.

    Raises:
        UserError: there is no such run, or it is of another issue.
    """
    roster = Roster(repository)
    place = roster.find(name)
    run = Run.load(place.folder, driving=False)
    if run.issue != issue:
        raise UserError(f"--previous: {place.name} is of {run.issue}, not of {issue}.", Reason.USAGE)
    refused = [line.data for line in run.journal.of(LandingRefused)][-1:]
    told = [f"# {run.info.run_id} was not landed on {said.onto}: {said.found.replace('_', ' ')}" for said in refused]
    told += [f"# {why}" for said in refused for text in said.why for why in text.splitlines()]
    patch = repository.patch(run.info.start_tree, work_tree(run))
    return roster.spoken(place.folder), "\n".join([*told, patch])
