"""Reads what a commit claims in its trailers, and its evidence: in the run's ref or in `.workflow`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from pipeline.run.records import RECORD_LIMIT, read_record
from pipeline.run.store import WORKFLOW, run_names, runs_folder
from pipeline.testing.measure.task_evidence import TaskEvidence, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.repo import Repository

RUN_ID: Final = "Run-Id"
FETCH: Final = "git fetch REMOTE 'refs/redfirst/runs/*:refs/redfirst/runs/*'"
"""What brings the evidence of others, once they have pushed it."""
_MOST_REFS: Final = 100
"""Of one run's name that are looked into: one for each worktree that had a run of it; anybody may push more."""
_MOST_BYTES: Final = RECORD_LIMIT
"""Of evidence that is parsed for one commit, all refs together."""
_TOLD: Final = 10
_KEYS: Final = frozenset({"Issue", RUN_ID, "Task", "Red-Evidence", "Red-Base", "Task-File"})
_RUN_NAME: Final = re.compile(r"run-[A-Za-z0-9._@-]+")
_TASK_NAME: Final = re.compile(r"[A-Za-z0-9-]+")
_TASK_FILE: Final = re.compile(r"task-(?P<task>[A-Za-z0-9-]+)\.md")
_RUN_REF: Final = re.compile(r"refs/(?:.+/)?redfirst/runs/(?:[^/]+/)?(?P<run>run-[A-Za-z0-9._@-]+)")
_DIGEST: Final = re.compile(r"sha256:(?P<hex>[0-9a-f]{64})")


@dataclass(frozen=True)
class Claim:
    """The trailers of a commit that says that it has evidence."""

    issue: str | None
    run_id: str
    task: str
    digest: str
    red_base: str | None
    task_file: str | None = None


@dataclass(frozen=True)
class NoClaim:
    """A commit that claims no evidence, or in words that cannot be read (`broken`)."""

    why: str
    run_id: str | None = None
    broken: bool = False
    of_recipe: bool = False
    """Whether a run that works on no issue made it: what it claims is that nothing is lost."""


def claim_of(repository: Repository, commit: str) -> Claim | NoClaim:
    """Return what a commit's trailers claim."""
    found: dict[str, str] = {}
    for key, value in repository.trailers(commit):
        if key in _KEYS and found.setdefault(key, value) != value:
            why = f"its trailers name two values of {key}: several commits were made one"
            return NoClaim(why, found.get(RUN_ID), broken=True)
    run_id, task, evidence = (found.get(key) for key in (RUN_ID, "Task", "Red-Evidence"))
    if run_id is None:
        return NoClaim("it has no Run-Id trailer: no run of redfirst made it, or its message was rewritten")
    if task is None and evidence is None and "Issue" not in found:
        why = "it is of a recipe's run, which has no test of its own to show: measured is that nothing is lost"
        return NoClaim(why, run_id, of_recipe=True)
    if task is None and evidence is None:
        return NoClaim("it is a commit of a run without a task of its own", run_id)
    if task is None or evidence is None:
        return NoClaim(f"it has no {'Task' if task is None else 'Red-Evidence'} trailer", run_id, broken=True)
    digest = _DIGEST.fullmatch(evidence)
    if digest is None or not _RUN_NAME.fullmatch(run_id) or not _TASK_NAME.fullmatch(task):
        return NoClaim("its trailers Run-Id, Task and Red-Evidence are not what a run writes", run_id, broken=True)
    return Claim(found.get("Issue"), run_id, task, digest["hex"], found.get("Red-Base"), found.get("Task-File"))


@dataclass(frozen=True)
class Store:
    """One place that holds the folder of a run."""

    where: str
    repository: Repository
    tree: str | None
    folder: Path | None

    def object_of(self, name: str) -> str | None:
        """Return the object that holds an artifact, None where it is a file or there is none."""
        return self.repository.resolve(f"{self.tree}:run/{name}") if self.tree is not None else None

    def read(self, name: str) -> bytes | None:
        """Return the content of an artifact, None where there is none, or something that no run writes."""
        try:
            if self.tree is not None:
                return self.repository.blob(f"{self.tree}:run/{name}", RECORD_LIMIT)
            return read_record(self.folder, name) if self.folder is not None else None
        except (OSError, ValueError):
            return None

    def tasks(self) -> tuple[str, ...]:
        """Return the ids of all tasks that the run ever had."""
        if self.tree is not None:
            names = self.repository.names(self.tree, "run")
        else:
            names = [path.name for path in self.folder.iterdir()] if self.folder is not None else []
        return tuple(sorted(match["task"] for match in map(_TASK_FILE.fullmatch, names) if match is not None))


def stores(repository: Repository, run_id: str) -> Iterator[Store]:
    """Yield the places that hold a run of this name: pushed and fetched refs of any worktree, then the folder here."""
    seen: set[str] = set()
    for ref, oid in sorted(repository.refs("refs/").items()):
        match = _RUN_REF.fullmatch(ref)
        if match is not None and match["run"] == run_id and oid not in seen:
            seen.add(oid)
            yield Store(ref, repository, oid, None)
    folder = runs_folder(repository) / run_id
    if (folder / "run.json").is_file():
        yield Store(f"{WORKFLOW}/{run_id}", repository, None, folder)


def known_runs(repository: Repository) -> frozenset[str]:
    """Return the names of the runs of which something is kept here."""
    refs = (_RUN_REF.fullmatch(ref) for ref in repository.refs("refs/"))
    return frozenset({*(match["run"] for match in refs if match is not None), *run_names(repository)})


@dataclass(frozen=True)
class Kept:
    """The evidence that a trailer names, and where it was found."""

    evidence: TaskEvidence
    store: Store


@dataclass(frozen=True)
class NotKept:
    """There is no such evidence; `others` are the places that hold something else under its name.

    `left_out` are those that were not looked into, since there are too many of them, or too much is in them.
    """

    others: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def kept_evidence(repository: Repository, claim: Claim) -> Kept | NotKept:
    """Return the evidence whose digest the trailer names; two worktrees may both have a run of that name."""
    name = name_of(claim.task)
    others: list[str] = []
    left_out: list[str] = []
    seen: set[str] = set()
    room = _MOST_BYTES
    for number, store in enumerate(stores(repository, claim.run_id)):
        if store.tree is not None and (number >= _MOST_REFS or room <= 0):
            left_out.append(store.where)
            continue
        oid = store.object_of(name)
        content = store.read(name) if oid not in seen else None
        if content is None:
            continue
        seen |= {oid} if oid is not None else set()
        room -= len(content)
        try:
            evidence = TaskEvidence.model_validate_json(content)
        except ValidationError:
            others.append(store.where)
            continue
        tasks = {evidence.task} if evidence.ledger is None else {evidence.task, evidence.ledger.task}
        if evidence.red_digest() == claim.digest and tasks == {claim.task}:
            return Kept(evidence, store)
        others.append(store.where)
    return NotKept(tuple(others), tuple(left_out))


def not_kept(repository: Repository, claim: Claim) -> str:
    """Return what is missing of a claim's evidence: the run here, or the task in it; fetching helps the first only."""
    kept = list(islice(stores(repository, claim.run_id), _TOLD))
    if kept and all(claim.task not in store.tasks() for store in kept):
        return f"{claim.run_id} has no task {claim.task}: {kept[0].where} has {', '.join(kept[0].tasks()) or 'none'}"
    return f"no evidence of task {claim.task} of {claim.run_id} is kept here; try: {FETCH}"
