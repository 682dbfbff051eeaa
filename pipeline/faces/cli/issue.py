"""`redfirst issue`: the tracker of the worktree one stands in, without any run (contract 1, 3)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

import todo
from pipeline.app.issue_records import (
    IssueDocument,
    IssueLintDocument,
    IssueListDocument,
    claims_of,
    detail_of,
    record_of,
)
from pipeline.characters import visible
from pipeline.config.sources import tracker_advice, tracker_folder
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import text_given
from pipeline.faces.cli.editor import edit as open_editor
from pipeline.faces.cli.editor import require_editor
from pipeline.faces.cli.text import print_text
from pipeline.outcomes import Reason
from pipeline.terminal import visible_lines

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from pipeline.app.issue_records import ClaimRecord


_NEXT: Final = {
    todo.ErrorKind.TRACKER_MISSING: ("redfirst issue new --title TITLE",),
    todo.ErrorKind.ISSUE_NOT_FOUND: ("redfirst issue list",),
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
    except todo.TrackerError as error:
        path = folder.name if error.path is None else f"{folder.name}/{error.path}"
        details: dict[str, object] = {} if error.line is None else {"line": error.line}
        is_invalid = error.kind is todo.ErrorKind.TRACKER_INVALID
        actions = (tracker_advice(folder),) if is_invalid else _NEXT.get(error.kind, ())
        message = f"{path}: {error.message}" if is_invalid else error.message
        raise UserError(message, Reason(error.kind.value), path=path, details=details, actions=actions) from error


@contextmanager
def tracker_in(root: Path | None, *, writes: bool = False) -> Generator[tuple[Path, todo.Tracker]]:
    """Yield the tracker of a repository with its folder; what it refuses is the error that `main` renders.

    Of the commands that write, one at a time has it.
    """
    folder = folder_of(root)
    with user_errors(folder), _one_writer(folder) if writes else contextlib.nullcontext():
        yield folder, todo.Tracker(todo.FolderSource(folder))


@contextmanager
def _one_writer(folder: Path) -> Generator[None]:
    """Let one command at a time read the tracker and write it: of two that file at once, each gets its own number."""
    from pipeline.run.files import locked

    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # where folders cannot be locked, `write_edits` compares all the same
            held.enter_context(locked(folder.parent))
        yield


def say_written(folder: Path, issue_id: str) -> None:
    """Say on stderr where an issue was changed, and that the change counts once it is committed."""
    path = f"{folder.name}/{issue_id}.md"
    print_text(visible(f"{path} is changed: commit it, since a run reads what is committed"), err=True)


def folder_of(root: Path | None) -> Path:
    """Return the tracker folder of the repository given, else of the one around the working directory."""
    if root is not None:
        return root / tracker_folder(root, or_refuse=True)
    here = Path.cwd()
    for folder in (here, *here.parents):
        # A linked worktree has a file named .git.
        if (folder / ".git").exists():
            return folder / tracker_folder(folder, or_refuse=True)
    raise UserError("This is not inside a git repository. Go to one, or name it with --dir.", Reason.USAGE)


_SHOWN: Final = 5


def claim_words(issue: str, claim: ClaimRecord) -> str:
    """Return who has the issue, and the command to ask or free it with."""
    then = f"redfirst abandon {issue}" if claim.status == "gone" else f"redfirst show {claim.run}"
    return f"claimed by {claim.run} in {claim.worktree}, {claim.status}: {then}"


def print_issues(
    folder: str, issues: Sequence[todo.Issue], claims: Mapping[str, ClaimRecord], *, as_json: bool
) -> None:
    """Print a list of issues."""
    if as_json:
        _print_json(IssueListDocument(issues=tuple(record_of(issue, folder, claims) for issue in issues)))
        return
    width = max((len(issue.id) for issue in issues), default=0)
    for issue in issues:
        labels = f"  [{', '.join(issue.labels)}]" if issue.labels else ""
        claim = claims.get(issue.id)
        held = f"  {claim.run} in {Path(claim.worktree).name}: {claim.status}" if claim is not None else ""
        print_text(visible(f"{issue.id:{width}}  {issue.status:11}  {issue.title}{labels}{held}"))


def say_left_out(folder: str, files: Sequence[todo.TrackerError]) -> None:
    """Say on stderr which files are not listed, and why; they may be other tools' own."""
    for error in files[:_SHOWN]:
        print_text(visible(f"{folder}/{error.path} is not listed: {error.message}"), err=True)
    if len(files) > _SHOWN:
        print_text(f"{len(files) - _SHOWN} more files are not listed: redfirst issue lint", err=True)


