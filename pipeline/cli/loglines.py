"""The journal for people: one readable line an event, all at once or as they come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, cast

from pipeline.cli.plain import plain
from pipeline.runs.journal import Journal, Kind, Line
from pipeline.runs.lease import FileLease

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_POLL_S: Final = 0.1
_SECONDS: Final = len("2026-11-20T14:02:07")
_LONGEST: Final = 240


def log_line(line: Line) -> str:
    """Return one event as a line: time (UTC), kind, what."""
    what = plain(_WHAT[line.kind](line))
    if len(what) > _LONGEST:
        what = f"{what[:_LONGEST]} ..."
    return f"{line.at[:_SECONDS].replace('T', ' ')}  {line.kind:<17}  {what}".rstrip()


def follow(folder: Path, emit: Callable[[str], None]) -> None:
    """Hand every line of the run's journal to *emit*, and what is added, until no process drives the run any more.

    Raises:
        UserError: the journal is damaged.
    """
    path = folder / "journal.jsonl"
    shown, size = 0, -1
    while True:
        live = FileLease.is_held(folder)  # asked before the file is read: what its last act wrote is not missed
        now = path.stat().st_size if path.exists() else 0
        if now != size:
            lines = Journal.read(path).lines
            for line in lines[shown:]:
                emit(log_line(line))
            shown, size = len(lines), now
        elif not live:
            return
        time.sleep(_POLL_S)


def _run_started(line: Line) -> str:
    return f"{line.text('run_id')} of {line.text('issue')} from {line.text('start_commit')[:12]}{_box(line)}"


def _dispatch_started(line: Line) -> str:
    task = f", task {line.text('task')}" if line.text("task") else ""
    question = f" ({line.text('question')})" if line.text("question") else ""
    again = f"; asked again: {line.text('reask')}" if line.text("reask") else ""
    asked = f"@{line.text('role')} to {line.text('kind')}{question}{task}, attempt {line.data.get('attempt')}"
    return f"{line.text('dispatch')}: {asked}{again}"


def _dispatch_finished(line: Line) -> str:
    failed = f"{line.text('signal')}: {line.text('complaint')}" if line.text("signal") else "answered"
    return f"{line.text('dispatch')}: {failed}{_cost(line)}"


def _config_changed(line: Line) -> str:
    limits = ", ".join(f"{loop} = {limit}" for loop, limit in sorted(line.inner("limits").items()))
    return limits or line.text("config_hash")[:12]


def _run_resumed(line: Line) -> str:
    was = line.text("was") or "its driver died"
    return f"epoch {line.epoch} on {line.host}, at {line.text('step')} (was: {was}){_box(line)}"


def _commits(line: Line) -> str:
    return ", ".join(commit[:12] for commit in line.texts("commits"))


def _decision(line: Line) -> str:
    task = f" task {line.text('task')}" if line.text("task") else ""
    action = {key: value for key, value in line.inner("action").items() if value}
    do = str(action.pop("do", "?"))
    words = f"{do}({', '.join(f'{key}={value}' for key, value in action.items())})"
    paid = "".join(f", {key} = {count}" for key, count in line.inner("counters").items())
    empty = "".join(f", {loop} exhausted" for loop in line.texts("exhausted"))
    note = line.inner("event").get("note")
    return f"{line.text('step')}{task}: {line.text('signal')} -> {words}{paid}{empty}" + (f": {note}" if note else "")


def _tests(line: Line) -> str:
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(line.inner("outcomes").items())) or "none ran"
    errors = line.texts("collection_errors")
    failed = f", not collected: {', '.join(errors)}" if errors else ""
    state = "" if line.text("state") == "complete" else f" ({line.text('state')})"
    which = "all" if line.data.get("selected") is None else f"{len(line.texts('selected'))} selected"
    return f"{which} over {line.text('tree')[:12]}: {outcomes}{failed}{state}"


def _violations(line: Line) -> list[str]:
    found = line.data.get("violations")
    if not isinstance(found, list):
        return []
    violations = [cast("dict[str, object]", item) for item in cast("list[object]", found) if isinstance(item, dict)]
    return [f"{item.get('path')} ({item.get('rule')}): {item.get('why')}" for item in violations]


def _dropped(line: Line) -> str:
    return f"; dropped {', '.join(line.texts('dropped'))}" if line.texts("dropped") else ""


def _cost(line: Line) -> str:
    cost = line.inner("usage").get("cost_usd")
    return f" ({cost:.2f} USD)" if isinstance(cost, int | float) else ""


def _box(line: Line) -> str:
    facts = line.inner("sandbox")
    return f"; {', '.join(f'{key} {value}' for key, value in sorted(facts.items()))}" if facts else ""


_WHAT: Final[Mapping[Kind, Callable[[Line], str]]] = {
    "run_started": _run_started,
    "claim_taken": lambda line: line.text("issue"),
    "dispatch_started": _dispatch_started,
    "dispatch_finished": _dispatch_finished,
    "tests_ran": _tests,
    "artifact_written": lambda line: line.text("path"),
    "tracker_written": lambda line: ", ".join(f"TODO/{name}" for name in line.inner("files")),
    "change_admitted": lambda line: (
        f"{line.text('dispatch')}: {', '.join(line.texts('paths')) or 'no change'}{_dropped(line)}"
    ),
    "change_rejected": lambda line: f"{line.text('dispatch')}: {'; '.join(_violations(line))}{_dropped(line)}",
    "decision": _decision,
    "task_done": lambda line: f"task {line.text('task')}: {line.text('status')}",
    "gate_opened": lambda line: f"{line.text('gate')}: waits for a person",
    "gate_answered": lambda line: f"{line.text('gate')}: {line.text('answer')}",
    "config_changed": _config_changed,
    "run_parked": lambda line: f"{line.text('outcome')}: {line.text('reason')}",
    "run_resumed": _run_resumed,
    "publish_intended": _commits,
    "published": lambda line: f"{line.text('branch')}: {_commits(line)}",
    "run_finished": lambda line: f"{line.text('outcome')}: {line.text('reason')}",
}
