"""Turns issues into the records of documents, with the runs that have claimed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pipeline.characters import as_utf8
from pipeline.errors import UserError
from todo import Issue, Problem, file_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True)
class ClaimRecord:
    """The run that has an issue, in whichever worktree, and how it stands."""

    run: str
    worktree: str
    status: str


@dataclass(frozen=True)
class IssueRecord:
    """An issue in a list; `path` is relative to the repository, `claim` the run that has it."""

    id: str
    title: str
    status: str
    parent: str | None
    labels: tuple[str, ...]
    depends_on: tuple[str, ...]
    path: str
    claim: ClaimRecord | None


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


def claims_of(folder: Path) -> Mapping[str, ClaimRecord]:
    """Return the run that has each claimed issue; outside of a repository nobody has any.

    A claim that nobody can read is left to `doctor`.
    """
    from pipeline.repo import Repository  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.run.store import Claim, claims  # noqa: PLC0415  (the same)

    try:
        repository = Repository.find(folder)
    except UserError:
        return {}
    readable = {issue: claim for issue, claim in claims(repository).items() if isinstance(claim, Claim)}
    if not readable:
        return {}
    from pipeline.app.run_list import claimants  # noqa: PLC0415  (the same)

    found = claimants(repository, readable)
    return {issue: ClaimRecord(each.run, as_utf8(each.worktree), each.status) for issue, each in found.items()}


def record_of(issue: Issue, folder: str, claims: Mapping[str, ClaimRecord]) -> IssueRecord:
    """Return the issue as documents have it."""
    return IssueRecord(
        id=issue.id,
        title=issue.title,
        status=issue.status.value,
        parent=issue.parent,
        labels=issue.labels,
        depends_on=issue.depends_on,
        path=f"{folder}/{file_name(issue.id)}",
        claim=claims.get(issue.id),
    )


def detail_of(issue: Issue, folder: str, claims: Mapping[str, ClaimRecord]) -> IssueDetail:
    """Return the issue with its text as documents have it."""
    record = record_of(issue, folder, claims)
    return IssueDetail(**vars(record), body=issue.body)
