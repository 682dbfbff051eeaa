"""Makes a patch of a run's work from the trees that its ref keeps alive."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.app.documents import DiffFile, Document
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo import GitError, Repository
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import find_run, seen_from
from pipeline.run.store import run_ref
from pipeline.run.summary_facts import work_tree


class DiffDocument(Document):
    """What `diff --json` prints. `old` and `new` are trees; `patch` is null with `--stat`."""

    schema_: Literal["redfirst.diff/1"] = Field(default="redfirst.diff/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    task: str | None
    old: str
    new: str
    files: tuple[DiffFile, ...]
    patch: str | None


def diff_run(repository: Repository, name: str, *, task: str | None, stat: bool) -> DiffDocument:
    """Return the work of a run, or of one of its tasks, against where it began.

    Raises:
        UserError: no such run or task, or git has removed the objects.
    """
    folder = find_run(repository, name)
    repository = seen_from(repository, folder)
    run = Run.load(folder, driving=False)
    old, new = (run.state.start, work_tree(run)) if task is None else _task_trees(run, task)
    missing = [tree for tree in (old, new) if repository.resolve(f"{tree}^{{tree}}") is None]
    if missing:
        raise _gone(repository, run, missing[0])
    try:
        files = tuple(map(DiffFile.model_validate, repository.numstat(old, new)))
        patch = None if stat else repository.patch(old, new)
    except GitError as error:
        raise _gone(repository, run, error.stderr.strip()) from error
    return DiffDocument(run_id=run.info.run_id, task=task, old=old, new=new, files=files, patch=patch)


def _task_trees(run: Run, task: str) -> tuple[str, str]:
    found = run.state.tasks.get(task)
    if found is None:
        known = ", ".join(run.state.tasks) or "none yet"
        raise UserError(
            f"{run.info.run_id} has no task {task!r} (tasks: {known}).",
            Reason.USAGE,
            details={"tasks": list(run.state.tasks)},
            actions=(f"redfirst show {run.info.run_id}",),
        )
    start = found.start or run.state.head
    return start, found.candidate or found.red or found.tests or found.stubs or start


def _gone(repository: Repository, run: Run, what: str) -> UserError:
    ref = run_ref(repository, run.info.run_id)
    there = "is there, but does not hold them" if repository.resolve(ref) else "is gone"
    return UserError(
        f"git no longer has the objects of {run.info.run_id} ({what}): its ref {ref} {there}. Reports, evidence and "
        f"journal are still in {run.folder}.",
        Reason.USAGE,
        path=ref,
        actions=(f"redfirst show {run.info.run_id}", f"redfirst explain {run.info.run_id}"),
    )
