"""Finds the tracker of the worktree, and puts its errors into words for the user."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.cli.text import print_text
from pipeline.config.sources import tracker_folder
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.policy.characters import visible
from todo import ErrorKind, TrackerError

if TYPE_CHECKING:
    from collections.abc import Generator

_NEXT: Final = {
    ErrorKind.TRACKER_MISSING: ("redfirst issue new --title TITLE",),
    ErrorKind.TRACKER_INVALID: ("redfirst issue lint",),
    ErrorKind.ISSUE_NOT_FOUND: ("redfirst issue list",),
}

Root = Annotated[
    Path | None,
    typer.Option("--dir", metavar="PATH", help="The repository whose issues are meant. Default: the one you stand in."),
]
IssueId = Annotated[str, typer.Argument(metavar="ID", help="Upper and lower case are the same.")]


@contextmanager
def user_errors(folder: Path) -> Generator[None]:
    """Turn what the tracker in *folder* refuses into the error that `main` renders."""
    try:
        yield
    except TrackerError as error:
        path = folder.name if error.path is None else f"{folder.name}/{error.path}"
        details: dict[str, object] = {} if error.line is None else {"line": error.line}
        actions = _NEXT.get(error.kind, ())
        message = f"{path}: {error.message}" if error.kind is ErrorKind.TRACKER_INVALID else error.message
        raise UserError(message, Reason(error.kind.value), path=path, details=details, actions=actions) from error


def say_written(folder: Path, issue_id: str) -> None:
    """Say on stderr where an issue was changed, and that the change counts once it is committed."""
    path = f"{folder.name}/{issue_id}.md"
    print_text(visible(f"{path} is changed: commit it, since a run reads what is committed"), err=True)


def folder_of(root: Path | None) -> Path:
    """Return the tracker folder of the repository given, else of the one around the working directory."""
    if root is not None:
        return root / tracker_folder(root)
    here = Path.cwd()
    for folder in (here, *here.parents):
        # A linked worktree has a file named .git.
        if (folder / ".git").exists():
            return folder / tracker_folder(folder)
    raise UserError("This is not inside a git repository. Go to one, or name it with --dir.", Reason.USAGE)