app = typer.Typer(
    name="issue",
    help="File, read and change the issues of the repository.",
    no_args_is_help=True,
)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@app.command("list")
def list_issues(
    status: Annotated[
        str | None,
        typer.Option(metavar="STATUS", help="Only these: todo, in-progress or done."),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Only those with this label. Repeatable.")
    ] = None,
    as_json: AsJson = False,
    root: Root = None,
) -> None:
    """List the issues.

    Examples:
      redfirst issue list

      redfirst issue list --status todo --label bug
    """
    wanted = None if status is None else _status(status)
    with tracker_in(root) as (folder, tracker):
        issues, left_out = tracker.issues(), tracker.unreadable()
    labels = set(label or ())
    found = [issue for issue in issues if wanted in {None, issue.status} and labels.issubset(issue.labels)]
    print_issues(folder.name, found, claims_of(folder.parent), as_json=as_json)
    say_left_out(folder.name, left_out)


@app.command()
def ready(as_json: AsJson = False, root: Root = None) -> None:
    """List the issues that can be worked on now.

    Such an issue is Todo, all that it depends on is Done, and no run has it.

    Examples:
      redfirst issue ready

      redfirst issue ready --json
    """
    with tracker_in(root) as (folder, tracker):
        issues, left_out = tracker.ready(), tracker.unreadable()
    claims = claims_of(folder.parent)
    print_issues(folder.name, [issue for issue in issues if issue.id not in claims], claims, as_json=as_json)
    for issue in issues:
        if issue.id in claims and not as_json:  # a person is told who has them
            print_text(visible(f"{issue.id} is not listed: {claim_words(issue.id, claims[issue.id])}"), err=True)
    say_left_out(folder.name, left_out)


@app.command()
def show(issue_id: IssueId, as_json: AsJson = False, root: Root = None) -> None:
    """Show one issue as it is written.

    Examples:
      redfirst issue show GAL-39

      redfirst issue show GAL-39 --json
    """
    with tracker_in(root) as (folder, tracker):
        issue_id = tracker.named(issue_id)
        issue = tracker.read(issue_id)
        text = (tracker.raw(todo.file_name(issue_id)) or b"").decode()
    if as_json:
        _print_json(IssueDocument(issue=detail_of(issue, folder.name, claims_of(folder.parent))))
    else:
        typer.echo(visible_lines(text.replace("\r\n", "\n")), nl=not text.endswith("\n"))
        if (claim := claims_of(folder.parent).get(issue_id)) is not None:
            print_text(visible(f"{issue_id} is {claim_words(issue_id, claim)}"), err=True)


@app.command()
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
    text, labels = _TEMPLATE if body is None else text_given(body, "--body "), tuple(label or ())
    folder = folder_of(root)
    if edit:
        require_editor(", or give the text without --edit: --body FILE, or --body - for standard input")

    from pipeline.run.tracker import first_prefix

    with user_errors(folder):
        wanted = todo.NewIssue(
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
    said = "is filed: commit it, since a run reads what is committed"
    if body is None and not edit:
        said = f"has a template: fill it in (redfirst issue edit {filed}), then commit it"
    print_text(visible(f"{folder.name}/{todo.file_name(filed)} {said}"), err=True)
    paths = shlex.join(os.path.relpath(folder / name) for name in files)
    print_text(visible(f"  git add -- {paths} && git commit -m {shlex.quote(f'File {filed}')} -- {paths}"), err=True)


@app.command("edit")
def edit_issue(issue_id: IssueId, root: Root = None) -> None:
    """Open an issue in $VISUAL or $EDITOR.

    It says what is wrong with the issue afterwards, with exit code 2.

    Examples:
      redfirst issue edit GAL-39

      redfirst issue edit GAL-39 --dir ../shop
    """
    with tracker_in(root) as (folder, tracker):
        issue_id = todo.checked_id(tracker.named(issue_id))
        former = None
        try:
            former = tracker.read(issue_id).title
        except todo.TrackerError:
            if tracker.raw(todo.file_name(issue_id)) is None:
                raise  # one that is there, but broken, is to be mended
    open_editor(folder / todo.file_name(issue_id))
    with tracker_in(root, writes=True) as (_, tracker):
        found = [problem for problem in todo.lint(tracker) if problem.path == todo.file_name(issue_id)]
        if not found:  # the line that lists it shows its status and title
            todo.write_edits(folder, tracker.set_status(issue_id, tracker.read(issue_id).status, former))
            say_written(folder, issue_id)
            return
    for problem in found:
        _print_problem(replace(problem, path=f"{folder.name}/{problem.path}"), err=True)
    raise typer.Exit(2)


@app.command("status")
def set_status(
    issue_id: IssueId,
    status: Annotated[str, typer.Argument(metavar="STATUS", help="todo, in-progress or done.")],
    root: Root = None,
) -> None:
    """Set the status of an issue, in its file and in the line that lists it.

    Examples:
      redfirst issue status GAL-39 in-progress

      redfirst issue status GAL-39 done
    """
    wanted = _status(status)
    with tracker_in(root, writes=True) as (folder, tracker):
        issue_id = tracker.named(issue_id)
        todo.write_edits(folder, tracker.set_status(issue_id, wanted))
    say_written(folder, issue_id)


@app.command()
def comment(
    issue_id: IssueId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="May have several lines.")],
    root: Root = None,
) -> None:
    """Add a dated comment to an issue.

    Examples:
      redfirst issue comment GAL-39 "Blocked by the new parser."

      redfirst issue comment GAL-39 "The name is checked now." --dir ../shop
    """
    day = _today()
    with tracker_in(root, writes=True) as (folder, tracker):
        issue_id = tracker.named(issue_id)
        todo.write_edits(folder, tracker.comment(issue_id, day, text))
    say_written(folder, issue_id)


