"""Reads the tracker as a run needs it: in git trees for what is published, in the worktree for what is shown.

The status In Progress is written to the user's files at once and put back by hash before anything else happens to them:
what is published is computed from the start tree, never from those files.
"""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pipeline.config.sources import LARGEST, tracker_folder
from pipeline.errors import UserError
from pipeline.matrix.engine.run import sha256_hex
from pipeline.outcomes import Reason
from pipeline.repo import Entry, Repository, TreeChange
from pipeline.run.files import write_atomic
from pipeline.run.journal_kinds import TrackerFile, TrackerWritten
from todo import Edits, ErrorKind, FolderSource, Issue, MappingSource, Status, Tracker, TrackerError

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping
    from pathlib import Path

    from pipeline.run.run import Run
    from pipeline.run.spending import AnyRun

_LONGEST_PREFIX = 10
_NEXT = {
    Reason.TRACKER_MISSING: ("redfirst issue new --title TITLE",),
    Reason.ISSUE_NOT_FOUND: ("redfirst issue list",),
    Reason.USAGE: ("redfirst issue list",),
}


@contextmanager
def as_user_errors(issues: Tracker) -> Generator[None]:
    """Turn what the tracker refuses into the error document's words."""
    try:
        yield
    except TrackerError as error:
        try:
            reason = Reason(error.kind.value)
        except ValueError:
            reason = Reason.USAGE
        where = f"{issues.folder}/{error.path}" if error.path else issues.folder
        line = f" line {error.line}" if error.line else ""
        raise UserError(
            f"{where}{line}: {error.message}", reason, path=where, actions=_NEXT.get(reason, ("redfirst issue lint",))
        ) from error


def first_prefix(repository: str) -> str:
    """Return what the first id begins with in a tracker that has none: the name of the repository's folder."""
    word = re.sub(r"[^A-Z0-9]", "", repository.upper())[:_LONGEST_PREFIX]
    return word if word[:1].isalpha() else "ISSUE"


def named_in(worktree: Path, text: str) -> str:
    """Return the id that *text* means in the user's worktree; *text* itself where no tracker can tell."""
    try:
        return in_worktree(worktree).named(text)
    except TrackerError:
        return text


def in_worktree(worktree: Path) -> Tracker:
    """Return the tracker of the user's worktree."""
    folder = tracker_folder(worktree)
    return Tracker(FolderSource(worktree / folder), folder)


def in_tree(repository: Repository, tree: str) -> Tracker:
    """Return the tracker as it is in a git tree, in the folder that is named there."""
    folder = tracker_folder(repository.worktree, lambda name: repository.blob(f"{tree}:{name}", LARGEST))
    entries = [e for e in repository.entries(tree, f"{folder}/") if e.path.count("/") == 1]
    blobs = repository.blobs(entry.oid for entry in entries)
    contents = {entry.path.removeprefix(f"{folder}/"): blobs[entry.oid] for entry in entries}
    return Tracker(MappingSource(contents), folder)


def read_committed(repository: Repository, commit: str, issue: str, where: str) -> tuple[Tracker, Issue]:
    """Return the tracker of a commit, and the issue as it is in it.

    Raises:
        UserError: there is no such issue, or there is one in the worktree that this commit does not have.
    """
    found = in_tree(repository, repository.tree_of(commit))
    return found, committed_issue(repository, found, issue, where)


def committed_issue(repository: Repository, found: Tracker, issue: str, where: str) -> Issue:
    """Return an issue as it is in the tracker of a commit.

    Args:
        repository: Seen from the worktree that the user stands in.
        found: The tracker where work would begin.
        issue: The issue's id.
        where: The name of that commit, for the user.

    Raises:
        UserError: there is no such issue, or there is one in the worktree that this commit does not have.
    """
    with as_user_errors(found):
        try:
            return found.read(issue)
        except TrackerError as error:
            if error.kind is not ErrorKind.ISSUE_NOT_FOUND or not _lies_in(repository.worktree, issue):
                raise
    path, branch, head = f"{found.folder}/{issue}.md", repository.branch(), repository.resolve("HEAD")
    if head is not None and in_tree(repository, repository.tree_of(head)).raw(f"{issue}.md") is not None:
        raise UserError(
            f"{path} is committed here, but not on {where}, where the work would begin. Merge it there first, or begin "
            "on this branch: --base BRANCH.",
            Reason.ISSUE_NOT_FOUND,
            path=path,
            actions=(f"redfirst run {issue} --worktree --base {shlex.quote(branch)}",) if branch is not None else (),
        )
    raise UserError(
        f"{path} is not committed, and the work would begin at the last commit of {where}. Commit it first.",
        Reason.ISSUE_NOT_FOUND,
        path=path,
        actions=(f"git add {shlex.quote(found.folder)} && git commit -m 'file {issue}'",),
    )


