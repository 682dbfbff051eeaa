"""Issues in a list, and the runs that have them; nothing here needs the command line."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.cli.text import fitted
from pipeline.errors import UserError
from pipeline.policy.characters import as_utf8, visible
from pipeline.terminal import echo
from todo import file_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.cli.issue_documents import ClaimRecord, IssueRecord
    from todo import Issue

FOLDER: Final = "TODO"


def claims_of(folder: Path) -> Mapping[str, ClaimRecord]:
    """Return the run that has each claimed issue; outside of a repository nobody has any.

    A claim that nobody can read is left to `doctor`.
    """
    from pipeline.git import Repository  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.runs.store import Claim, claims  # noqa: PLC0415  (the same)

    try:
        repository = Repository.find(folder)
    except UserError:
        return {}
    readable = {issue: claim for issue, claim in claims(repository).items() if isinstance(claim, Claim)}
    if not readable:
        return {}
    from pipeline.cli.issue_documents import ClaimRecord  # noqa: PLC0415  (the same)
    from pipeline.service.run_list import claimants  # noqa: PLC0415  (the same)

    found = claimants(repository, readable)
    return {issue: ClaimRecord(each.run, as_utf8(each.worktree), each.status) for issue, each in found.items()}


def claim_words(issue: str, claim: ClaimRecord) -> str:
    """Return who has the issue, and the command to ask or free it with."""
    then = f"redfirst abandon {issue}" if claim.status == "gone" else f"redfirst show {claim.run}"
    return f"claimed by {claim.run} in {claim.worktree}, {claim.status}: {then}"


def record_of(issue: Issue, claims: Mapping[str, ClaimRecord]) -> IssueRecord:
    """Return the issue as documents have it."""
    from pipeline.cli.issue_documents import IssueRecord  # noqa: PLC0415  (the same)

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


def print_issues(issues: Sequence[Issue], claims: Mapping[str, ClaimRecord], *, as_json: bool) -> None:
    """Print a list of issues."""
    listed = issues_text(issues, claims, as_json=as_json)
    if listed:
        echo(listed)


def issues_text(issues: Sequence[Issue], claims: Mapping[str, ClaimRecord], *, as_json: bool) -> str:
    """Return a list of issues as it is printed."""
    if as_json:
        from pipeline.cli.issue_documents import IssueListDocument  # noqa: PLC0415  (the same)

        return json.dumps(asdict(IssueListDocument(issues=tuple(record_of(issue, claims) for issue in issues))))
    width = max((len(issue.id) for issue in issues), default=0)
    lines: list[str] = []
    for issue in issues:
        labels = f"  [{', '.join(issue.labels)}]" if issue.labels else ""
        claim = claims.get(issue.id)
        held = f"  {claim.run} in {Path(claim.worktree).name}: {claim.status}" if claim is not None else ""
        lines.append(fitted(visible(f"{issue.id:{width}}  {issue.status:11}  {issue.title}{labels}{held}")))
    return "\n".join(lines)


def print_ready(issues: Sequence[Issue], claims: Mapping[str, ClaimRecord], *, as_json: bool) -> None:
    """Print those that no run has; of the others a person is told who has them."""
    listed, left_out = ready_text(issues, claims, as_json=as_json)
    if listed:
        echo(listed)
    if left_out:
        echo(left_out, err=True)


def ready_text(issues: Sequence[Issue], claims: Mapping[str, ClaimRecord], *, as_json: bool) -> tuple[str, str]:
    """Return the list of those that no run has, and for stderr who has the others; both as they are printed."""
    listed = issues_text([issue for issue in issues if issue.id not in claims], claims, as_json=as_json)
    held = [issue.id for issue in issues if issue.id in claims and not as_json]
    words = [visible(f"{issue} is not listed: {claim_words(issue, claims[issue])}") for issue in held]
    return listed, "\n".join(fitted(line, err=True) for line in words)
