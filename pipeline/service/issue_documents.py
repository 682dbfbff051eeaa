"""Defines what the commands of `redfirst issue` print with `--json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from todo import Problem  # noqa: TC001  (dataclasses read it)


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
