"""`redfirst issue`: the tracker of the worktree one stands in, without any run (contract 1, 3)."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from pipeline.cli.text import print_text
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.policy.characters import visible
from pipeline.terminal import visible_lines
from todo import (
    ErrorKind,
    FolderSource,
    Issue,
    MappingSource,
    NewIssue,
    Problem,
    Status,
    Tracker,
    TrackerError,
    file_name,
    lint,
    write_edits,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

FOLDER: Final = "TODO"
_NEXT: Final = {
    ErrorKind.TRACKER_INVALID: ("redfirst issue lint",),
    ErrorKind.ISSUE_NOT_FOUND: ("redfirst issue list",),
}

app = typer.Typer(
    name="issue",
    help="Read and change the issues in TODO/, without any run.",
    no_args_is_help=True,
)


@dataclass(frozen=True)
class IssueRecord:
    """An issue in a list; `path` is relative to the repository."""

    id: str
    title: str
    status: str
    parent: str | None
    labels: tuple[str, ...]
    depends_on: tuple[str, ...]
    path: str


@dataclass(frozen=True)
class IssueDetail(IssueRecord):
    """An issue with its text."""

    body: str


@dataclass(frozen=True, kw_only=True)
class IssueListDocument:
    """What `issue list --json` and `issue ready --json` print."""

    schema: Literal["redfirst.issue-list/1"] = "redfirst.issue-list/1"
    ok: Literal[True] = True
    issues: tuple[IssueRecord, ...]


@dataclass(frozen=True, kw_only=True)
class IssueDocument:
    """What `issue show --json` prints."""

    schema: Literal["redfirst.issue/1"] = "redfirst.issue/1"
    ok: Literal[True] = True
    issue: IssueDetail


@dataclass(frozen=True, kw_only=True)
class IssueLintDocument:
    """What `issue lint --json` prints; `ok` is false, and the exit code 2, when there are problems.

    The paths of the problems are relative to the repository.
    """

    schema: Literal["redfirst.issue-lint/1"] = "redfirst.issue-lint/1"
    ok: bool
    problems: tuple[Problem, ...]


Root = Annotated[
    Path | None,
    typer.Option("--dir", metavar="PATH", help="The repository whose TODO/ is meant; default: the one you stand in."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@app.command("list")
def list_issues(
    status: Annotated[str | None, typer.Option(help="Only these: todo, in-progress or done.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only those with this label; may be repeated.")] = None,
    as_json: AsJson = False,
    root: Root = None,
) -> None:
    """List the issues.

    Examples:
      redfirst issue list

      redfirst issue list --status todo --label bug
    """
    wanted = None if status is None else _status(status)
    with _user_errors():
        issues = Tracker(FolderSource(_folder(root))).issues()
    labels = set(label or ())
    _print_issues(
        [issue for issue in issues if wanted in {None, issue.status} and labels.issubset(issue.labels)], as_json=as_json
    )


@app.command()
def ready(as_json: AsJson = False, root: Root = None) -> None:
    """List the issues that can be worked on: Todo, and all they depend on is Done.

    Examples:
      redfirst issue ready
    """
    with _user_errors():
        issues = Tracker(FolderSource(_folder(root))).ready()
    _print_issues(issues, as_json=as_json)


@app.command()
def show(issue_id: Annotated[str, typer.Argument(metavar="ID")], as_json: AsJson = False, root: Root = None) -> None:
    """Show one issue as it is written.

    Examples:
      redfirst issue show GAL-39
    """
    with _user_errors():
        tracker = Tracker(FolderSource(_folder(root)))
        issue = tracker.read(issue_id)
        text = (tracker.raw(file_name(issue_id)) or b"").decode()
    if as_json:
        detail = IssueDetail(**asdict(_record(issue)), body=issue.body)
        _print_json(IssueDocument(issue=detail))
    else:
        typer.echo(visible_lines(text.replace("\r\n", "\n")), nl=not text.endswith("\n"))


@app.command()
def new(
    title: Annotated[str, typer.Option(help="One line.")],
    issue_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Default: the next number of the most used prefix.")
    ] = None,
    parent: Annotated[
        str | None, typer.Option(metavar="ID", help="File it as a sub-issue; its id is PARENT.1, PARENT.2 ...")
    ] = None,
    category: Annotated[str | None, typer.Option(help="The heading of README.md to list it under.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    body: Annotated[str | None, typer.Option(metavar="FILE|-", help="The text of the issue; - reads stdin.")] = None,
    root: Root = None,
) -> None:
    """File a new issue and print its id.

    Examples:
      redfirst issue new --title "Reject empty names" --id GAL-39

      redfirst issue new --title "Clean up" --parent GAL-39 --label tech-debt
    """
    if issue_id is not None and parent is not None:
        raise UserError("Give --id or --parent, not both: a sub-issue gets its id from its parent.", Reason.USAGE)
    text, labels = "" if body is None else _text_of(body), tuple(label or ())
    wanted = NewIssue(title=title, id=issue_id, parent=parent, category=category, labels=labels, description=text)
    with _user_errors():
        folder = _folder(root)
        source = FolderSource(folder) if os.path.lexists(folder) else MappingSource({})
        filed, edits = Tracker(source).create(wanted)
        folder.mkdir(exist_ok=True)  # the first issue makes the tracker
        write_edits(folder, edits)
    typer.echo(filed)


@app.command("status")
def set_status(
    issue_id: Annotated[str, typer.Argument(metavar="ID")],
    status: Annotated[str, typer.Argument(help="todo, in-progress or done.")],
    root: Root = None,
) -> None:
    """Set the status of an issue, in its file and in the line that lists it.

    Examples:
      redfirst issue status GAL-39 in-progress
    """
    wanted = _status(status)
    with _user_errors():
        folder = _folder(root)
        write_edits(folder, Tracker(FolderSource(folder)).set_status(issue_id, wanted))


@app.command()
def comment(
    issue_id: Annotated[str, typer.Argument(metavar="ID")],
    text: Annotated[str, typer.Argument(help="May have several lines.")],
    root: Root = None,
) -> None:
    """Add a dated comment to an issue.

    Examples:
      redfirst issue comment GAL-39 "Blocked by the new parser."
    """
    day = _today()
    with _user_errors():
        folder = _folder(root)
        write_edits(folder, Tracker(FolderSource(folder)).comment(issue_id, day, text))


@app.command("lint")
def lint_issues(as_json: AsJson = False, root: Root = None) -> None:
    """Find what is wrong in TODO/; exit code 2 when there is something.

    Examples:
      redfirst issue lint
    """
    with _user_errors():
        problems = lint(Tracker(FolderSource(_folder(root))))
    found = tuple(replace(problem, path=f"{FOLDER}/{problem.path}") for problem in problems)
    if as_json:
        _print_json(IssueLintDocument(ok=not found, problems=found))
    else:
        for problem in found:
            place = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
            print_text(visible(f"{place}: {problem.rule}: {problem.message}"))
        if not found:
            typer.echo("No problems.", err=True)
    if found:
        raise typer.Exit(2)


@contextmanager
def _user_errors() -> Generator[None]:
    """Turn what the tracker refuses into the error that `main` renders."""
    try:
        yield
    except TrackerError as error:
        path = FOLDER if error.path is None else f"{FOLDER}/{error.path}"
        details: dict[str, object] = {} if error.line is None else {"line": error.line}
        actions = _NEXT.get(error.kind, ())
        raise UserError(error.message, Reason(error.kind.value), path=path, details=details, actions=actions) from error


def _folder(root: Path | None) -> Path:
    """Return the tracker folder of the repository given, else of the one around the working directory."""
    if root is not None:
        return root / FOLDER
    here = Path.cwd()
    for folder in (here, *here.parents):
        # A linked worktree has a file named .git.
        if (folder / ".git").exists():
            return folder / FOLDER
    raise UserError("This is not inside a git repository. Go to one, or name it with --dir.", Reason.USAGE)


def _status(word: str) -> Status:
    """Return the status for a word, whatever its case, with a space, hyphen or underscore."""
    wanted = re.sub(r"[\s_-]+", " ", word.strip()).casefold()
    for status in Status:
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


def _text_of(place: str) -> str:
    try:
        return (sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()).decode()
    except OSError as error:
        raise UserError(f"--body {place} cannot be read: {error.strerror}.", Reason.USAGE, path=place) from None
    except UnicodeDecodeError:
        raise UserError(f"--body {place} is not UTF-8.", Reason.USAGE, path=place) from None


def _record(issue: Issue) -> IssueRecord:
    return IssueRecord(
        id=issue.id,
        title=issue.title,
        status=issue.status.value,
        parent=issue.parent,
        labels=issue.labels,
        depends_on=issue.depends_on,
        path=f"{FOLDER}/{file_name(issue.id)}",
    )


def _print_issues(issues: Sequence[Issue], *, as_json: bool) -> None:
    if as_json:
        _print_json(IssueListDocument(issues=tuple(map(_record, issues))))
        return
    width = max((len(issue.id) for issue in issues), default=0)
    for issue in issues:
        labels = f"  [{', '.join(issue.labels)}]" if issue.labels else ""
        print_text(visible(f"{issue.id:{width}}  {issue.status:11}  {issue.title}{labels}"))


def _print_json(document: IssueListDocument | IssueDocument | IssueLintDocument) -> None:
    typer.echo(json.dumps(asdict(document)))
