"""Words lists of issues and the runs that have them; nothing here needs the command line."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.cli.text import fitted
from pipeline.policy.characters import visible
from pipeline.service.issue_records import record_of
from pipeline.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.service.issue_records import ClaimRecord
    from todo import Issue, TrackerError

_SHOWN: Final = 5


def claim_words(issue: str, claim: ClaimRecord) -> str:
    """Return who has the issue, and the command to ask or free it with."""
    then = f"redfirst abandon {issue}" if claim.status == "gone" else f"redfirst show {claim.run}"
    return f"claimed by {claim.run} in {claim.worktree}, {claim.status}: {then}"


def print_issues(folder: str, issues: Sequence[Issue], claims: Mapping[str, ClaimRecord], *, as_json: bool) -> None:
    """Print a list of issues."""
    listed = issues_text(folder, issues, claims, as_json=as_json)
    if listed:
        echo(listed)


def issues_text(folder: str, issues: Sequence[Issue], claims: Mapping[str, ClaimRecord], *, as_json: bool) -> str:
    """Return a list of issues as it is printed."""
    if as_json:
        from pipeline.service.issue_records import IssueListDocument  # noqa: PLC0415  (the same)

        records = tuple(record_of(issue, folder, claims) for issue in issues)
        return json.dumps(asdict(IssueListDocument(issues=records)))
    width = max((len(issue.id) for issue in issues), default=0)
    lines: list[str] = []
    for issue in issues:
        labels = f"  [{', '.join(issue.labels)}]" if issue.labels else ""
        claim = claims.get(issue.id)
        held = f"  {claim.run} in {Path(claim.worktree).name}: {claim.status}" if claim is not None else ""
        lines.append(fitted(visible(f"{issue.id:{width}}  {issue.status:11}  {issue.title}{labels}{held}")))
    return "\n".join(lines)


def print_ready(folder: str, issues: Sequence[Issue], claims: Mapping[str, ClaimRecord], *, as_json: bool) -> None:
    """Print those that no run has; of the others a person is told who has them."""
    listed, left_out = ready_text(folder, issues, claims, as_json=as_json)
    if listed:
        echo(listed)
    if left_out:
        echo(left_out, err=True)


def ready_text(
    folder: str, issues: Sequence[Issue], claims: Mapping[str, ClaimRecord], *, as_json: bool
) -> tuple[str, str]:
    """Return the list of those that no run has, and for stderr who has the others; both as they are printed."""
    listed = issues_text(folder, [issue for issue in issues if issue.id not in claims], claims, as_json=as_json)
    held = [issue.id for issue in issues if issue.id in claims and not as_json]
    words = [visible(f"{issue} is not listed: {claim_words(issue, claims[issue])}") for issue in held]
    return listed, "\n".join(fitted(line, err=True) for line in words)


def say_left_out(folder: str, files: Sequence[TrackerError]) -> None:
    """Say on stderr which files are not listed, and why."""
    if files:
        echo(left_out_text(folder, files), err=True)


def left_out_text(folder: str, files: Sequence[TrackerError]) -> str:
    """Return which files are not listed, and why; they may be other tools' own."""
    lines = [f"{folder}/{error.path} is not listed: {error.message}" for error in files[:_SHOWN]]
    lines += [f"{len(files) - _SHOWN} more files are not listed: redfirst issue lint"] if len(files) > _SHOWN else []
    return "\n".join(fitted(visible(line), err=True) for line in lines)
