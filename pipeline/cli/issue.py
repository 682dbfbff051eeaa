"""`redfirst issue`: the tracker of the worktree one stands in, without any run (contract 1, 3)."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import Annotated

import typer

from pipeline.cli.issue_lists import claim_words, print_issues, print_ready, say_left_out
from pipeline.cli.issue_new import edit_issue, new
from pipeline.cli.issue_place import IssueId, Root, folder_of, say_written, user_errors
from pipeline.cli.text import print_text
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.policy.characters import visible
from pipeline.service.issue_records import (
    IssueDocument,
    IssueLintDocument,
    claims_of,
    detail_of,
)
from pipeline.terminal import visible_lines
from todo import (
    FolderSource,
    Status,
    Tracker,
    file_name,
    lint,
    write_edits,
)

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
    folder = folder_of(root)
    with user_errors(folder):
        tracker = Tracker(FolderSource(folder))
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
    folder = folder_of(root)
    with user_errors(folder):
        tracker = Tracker(FolderSource(folder))
        issues, left_out = tracker.ready(), tracker.unreadable()
    print_ready(folder.name, issues, claims_of(folder.parent), as_json=as_json)
    say_left_out(folder.name, left_out)


@app.command()
def show(issue_id: IssueId, as_json: AsJson = False, root: Root = None) -> None:
    """Show one issue as it is written.

    Examples:
      redfirst issue show GAL-39

      redfirst issue show GAL-39 --json
    """
    folder = folder_of(root)
    with user_errors(folder):
        tracker = Tracker(FolderSource(folder))
        issue_id = tracker.named(issue_id)
        issue = tracker.read(issue_id)
        text = (tracker.raw(file_name(issue_id)) or b"").decode()
    if as_json:
        _print_json(IssueDocument(issue=detail_of(issue, folder.name, claims_of(folder.parent))))
    else:
        typer.echo(visible_lines(text.replace("\r\n", "\n")), nl=not text.endswith("\n"))
        if (claim := claims_of(folder.parent).get(issue_id)) is not None:
            print_text(visible(f"{issue_id} is {claim_words(issue_id, claim)}"), err=True)


app.command()(new)
app.command("edit")(edit_issue)


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
    folder = folder_of(root)
    with user_errors(folder):
        tracker = Tracker(FolderSource(folder))
        issue_id = tracker.named(issue_id)
        write_edits(folder, tracker.set_status(issue_id, wanted))
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
    folder = folder_of(root)
    with user_errors(folder):
        tracker = Tracker(FolderSource(folder))
        issue_id = tracker.named(issue_id)
        write_edits(folder, tracker.comment(issue_id, day, text))
    say_written(folder, issue_id)


@app.command("lint")
def lint_issues(as_json: AsJson = False, root: Root = None) -> None:
    """Say what is wrong in the issues.

    The exit code is 2 when there is something.

    Examples:
      redfirst issue lint

      redfirst issue lint --json
    """
    folder = folder_of(root)
    with user_errors(folder):
        problems = lint(Tracker(FolderSource(folder)))
    found = tuple(replace(problem, path=f"{folder.name}/{problem.path}") for problem in problems)
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


def _print_json(document: IssueDocument | IssueLintDocument) -> None:
    typer.echo(json.dumps(asdict(document)))
