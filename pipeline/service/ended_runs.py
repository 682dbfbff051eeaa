"""Keeps an index of runs that have ended: their lines in `runs`.

A run that has ended stays as it is, so its line is kept beside what tells that it is the same: what the file system
says of its journal, or the object of its ref. Nothing of the run is opened then. The index may be thrown away: what is
not in it, or does not fit, is read again.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, fields
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from pipeline import VERSION
from pipeline.config.folders import state_folder
from pipeline.outcomes import FINAL, Outcome, Reason
from pipeline.service.run_line import RECORDS, RunLine

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

TICK_NS: Final = 20_000_000
"""What changes twice within a tick of the file system's clock may look the same: what is so new is not kept."""
_MOST: Final = 200
_FORM: Final = [VERSION, *(field.name for field in fields(RunLine))]
"""An index of another form is made anew."""

Facts = list[int | str]
"""What tells that a run is the same as it was."""


class RunIndex:
    """The lines of ended runs, as far as they are known.

    Args:
        of: What it is an index of: `.workflow` of a worktree, or the refs of a repository.
    """

    def __init__(self, of: Path) -> None:
        digest = blake2b(os.fsencode(of), digest_size=16).hexdigest()
        self._place = state_folder(os.environ) / "runs" / f"{digest}.json"
        self._changed = False
        self._rows: dict[str, Any] = {}
        with suppress(OSError, ValueError, LookupError, TypeError):  # it is not there, or somebody has spoilt it
            kept = json.loads(self._place.read_bytes())
            self._rows = {**kept["runs"]} if kept["form"] == _FORM else {}

    def line(self, name: str, facts: Facts | None) -> RunLine | None:
        """Return the line of a run with these facts, None where it is to be read."""
        try:
            known, line = self._rows[name]
            if facts is None or known != facts:
                return None
            told: dict[str, Any] = {**line, "outcome": Outcome(line["outcome"]), "reason": None}
            told |= {"reason": Reason(line["reason"])} if line["reason"] else {}
            return RunLine(**told)
        except (LookupError, TypeError, ValueError):  # it is not there, or somebody has spoilt it
            return None

    def add(self, name: str, facts: Facts | None, line: RunLine) -> None:
        """Keep the line of a run that was read now, if it has ended."""
        if facts is not None and not line.live and line.problem is None and has_ended(line):
            self._rows[name] = (facts, asdict(line))
            self._changed = True

    def keep(self, names: Collection[str]) -> None:
        """Write the index down if it is another one, for the runs that there are; a disk that is full costs nothing."""
        there = frozenset(names)
        if not self._changed and self._rows.keys() <= there:
            return
        rows = {name: row for name, row in self._rows.items() if name in there}
        aside = self._place.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            aside.write_text(json.dumps({"form": _FORM, "runs": rows}, separators=(",", ":")), encoding="utf-8")
            aside.chmod(0o600)
            aside.replace(self._place)
            older = sorted(self._place.parent.glob("*.json"), key=lambda one: one.stat().st_mtime_ns)
            for one in older[:-_MOST]:
                one.unlink()


def facts_of(folder: Path) -> Facts | None:
    """Return what lstat says of a run's journal, None where there is none, or it may still change and look the same."""
    try:
        of = os.lstat(folder / RECORDS[-1])
    except OSError:
        return None
    return None if of.st_ctime_ns >= time.time_ns() - TICK_NS else [of.st_ctime_ns, of.st_size, of.st_ino]


def has_ended(line: RunLine) -> bool:
    """Return whether a run stands so that it can never go on."""
    return line.outcome in FINAL or line.reason is Reason.ABANDONED
