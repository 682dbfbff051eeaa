"""`redfirst issue`: the tracker of the worktree one stands in, without any run (contract 1, 3)."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli import completion
from pipeline.cli.issue_documents import (
    ClaimRecord,
    IssueDetail,
    IssueDocument,
    IssueLintDocument,
    IssueListDocument,
    IssueRecord,
)
from pipeline.cli.issue_new import edit_issue, new
from pipeline.cli.issue_place import FOLDER, IssueId, Root, folder_of, user_errors
from pipeline.cli.text import print_text
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.policy.characters import as_utf8, visible
from pipeline.terminal import visible_lines
from todo import (
    FolderSource,
    Issue,
    Status,
    Tracker,
    file_name,
    lint,
    write_edits,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

app = typer.Typer(
    name="issue",
    help="Read and change the issues in TODO/, without any run.",
    no_args_is_help=True,
)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@app.command("list")
def list_issues(
    status: Annotated[
        str | None, typer.Option(help="Only these: todo, in-progress or done.", autocompletion=completion.statuses)
    ] = None,
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
    with user_errors():
        issues = Tracker(FolderSource(folder_of(root))).issues()
    labels = set(label or ())
    found = [issue for issue in issues if wanted in {None, issue.status} and labels.issubset(issue.labels)]
    _print_issues(found, _claims(root), as_json=as_json)


@app.command()
def ready(as_json: AsJson = False, root: Root = None) -> None:
    """List the issues that can be worked on: Todo, all they depend on is Done, and no run has them.

    Examples:
      redfirst issue ready
    """
    with user_errors():
        issues = Tracker(FolderSource(folder_of(root))).ready()
    claims = _claims(root)
    _print_issues([issue for issue in issues if issue.id not in claims], claims, as_json=as_json)
    for issue in issues:
        if issue.id in claims and not as_json:
            print_text(visible(f"{issue.id} is not listed: {_claim_words(issue.id, claims[issue.id])}"), err=True)


@app.command()
def show(issue_id: IssueId, as_json: AsJson = False, root: Root = None) -> None:
    """Show one issue as it is written.

    Examples:
      redfirst issue show GAL-39
    """
    with user_errors():
        tracker = Tracker(FolderSource(folder_of(root)))
        issue_id = tracker.named(issue_id)
        issue = tracker.read(issue_id)
        text = (tracker.raw(file_name(issue_id)) or b"").decode()
    if as_json:
        record = _record(issue, _claims(root))
        facts = {each.name: getattr(record, each.name) for each in fields(record)}
        _print_json(IssueDocument(issue=IssueDetail(**facts, body=issue.body)))
    else:
        typer.echo(visible_lines(text.replace("\r\n", "\n")), nl=not text.endswith("\n"))
        if (claim := _claims(root).get(issue_id)) is not None:
            print_text(visible(f"{issue_id} is {_claim_words(issue_id, claim)}"), err=True)


app.command()(new)
app.command("edit")(edit_issue)


@app.command("status")
def set_status(
    issue_id: IssueId,
    status: Annotated[str, typer.Argument(help="todo, in-progress or done.", autocompletion=completion.statuses)],
    root: Root = None,
) -> None:
    """Set the status of an issue, in its file and in the line that lists it.

    Examples:
      redfirst issue status GAL-39 in-progress
    """
    wanted = _status(status)
    with user_errors():
        folder = folder_of(root)
        tracker = Tracker(FolderSource(folder))
        write_edits(folder, tracker.set_status(tracker.named(issue_id), wanted))


@app.command()
def comment(
    issue_id: IssueId,
    text: Annotated[str, typer.Argument(help="May have several lines.")],
    root: Root = None,
) -> None:
    """Add a dated comment to an issue.

    Examples:
      redfirst issue comment GAL-39 "Blocked by the new parser."
    """
    day = _today()
    with user_errors():
        folder = folder_of(root)
        tracker = Tracker(FolderSource(folder))
        write_edits(folder, tracker.comment(tracker.named(issue_id), day, text))


@app.command("lint")
def lint_issues(as_json: AsJson = False, root: Root = None) -> None:
    """Find what is wrong in TODO/; exit code 2 when there is something.

    Examples:
      redfirst issue lint
    """
    with user_errors():
        problems = lint(Tracker(FolderSource(folder_of(root))))
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


def _claims(root: Path | None) -> Mapping[str, ClaimRecord]:
    """Return the run that has each claimed issue; outside of a repository nobody has any."""
    from pipeline.git import Repository  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.runs.claimants import claimants  # noqa: PLC0415  (the same)

    try:
        repository = Repository.find(folder_of(root).parent)
    except UserError:
        return {}
    found = claimants(repository)
    return {issue: ClaimRecord(each.run, as_utf8(each.worktree), each.status) for issue, each in found.items()}


def _claim_words(issue: str, claim: ClaimRecord) -> str:
    then = f"redfirst abandon {issue}" if claim.status == "gone" else f"redfirst show {claim.run}"
    return f"claimed by {claim.run} in {claim.worktree}, {claim.status}: {then}"


def _record(issue: Issue, claims: Mapping[str, ClaimRecord]) -> IssueRecord:
    return IssueRecord(
        id=issue.id,
        title=issue.title,
        status=issue.status.value,
        parent=issue.parent,
        labels=issue.labels,
        depends_on=issue.depends_on,
        path=f"{FOLDER}/{file_name(issue.id)}",
        claim=claims.get(issue.id),
    )


def _print_issues(issues: Sequence[Issue], claims: Mapping[str, ClaimRecord], *, as_json: bool) -> None:
    if as_json:
        _print_json(IssueListDocument(issues=tuple(_record(issue, claims) for issue in issues)))
        return
    width = max((len(issue.id) for issue in issues), default=0)
    for issue in issues:
        labels = f"  [{', '.join(issue.labels)}]" if issue.labels else ""
        claim = claims.get(issue.id)
        held = f"  {claim.run} in {Path(claim.worktree).name}: {claim.status}" if claim is not None else ""
        print_text(visible(f"{issue.id:{width}}  {issue.status:11}  {issue.title}{labels}{held}"))


def _print_json(document: IssueListDocument | IssueDocument | IssueLintDocument) -> None:
    typer.echo(json.dumps(asdict(document)))
