"""The work of a run as a patch, made from the trees that the run's ref keeps alive (architecture 8)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.git import GitError
from pipeline.outcomes import Reason
from pipeline.runs.reading import work_tree
from pipeline.runs.run import Run
from pipeline.runs.store import find_run, run_ref
from pipeline.service.reading import DiffDocument, DiffFile
from pipeline.terminal import block, colours, paint, plain

if TYPE_CHECKING:
    from pipeline.git import Repository
    from pipeline.terminal import Colour

_COLOURS: Final[tuple[tuple[str, Colour | None], ...]] = (
    ("+++", None), ("---", None), ("+", "green"), ("-", "red"), ("@@", "cyan"),
)  # fmt: skip


def diff_run(repository: Repository, name: str, *, task: str | None, stat: bool) -> DiffDocument:
    """Return the work of a run, or of one of its tasks, against where it began.

    Raises:
        UserError: no such run or task, or git has removed the objects.
    """
    run = Run.load(find_run(repository, name), driving=False)
    old, new = (run.state.start, work_tree(run)) if task is None else _task_trees(run, task)
    missing = [tree for tree in (old, new) if repository.resolve(f"{tree}^{{tree}}") is None]
    if missing:
        raise _gone(repository, run, missing[0])
    try:
        files = tuple(DiffFile(path=f.path, added=f.added, deleted=f.deleted) for f in repository.numstat(old, new))
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


def diff_text(document: DiffDocument) -> str:
    """Return the patch as it is when a program reads it; on a terminal, controls are shown and lines coloured."""
    if document.patch is None:
        return _stat(document)
    if not sys.stdout.isatty():
        return document.patch
    lines = block(document.patch).split("\n")
    return "\n".join(map(_painted, lines)) if colours() else "\n".join(lines)


def _painted(line: str) -> str:
    return paint(line, next((colour for start, colour in _COLOURS if line.startswith(start)), None))


def _stat(document: DiffDocument) -> str:
    names = [plain(file.path) for file in document.files]
    width = max(map(len, names), default=0)
    lines = [f"{name:{width}}  {_counts(file)}" for name, file in zip(names, document.files, strict=True)]
    if lines:
        added = sum(file.added or 0 for file in document.files)
        deleted = sum(file.deleted or 0 for file in document.files)
        lines.append(f"{len(names)} file(s), +{added} -{deleted}")
    return "\n".join(lines)


def _counts(file: DiffFile) -> str:
    return "binary" if file.added is None else f"+{file.added} -{file.deleted}"
