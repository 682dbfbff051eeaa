"""Turns issues into the records of documents, with the runs that have claimed them."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.policy.characters import as_utf8
from todo import file_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.service.issue_documents import ClaimRecord, IssueDetail, IssueRecord
    from todo import Issue


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
    from pipeline.service.issue_documents import ClaimRecord  # noqa: PLC0415  (the same)
    from pipeline.service.run_list import claimants  # noqa: PLC0415  (the same)

    found = claimants(repository, readable)
    return {issue: ClaimRecord(each.run, as_utf8(each.worktree), each.status) for issue, each in found.items()}


def record_of(issue: Issue, folder: str, claims: Mapping[str, ClaimRecord]) -> IssueRecord:
    """Return the issue as documents have it."""
    from pipeline.service.issue_documents import IssueRecord  # noqa: PLC0415  (the same)

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
    from pipeline.service.issue_documents import IssueDetail  # noqa: PLC0415  (the same)

    record = record_of(issue, folder, claims)
    return IssueDetail(**{each.name: getattr(record, each.name) for each in fields(record)}, body=issue.body)
