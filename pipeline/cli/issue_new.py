"""`redfirst issue new` and `redfirst issue edit`: an issue is written, in the user's editor where that is wanted."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from pipeline.cli.editor import edit as open_editor
from pipeline.cli.editor import require_editor
from pipeline.cli.issue_place import IssueId, Root, folder_of, say_written, user_errors
from pipeline.cli.text import print_text
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.policy.characters import visible
from todo import (
    FolderSource,
    MappingSource,
    NewIssue,
    Tracker,
    TrackerError,
    checked_id,
    file_name,
    lint,
    write_edits,
)

_TEMPLATE: Final = """<!-- What is wrong or missing, and why it matters. -->

## Acceptance criteria

<!-- One line for each result that a test can show: - [ ] RESULT -->
"""


def new(
    title: Annotated[str, typer.Option(metavar="TEXT", help="One line.")],
    body: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="The text. - reads stdin. Default: a template.")
    ] = None,
    edit: Annotated[bool, typer.Option("--edit", help="Open it in $VISUAL or $EDITOR before it is filed.")] = False,
    issue_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Default: the next number of the most used prefix.")
    ] = None,
    parent: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="File it as a sub-issue. Its id is PARENT.1, PARENT.2 and so on.",
        ),
    ] = None,
    category: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The heading of README.md to list it under.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="May be repeated.")] = None,
    root: Root = None,
) -> None:
    """File a new issue and print its id.

    Examples:
      redfirst issue new --title "Reject empty names"

      redfirst issue new --title "Reject empty names" --edit

      redfirst issue new --title "Clean up" --parent GAL-39 --label tech-debt
    """
    if issue_id is not None and parent is not None:
        raise UserError("Give --id or --parent, not both: a sub-issue gets its id from its parent.", Reason.USAGE)
    text, labels = _TEMPLATE if body is None else _text_of(body), tuple(label or ())
    folder = folder_of(root)
    if edit:
        require_editor(", or give the text without --edit: --body FILE, or --body - for standard input")
    from pipeline.runs.tracker import first_prefix  # noqa: PLC0415  (heavy; not on the path of --help)

    with user_errors(folder):
        wanted = NewIssue(
            title=title,
            id=issue_id,
            prefix=first_prefix(folder.resolve().parent.name),
            parent=None if parent is None else _tracker(folder).named(parent),
            category=category,
            labels=labels,
            description=text,
        )
        filed, files = _edited(folder, wanted) if edit else _filed(folder, wanted)
    typer.echo(filed)
    said = f"{folder.name}/{file_name(filed)} is filed: commit it, since a run reads what is committed"
    if body is None and not edit:
        said = (
            f"{folder.name}/{file_name(filed)} has a template: fill it in (redfirst issue edit {filed}), then commit it"
        )
    print_text(visible(said), err=True)
    paths = shlex.join(os.path.relpath(folder / name) for name in files)
    print_text(visible(f"  git add -- {paths} && git commit -m {shlex.quote(f'File {filed}')} -- {paths}"), err=True)


def edit_issue(issue_id: IssueId, root: Root = None) -> None:
    """Open an issue in $VISUAL or $EDITOR.

    It says what is wrong with the issue afterwards, with exit code 2.

    Examples:
      redfirst issue edit GAL-39

      redfirst issue edit GAL-39 --dir ../shop
    """
    folder = folder_of(root)
    with user_errors(folder):
        tracker = Tracker(FolderSource(folder))
        issue_id = checked_id(tracker.named(issue_id))
        former = None
        try:
            former = tracker.read(issue_id).title
        except TrackerError:
            if tracker.raw(file_name(issue_id)) is None:
                raise  # one that is there, but broken, is to be mended
    open_editor(folder / file_name(issue_id))
    with user_errors(folder):
        tracker = Tracker(FolderSource(folder))
        found = [problem for problem in lint(tracker) if problem.path == file_name(issue_id)]
        if not found:  # the line that lists it shows its status and title
            write_edits(folder, tracker.set_status(issue_id, tracker.read(issue_id).status, former))
            say_written(folder, issue_id)
            return
    for problem in found:
        place = f"{folder.name}/{problem.path}" + ("" if problem.line is None else f":{problem.line}")
        print_text(visible(f"{place}: {problem.rule}: {problem.message}"), err=True)
    raise typer.Exit(2)


def _tracker(folder: Path) -> Tracker:
    """Return the tracker as it is now; where there is none the first issue makes it."""
    return Tracker(FolderSource(folder) if os.path.lexists(folder) else MappingSource({}))


def _filed(folder: Path, wanted: NewIssue, edited: str | None = None) -> tuple[str, tuple[str, ...]]:
    """File an issue; return its id and the names of the files that were written."""
    filed, edits = _tracker(folder).create(wanted, edited)
    folder.mkdir(exist_ok=True)
    write_edits(folder, edits)
    return filed, tuple(edits)


def _edited(folder: Path, wanted: NewIssue) -> tuple[str, tuple[str, ...]]:
    """File what a person made of the draft; it is kept where it cannot be filed."""
    issue_id, text = _tracker(folder).draft(wanted)
    place = Path(tempfile.mkdtemp(prefix="redfirst-issue-"))
    path = place / file_name(issue_id)
    path.write_text(text, encoding="utf-8")
    try:
        open_editor(path)
        filed = _filed(
            folder, replace(wanted, id=issue_id), _written(path, "" if wanted.description != _TEMPLATE else text)
        )
    except BaseException:
        if path.exists() and path.read_bytes() == text.encode():
            path.unlink()
        with contextlib.suppress(OSError):
            place.rmdir()  # what an editor keeps beside a file may be all that is left of a text
        if place.exists():
            kept = path if path.exists() else place
            print_text(visible(f"Nothing was filed. Your text is kept in {kept}"), err=True)
        raise
    shutil.rmtree(place, ignore_errors=True)
    return filed


def _written(path: Path, template: str) -> str:
    try:
        written = path.read_bytes().decode()
    except FileNotFoundError:
        raise UserError(f"Nothing was filed: the editor left no {path.name}.", Reason.USAGE) from None
    except UnicodeDecodeError:
        raise UserError(f"Nothing was filed: {path} is not UTF-8.", Reason.USAGE, path=str(path)) from None
    if written == template:
        raise UserError("Nothing was filed: the template is as it was.", Reason.USAGE)
    return written


def next_id(folder: Path) -> str:
    """Return the id that the next issue gets.

    Raises:
        UserError: the tracker is broken.
    """
    from pipeline.runs.tracker import first_prefix  # noqa: PLC0415  (heavy; not on the path of --help)

    with user_errors(folder):
        return _tracker(folder).draft(NewIssue(title="TITLE", prefix=first_prefix(folder.resolve().parent.name)))[0]


def _text_of(place: str) -> str:
    try:
        return (sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()).decode()
    except OSError as error:
        raise UserError(f"--body {place} cannot be read: {error.strerror}.", Reason.USAGE, path=place) from None
    except UnicodeDecodeError:
        raise UserError(f"--body {place} is not UTF-8.", Reason.USAGE, path=place) from None
