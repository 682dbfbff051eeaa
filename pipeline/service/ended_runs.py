"""Keeps an index of runs that have ended: their lines in `runs`, for one folder of runs.

A run that has ended stays as it is, so its line is kept beside what the file system says of its journal: one look at
that, and nothing is opened. The index may be thrown away: what is not in it, or does not fit, is read again.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

from pipeline.outcomes import FINAL, Outcome, Reason
from pipeline.policy.characters import as_utf8
from pipeline.service.runs_document import RECORDS, RunLine
from pipeline.service.text_cache import TICK_NS, keep_text, kept_text

if TYPE_CHECKING:
    from pathlib import Path

_KIND: Final = "ended"
_MOST: Final = 200
_KNOWN: Final = frozenset(
    {
        *("name", "worktree", "live", "status", "outcome", "reason", "age_s"),
        *("problem", "gate", "gate_place", "queued", "not_before"),
    }
)
"""What of a line follows from its place, or is the same of all runs that have ended."""
_FIELDS: Final = tuple(field.name for field in fields(RunLine) if field.name not in _KNOWN)
_TAKEN: Final = tuple(map(_FIELDS.index, ("driven_s", "cost_usd", "cost_known_usd")))
_OUTCOMES: Final = {one.value: one for one in Outcome}
_REASONS: Final = {one.value: one for one in Reason}

Facts = list[int]
"""What lstat says of a journal: when it was changed, its size, which file it is."""
Row = tuple[Facts, float, str, str, list[object]]
"""Facts, when the run began in seconds since the epoch, outcome, reason, the other fields."""


class EndedRuns:
    """The lines of the ended runs of one folder, as far as they are known.

    Args:
        folder: `.workflow` of a worktree.
        now: What ages are counted to.
    """

    def __init__(self, folder: Path, now: datetime) -> None:
        self.folder = folder
        self._folder = str(folder)
        self._now = now.timestamp()
        self._began = time.time_ns()
        self._changed = False
        self._rows: dict[str, Row] = {}
        text = kept_text(_KIND, self._folder)
        with suppress(ValueError):
            rows: object = json.loads(text or "{}")
            self._rows = cast("dict[str, Row]", rows) if isinstance(rows, dict) else {}
        self._of_all: dict[str, object] = {
            "worktree": as_utf8(str(folder.parent)),
            "live": False,
            **dict.fromkeys(("problem", "gate", "gate_place", "not_before")),
            "queued": False,
        }

    def began(self, name: str) -> float | None:
        """Return when a run began, in seconds since the epoch; None where its line is to be read."""
        try:
            facts, began, _, _, said = self._rows[name]
            return began if len(said) == len(_FIELDS) and facts == self._facts(name) else None
        except (KeyError, TypeError, ValueError):  # it is not there, or somebody has spoilt it
            return None

    def taken(self, name: str) -> tuple[int | None, float | None, float | None]:
        """Return of a run with a known beginning what its line has as `driven_s`, `cost_usd`, `cost_known_usd`."""
        said = self._rows[name][-1]
        return tuple(said[at] for at in _TAKEN)  # pyright: ignore[reportReturnType]  (three of the row's values)

    def line(self, name: str) -> RunLine | None:
        """Return the line of a run; None where it is to be read. There may be ten thousand of them."""
        try:
            row = self._rows.get(name)
            if row is None or row[0] != self._facts(name):
                return None
            _, began, outcome, reason, said = row
            told = self._of_all.copy()
            told.update(zip(_FIELDS, said, strict=True))
            told["name"], told["status"], told["outcome"] = name, outcome, _OUTCOMES[outcome]
            told["reason"], told["age_s"] = _REASONS.get(reason), max(int(self._now - began), 0)
        except (TypeError, ValueError, KeyError):  # somebody has spoilt it
            return None
        line = object.__new__(RunLine)  # its own way of being made takes four times as long
        object.__setattr__(line, "__dict__", told)
        return line

    def add(self, name: str, line: RunLine) -> None:
        """Keep the line of a run that was read now, if it has ended."""
        facts = self._facts(name)
        if facts is None or line.live or line.problem is not None or not has_ended(line) or line.started_at is None:
            return
        if facts[0] >= self._began - TICK_NS:  # what is so new may change, and look the same
            return
        began = datetime.fromisoformat(line.started_at).astimezone(UTC).timestamp()
        reason = line.reason.value if line.reason is not None else ""
        self._rows[name] = (facts, began, line.status, reason, [getattr(line, field) for field in _FIELDS])
        self._changed = True

    def keep(self, names: list[str]) -> None:
        """Write the index down if it is another one, for the runs that there are."""
        if self._changed or len(self._rows) > len(names):
            there = set(names)
            rows = {name: row for name, row in self._rows.items() if name in there}
            keep_text(_KIND, self._folder, json.dumps(rows, separators=(",", ":")), (), began=self._began, most=_MOST)

    def _facts(self, name: str) -> Facts | None:
        """Return what lstat says of the journal of a run, None where there is none."""
        try:
            of = os.lstat(f"{self._folder}/{name}/{RECORDS[-1]}")
        except OSError:
            return None
        return [of.st_ctime_ns, of.st_size, of.st_ino]


def has_ended(line: RunLine) -> bool:
    """Return whether a run stands so that it can never go on."""
    return line.outcome in FINAL or line.reason is Reason.ABANDONED