def _lies_in(worktree: Path, issue: str) -> bool:
    with suppress(TrackerError):
        return in_worktree(worktree).raw(f"{issue}.md") is not None
    return False


def tree_with(repository: Repository, tree: str, issues: Tracker, edits: Edits) -> str:
    """Return *tree* with the edits of its tracker; files keep their mode."""
    modes = {entry.path: entry.mode for entry in repository.entries(tree, f"{issues.folder}/")}
    blobs = repository.write_files((f"{issues.folder}/{name}", content) for name, content in edits.items())
    changes = (TreeChange(path, Entry(path, modes.get(path, "100644"), oid)) for path, oid in blobs.items())
    return repository.build_tree(tree, changes)


def show_in_progress(run: AnyRun, worktree: Path, edits: Edits) -> None:
    """Write the edits to the user's files; what was there before is an artifact first, so that it can be put back."""
    files: dict[str, TrackerFile] = {}
    for name, content in edits.items():
        before = edits.before[name] or b""
        run.write_artifact(f"tracker/{name}", before)
        files[name] = TrackerFile(before=sha256_hex(before), after=sha256_hex(content))
    run.journal.append(TrackerWritten(files=files))
    for name, content in edits.items():
        _write_keeping_mode(run, worktree, name, content)


def shown_files(run: AnyRun) -> Mapping[str, tuple[str, str]]:
    """Return the tracker files that the run rewrote in the worktree: name -> sha256 before and after."""
    written = (line.data.files for line in run.journal.of(TrackerWritten))
    return {name: (file.before, file.after) for files in written for name, file in files.items()}


def shown_paths(run: AnyRun, worktree: Path) -> Mapping[str, str]:
    """Return the paths of these files in the worktree, by their names."""
    folder = tracker_folder(worktree)
    return {name: f"{folder}/{name}" for name in shown_files(run)}


def put_back(run: AnyRun, worktree: Path, committed: Collection[str] = ()) -> tuple[str, ...]:
    """Undo `show_in_progress`, file by file, where the file is as we wrote it; return what the user changed since.

    Files that the user has *committed* as they are stay as they are.
    """
    changed: list[str] = []
    issues = in_worktree(worktree)
    for name, (before, after) in shown_files(run).items():
        if name in committed:
            continue
        with as_user_errors(issues):
            now = sha256_hex(_content(worktree, name) or b"")
        if now == after:
            _write_keeping_mode(run, worktree, name, run.read(f"tracker/{name}"))
        elif now != before:
            changed.append(f"{issues.folder}/{name}")
    return tuple(changed)


def set_todo(run: Run, worktree: Path) -> bool:
    """Set the issue to Todo, if it is In Progress, and keep what the user wrote in it; return whether it was.

    A worktree that stands on a branch without the issue has none to set.
    """
    issues = in_worktree(worktree)
    with as_user_errors(issues):
        if _content(worktree, f"{run.issue}.md") is None:
            return False
        if issues.read(run.issue).status is not Status.IN_PROGRESS:
            return False
        for name, content in issues.set_status(run.issue, Status.TODO).items():
            _write_keeping_mode(run, worktree, name, content)
    return True


def _content(worktree: Path, name: str) -> bytes | None:
    """Return the content of a file of the tracker; None where the branch that is checked out has none."""
    folder = worktree / tracker_folder(worktree)
    return FolderSource(folder).read(name) if folder.is_dir() else None


def _write_keeping_mode(run: AnyRun, worktree: Path, name: str, content: bytes) -> None:
    path = worktree / tracker_folder(worktree) / name
    # Staged in the run folder: what a crash leaves beside the user's files would make their tree dirty.
    near = run.folder.stat().st_dev == path.parent.stat().st_dev
    mode = path.stat().st_mode & 0o7777 if path.exists() else 0o644
    write_atomic(path, content, mode=mode, staging=run.folder if near else None, below=worktree)


def show_again(run: AnyRun, worktree: Path) -> None:
    """Write In Progress again after a publication was refused: the run still holds the issue, if it is of one."""
    if run.info.issue is None:
        return
    issues = in_worktree(worktree)
    with as_user_errors(issues):
        edits = issues.set_status(run.info.issue, Status.IN_PROGRESS)
    if edits:
        show_in_progress(run, worktree, edits)
