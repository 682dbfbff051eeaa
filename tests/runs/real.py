"""Real repositories and runs for tests: git as it is, the machine as it is, time that stands in the text."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kit import copy_repository

from pipeline.matrix.routing.state import Event, NewTask
from pipeline.repo import Entry, Repository, TreeChange
from pipeline.run.files import to_json, write_atomic
from pipeline.run.info import DispatchRecord, DispatchResult, RunInfo
from pipeline.run.run import KeptRun, Run
from pipeline.run.store import workflow_folder
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

BEGAN = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)


def alone(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Keep the configuration of whoever runs the tests out of them."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_", "REDFIRST_"))]:
        monkeypatch.delenv(name)
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *argv: str, stdin: bytes = b"") -> str:
    done = subprocess.run(["git", *argv], cwd=folder, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(errors="surrogateescape").strip()


def make_repository(folder: Path, files: dict[str, str] | None = None) -> Repository:
    """Return a repository with one commit on main, standing on the branch work."""
    copy_repository(folder, files or {"app.py": "one\n"})
    return Repository.find(folder)


def tree_with(repository: Repository, base: str, files: dict[str, str | None]) -> str:
    """Return *base* with these files; None removes one."""
    changes = [
        TreeChange(path, None if text is None else Entry(path, "100644", repository.write_blob(text.encode())))
        for path, text in files.items()
    ]
    return repository.build_tree(base, changes)


def info_of(repository: Repository, name: str, **more: Any) -> RunInfo:
    commit = repository.resolve("HEAD") or ""
    facts: dict[str, Any] = {
        "run_id": name,
        "workflow_version": "0.1.0",
        "workflow_hash": "abcdef0123456789",
        "redfirst_version": "0.1.0",
        "issue": name.removeprefix("run-").partition("@")[0],
        "branch": "work",
        "base_branch": "main",
        "start_commit": commit,
        "start_tree": repository.tree_of(commit),
        "config": {},
        "config_hash": "c",
        "prompts_hash": "p",
        "started_at": "2026-11-20T14:00:00.000Z",
    }
    return RunInfo.model_validate({**facts, **more})


def ticking() -> Callable[[], datetime]:
    """Return a clock that goes on by a second each time it is read."""
    moment = BEGAN

    def clock() -> datetime:
        nonlocal moment
        moment += timedelta(seconds=1)
        return moment

    return clock


def begin(repository: Repository, name: str = "run-GAL-39", **more: Any) -> Run:
    folder = workflow_folder(repository) / name
    sandbox = {"sandbox": "bubblewrap", "network": "none"}
    return Run.create(folder, info_of(repository, name, **more), clock=ticking(), sandbox=sandbox)


def load(run: Run, *, driving: bool = False) -> Run:
    return Run.load(run.folder, driving=driving)


def event(signal: Signal, **facts: Any) -> Event:
    return Event(signal=signal, **facts)


def to_split(run: Run) -> None:
    """Take the run to SPLIT."""
    for signal in (Signal.OK, Signal.CLAIMED, Signal.DRAFTED, Signal.ACCEPTABLE):
        run.decide(event(signal))


def to_first_task(run: Run, *tasks: NewTask) -> None:
    """Take the run to WRITE_TESTS of its first task."""
    to_split(run)
    run.decide(event(Signal.DRAFTED, tasks=tasks or (NewTask(id="1", title="Reject empty names"),)))
    run.decide(event(Signal.ACCEPTABLE))


def start_dispatch(run: Run, role: Role, kind: str, **more: Any) -> DispatchRecord:
    number = max(run.records, default=0) + 1
    step = run.state.trunk.step.value
    facts: dict[str, Any] = {
        "dispatch": f"{number:03}-{step}-{role.value}",
        "number": number,
        "step": step,
        "visit": run.state.trunk.visit,
        "resumes": run.state.resumes,
        "role": role,
        "kind": kind,
        "question": None,
        "task": run.state.current,
        "attempt": 1,
        "reask": None,
        "base_tree": run.state.head,
        "backend": "scripted",
    }
    record = DispatchRecord.model_validate({**facts, **more})
    run.start_dispatch(record)
    return record


def write_result(run: KeptRun[Any, Any, Any], record: DispatchRecord, **more: Any) -> DispatchResult:
    """Write result.json as the dispatcher does; the journal does not know of it yet."""
    facts = {"dispatch": record.dispatch, "base_tree": record.base_tree, "gate": "admitted", **more}
    result = DispatchResult.model_validate(facts)
    write_atomic(
        run.folder / "dispatches" / record.dispatch / "result.json",
        to_json(result.model_dump(mode="json", by_alias=True)),
    )
    return result


def dispatch(run: Run, role: Role, kind: str, *, question: str | None = None, **more: Any) -> str:
    """Carry out one dispatch; return the name of its result."""
    record = start_dispatch(run, role, kind, question=question)
    run.finish_dispatch(write_result(run, record, **more))
    return f"dispatches/{record.dispatch}/result.json"


def journal_lines(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
