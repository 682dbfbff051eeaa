"""Reads the runs whose folders are gone from their refs: a worktree was removed as advised, or `gc` took the record.

A run that has not ended is not among them: whoever holds its claim is told as `gone`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.git import GitError
from pipeline.runs.records import ARTIFACT_LIMIT
from pipeline.runs.store import RUN_REFS, key_of_run
from pipeline.scratch import scratch_folder
from pipeline.service.ended_runs import RunIndex, has_ended
from pipeline.service.run_line import aged, line_from
from pipeline.service.runs_document import RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pipeline.git import Repository
    from pipeline.runs.roster import Roster
    from pipeline.service.runs_document import RunLine

_READ: Final = frozenset({*RECORDS, "recipe.json", "result.json"})


def removed_runs(roster: Roster, now: datetime) -> Iterator[RunLine]:
    """Yield the lines of ended runs that only a ref has."""
    repository = roster.repository
    there = {key_of_run(run.folder) for run in roster.runs}
    index = RunIndex(repository.common_dir)
    refs = {ref.removeprefix(RUN_REFS): oid for ref, oid in repository.refs(RUN_REFS).items()}
    for key in refs.keys() - there:
        line = index.line(key, [refs[key]])
        if line is None and (line := _read(repository, key, refs[key])) is not None:
            index.add(key, [refs[key]], line)
        if line is not None and has_ended(line):
            yield aged(line, now)
    index.keep(refs)


def _read(repository: Repository, key: str, oid: str) -> RunLine | None:
    """Return the line of a run as its ref has it, None where that has no record of it."""
    worktree, _, name = key.partition("/")
    try:
        with scratch_folder("record") as place:
            for entry in repository.entries(oid, "run"):
                path = place / worktree / ".workflow" / name / entry.path.removeprefix("run/")
                content = repository.blob(entry.oid, ARTIFACT_LIMIT) if path.name in _READ else None
                if content is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
            line = line_from(place / worktree / ".workflow" / name)
    except (UserError, GitError, OSError, ValueError):
        return None
    return replace(line, worktree=worktree, removed=True)
