"""Defines what `runs` tells of each run; a line follows from run.json and the journal alone."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, cast

from pipeline.outcomes import Outcome, Reason  # noqa: TC001  (schemas are made of it)

RECORDS: Final = ("run.json", "journal.jsonl")
"""What a line follows from."""


@dataclass(frozen=True, kw_only=True)
class RunLine:
    """One run in a list. `problem` says why it cannot be read; the facts that it hides are null then.

    `queued`: it was answered, and no process has driven it since; it may be driven by now (`live`).
    `driven_s` is how long processes drove it, without what it waited for a person. `cost_usd` and `tokens` are null
    unless every dispatch that asked a model says them; `cost_known_usd` is what is known, null where none was asked.
    `landed` is the branch that `land` put it on. `not_before` is when the limit of an account ends that the run waits
    for or is parked by. `removed`: its folder is gone, its ref has the record, and `worktree` is the name in that ref.
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
    queued: bool = False
    landed: str | None = None
    not_before: str | None = None
    removed: bool = False


@dataclass(frozen=True, kw_only=True)
class RunsDocument:
    """What `runs --json` prints, the newest run first, of all worktrees of the repository."""

    schema: Literal["redfirst.runs/1"] = "redfirst.runs/1"
    ok: Literal[True] = True
    runs: tuple[RunLine, ...]


@dataclass(frozen=True)
class Rest:
    """What the runs took together that a list leaves out: the oldest of those that have ended.

    `cost_usd` is what is known; `is_whole` says that nothing of it is unknown.
    """

    runs: int = 0
    driven_s: int = 0
    cost_usd: float | None = None
    is_whole: bool = True


def as_json(document: RunsDocument) -> dict[str, Any]:
    """Return the document as `runs --json` prints it."""
    return cast("dict[str, Any]", json.loads(json.dumps(asdict(document))))
