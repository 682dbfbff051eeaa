"""What `runs` tells of each run, and where the lines of runs are kept that have not changed since they were read.

A run's line follows from its run.json and its journal: as long as lstat says the same of both, the line is the same,
and nothing that reads journals has to be loaded. Who changes a file cannot set its change time back (`runs/seal.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, cast

from pipeline import VERSION
from pipeline.outcomes import Outcome, Reason

if TYPE_CHECKING:
    from pathlib import Path

_RECORDS = ("run.json", "journal.jsonl")


@dataclass(frozen=True, kw_only=True)
class RunLine:
    """One run in a list. `problem` says why it cannot be read; the facts that it hides are null then.

    `driven_s` is how long processes drove it, without what it waited for a person. `cost_usd` and `tokens` are null
    unless every dispatch that asked a model says them; `cost_known_usd` is what is known, null where none was asked.
    """

    name: str
    worktree: str
    issue: str | None
    live: bool
    status: str
    outcome: Outcome | None
    reason: Reason | None
    step: str | None
    phase: str | None
    task: str | None
    tasks_done: int
    tasks_total: int
    dispatches: int
    started_at: str | None
    last_at: str | None
    age_s: int | None
    driven_s: int | None = None
    cost_usd: float | None = None
    cost_known_usd: float | None = None
    tokens: int | None = None
    problem: str | None
    gate: str | None = None
    gate_place: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunsDocument:
    """What `runs --json` prints, the newest run first, of all worktrees of the repository."""

    schema: Literal["redfirst.runs/1"] = "redfirst.runs/1"
    ok: Literal[True] = True
    runs: tuple[RunLine, ...]


class KeptLines:
    """Lines of runs in a file of the user's state. It may be lost, or not be written, at any time."""

    def __init__(self, state: Path, common_dir: Path) -> None:
        self._file = state / "lists" / f"{hashlib.sha256(os.fsencode(common_dir)).hexdigest()[:16]}.json"
        self._shape = [VERSION, *(field.name for field in fields(RunLine))]
        self._kept = self._read()
        self._changed = False

    def _read(self) -> dict[str, Any]:
        try:
            said = json.loads(self._file.read_bytes())
            if said["shape"] == self._shape:
                return dict(said["lines"])
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            pass
        return {}

    def get(self, folder: Path) -> RunLine | None:
        """Return the line of the run in *folder*, if it is as it was when that line was made."""
        found = self._kept.get(str(folder))
        if found is None or found["facts"] != facts_of(folder):
            return None
        line: dict[str, Any] = dict(found["line"])
        outcome: str | None = line.pop("outcome")
        reason: str | None = line.pop("reason")
        return RunLine(**line, outcome=Outcome(outcome) if outcome else None, reason=Reason(reason) if reason else None)

    def put(self, folder: Path, facts: list[int] | None, line: RunLine) -> None:
        """Keep a line of a run that could be read; *facts* were taken before."""
        if facts is not None and line.problem is None:
            self._kept[str(folder)] = {"facts": facts, "line": asdict(line)}
            self._changed = True

    def save(self) -> None:
        """Write what is new, without the runs whose folder is gone; a disk that does not take it costs nothing."""
        if not self._changed:
            return
        lines = {folder: kept for folder, kept in self._kept.items() if os.path.lexists(folder)}
        text = json.dumps({"shape": self._shape, "lines": lines})
        aside = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            aside.write_text(text, encoding="utf-8")
            aside.replace(self._file)


def facts_of(folder: Path) -> list[int] | None:
    """Return what lstat says of the records of a run; None where one is no plain file."""
    found: list[int] = []
    for name in _RECORDS:
        try:
            said = os.lstat(folder / name)
        except OSError:
            return None
        if not stat.S_ISREG(said.st_mode):
            return None
        found += [said.st_dev, said.st_ino, said.st_size, said.st_mtime_ns, said.st_ctime_ns]
    return found


def as_json(document: RunsDocument) -> dict[str, Any]:
    """Return the document as `runs --json` prints it."""
    return cast("dict[str, Any]", json.loads(json.dumps(asdict(document))))