@app.command("lint")
def lint_issues(as_json: AsJson = False, root: Root = None) -> None:
    """Say what is wrong in the issues.

    The exit code is 2 when there is something.

    Examples:
      redfirst issue lint

      redfirst issue lint --json
    """
    with tracker_in(root) as (folder, tracker):
        problems = todo.lint(tracker)
    found = tuple(replace(problem, path=f"{folder.name}/{problem.path}") for problem in problems)
    if as_json:
        _print_json(IssueLintDocument(ok=not found, problems=found))
    else:
        for problem in found:
            _print_problem(problem)
        if not found:
            typer.echo("No problems.", err=True)
    if found:
        raise typer.Exit(2)


def _print_problem(problem: todo.Problem, *, err: bool = False) -> None:
    place = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
    print_text(visible(f"{place}: {problem.rule}: {problem.message}"), err=err)


def _status(word: str) -> todo.Status:
    """Return the status for a word, whatever its case, with a space, hyphen or underscore."""
    wanted = re.sub(r"[\s_-]+", " ", word.strip()).casefold()
    for status in todo.Status:
        if status.casefold() == wanted:
            return status
    raise UserError(f"{word!r} is not a status. Accepted: todo, in-progress, done.", Reason.USAGE)


def _today() -> date:
    """Return the date by the clock here, or in UTC the one that SOURCE_DATE_EPOCH gives."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if not given:
        return datetime.now().astimezone().date()
    try:
        return datetime.fromtimestamp(int(given), tz=UTC).date()
    except (ValueError, OverflowError, OSError):
        raise UserError(f"SOURCE_DATE_EPOCH={given} is not a number of seconds.", Reason.USAGE) from None


def _print_json(document: IssueDocument | IssueListDocument | IssueLintDocument) -> None:
    typer.echo(json.dumps(asdict(document)))


_TEMPLATE: Final = """<!-- What is wrong or missing, and why it matters. -->

## Acceptance criteria

<!-- One line for each result that a test can show: - [ ] RESULT -->
"""


def _tracker(folder: Path) -> todo.Tracker:
    """Return the tracker as it is now; where there is none the first issue makes it."""
    return todo.Tracker(todo.FolderSource(folder) if os.path.lexists(folder) else todo.MappingSource({}))


def _filed(folder: Path, wanted: todo.NewIssue, edited: str | None = None) -> tuple[str, tuple[str, ...]]:
    """File an issue; return its id and the names of the files that were written."""
    with _one_writer(folder):
        filed, edits = _tracker(folder).create(wanted, edited)
        folder.mkdir(exist_ok=True)
        todo.write_edits(folder, edits)
    return filed, tuple(edits)


def _edited(folder: Path, wanted: todo.NewIssue) -> tuple[str, tuple[str, ...]]:
    """File what a person made of the draft; it is kept where it cannot be filed."""
    issue_id, text = _tracker(folder).draft(wanted)
    place = Path(tempfile.mkdtemp(prefix="redfirst-issue-"))
    path = place / todo.file_name(issue_id)
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
    from pipeline.run.tracker import first_prefix

    with user_errors(folder):
        wanted = todo.NewIssue(title="TITLE", prefix=first_prefix(folder.resolve().parent.name))
        return _tracker(folder).draft(wanted)[0]
