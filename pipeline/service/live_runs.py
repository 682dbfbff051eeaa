"""Tells what the live runs of a repository are about to change and what they cost today, for whoever begins more."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from pipeline.engine.journal import JOURNAL, stamp
from pipeline.errors import UserError
from pipeline.runs.events import DispatchFinished
from pipeline.runs.lease import FileLease
from pipeline.runs.plans import planned
from pipeline.runs.roster import Roster
from pipeline.runs.run import Run
from pipeline.runs.tail import Tail

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pipeline.git import Repository


def live_runs(repository: Repository) -> list[Path]:
    """Return the folders of the runs that are driven now."""
    return [run.folder for run in Roster(repository).runs if FileLease.is_held(run.folder)]


def planned_paths(folder: Path) -> frozenset[str]:
    """Return the paths that the plan of a run names, nothing where it has none or cannot be read."""
    try:
        return frozenset(change.path for change in planned(Run.load(folder, driving=False)).files)
    except (LookupError, UserError, OSError, ValueError):
        return frozenset()


def spent_today(repository: Repository, now: datetime) -> float:
    """Return what the models of all runs are known to have cost since midnight (UTC), in USD."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since, total = stamp(midnight), 0.0
    for run in Roster(repository).runs:
        try:
            if (run.folder / JOURNAL).stat().st_mtime < midnight.timestamp():
                continue
            lines = Tail(run.folder).lines()
        except (UserError, OSError):  # `runs` says what is wrong with it
            continue
        ended = (line.data for line in lines if line.at >= since and isinstance(line.data, DispatchFinished))
        total += sum(one.usage.cost_usd or 0 for one in ended)
    return total
