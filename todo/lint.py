"""Finds all problems of a tracker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from todo.errors import TrackerError
from todo.frontmatter import decode
from todo.index import Entry, Page
from todo.issue import (
    INDEX_NAME,
    Issue,
    Status,
    arrows,
    file_name,
    find_cycle,
    is_issue_id,
    is_unwritten,
    misspelt_keys,
    read_issue,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from todo.tracker import Tracker


class Rule(StrEnum):
    """The rule that a problem breaks."""

    BROKEN_FILE = "broken-file"
    FILE_NAME = "file-name"
    SAME_ID = "same-id"
    PARENT = "parent"
    DEPENDENCY = "dependency"
    CYCLE = "cycle"
    NOT_LISTED = "not-listed"
    LISTED_TWICE = "listed-twice"
    LISTED_ELSEWHERE = "listed-elsewhere"
    LISTED_STATUS = "listed-status"
    LISTED_UNKNOWN = "listed-unknown"
    MISSPELT_KEY = "misspelt-key"
    UNWRITTEN = "unwritten"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem of the tracker; `path` is relative to the tracker folder, `line` counts from 1."""

    path: str
    line: int | None
    rule: Rule
    message: str


@dataclass(frozen=True, slots=True)
class _Listed:
    """A line that lists an issue, with its place; `parent` is None for README.md."""

    entry: Entry
    path: str
    line: int
    parent: str | None


def _misspelt(content: bytes, name: str) -> list[Problem]:
    return [
        Problem(name, document.line_of(key), Rule.MISSPELT_KEY, f"The key {key!r} has no effect; the key is {meant!r}.")
        for document in (read_issue(content, name)[1],)
        for key, meant in misspelt_keys(document)
    ]


def _unwritten(issue: Issue, name: str) -> list[Problem]:
    message = "It has only the comments of the template; no run takes it before it says what is wanted."
    return [Problem(name, None, Rule.UNWRITTEN, message)] if is_unwritten(issue) and issue.status is Status.TODO else []


def lint(tracker: Tracker) -> list[Problem]:
    """Return the problems of a tracker, sorted by place; an empty list means that it has none.

    Raises:
        TrackerError: there is no tracker to look at.
    """
    problems: list[Problem] = []
    issues: dict[str, Issue] = {}
    pages: dict[str | None, Page] = {}
    for issue_id in tracker.ids:
        name = file_name(issue_id)
        if not is_issue_id(issue_id):
            message = "Not the name of an issue: use letters, digits, `-`, `_` and inner dots."
            problems.append(Problem(name, None, Rule.FILE_NAME, message))
            continue
        try:
            issues[issue_id] = tracker.read(issue_id)
            problems += _unwritten(issues[issue_id], name)
            problems += _misspelt(tracker.raw(name) or b"", name)
            pages[issue_id] = Page.of(name, decode(tracker.raw(name) or b"", name))
        except TrackerError as error:
            problems.append(Problem(error.path or name, error.line, Rule.BROKEN_FILE, error.message))
    try:
        readme = tracker.raw(INDEX_NAME)
        if readme is not None:
            pages[None] = Page.of(INDEX_NAME, decode(readme, INDEX_NAME))
    except TrackerError as error:
        problems.append(Problem(INDEX_NAME, error.line, Rule.BROKEN_FILE, error.message))
    problems += _same_ids(tracker.ids)
    problems += _links(issues, frozenset(tracker.ids))
    problems += _cycles(issues)
    problems += _listings(issues, list(_listed(pages)), frozenset(tracker.ids))
    return sorted(set(problems), key=lambda problem: (problem.path, problem.line or 0, problem.rule, problem.message))


def _same_ids(ids: tuple[str, ...]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for issue_id in ids:
        other = seen.setdefault(issue_id.lower(), issue_id)
        if other != issue_id:
            message = f"Differs from {other} only in case; some file systems hold only one of them."
            yield Problem(file_name(issue_id), None, Rule.SAME_ID, message)


def _links(issues: dict[str, Issue], known: frozenset[str]) -> Iterator[Problem]:
    for issue in issues.values():
        name = file_name(issue.id)
        if issue.parent is not None and issue.parent not in known:
            yield Problem(name, None, Rule.PARENT, f"The parent {issue.parent} does not exist.")
        for other in issue.depends_on:
            if other not in known:
                yield Problem(name, None, Rule.DEPENDENCY, f"Depends on {other}, which does not exist.")


def _cycles(issues: dict[str, Issue]) -> Iterator[Problem]:
    def parents(issue_id: str) -> list[str]:
        parent = issues[issue_id].parent
        return [parent] if parent in issues else []

    def dependencies(issue_id: str) -> list[str]:
        return [other for other in issues[issue_id].depends_on if other in issues]

    for what, following in (("parents", parents), ("dependencies", dependencies)):
        reported: set[str] = set()
        for issue_id in issues:
            if issue_id in reported:
                continue
            cycle = find_cycle(issue_id, following)
            if cycle is not None and cycle[0] not in reported:
                reported.update(cycle)
                message = f"The {what} run in a circle: {arrows(cycle)}."
                yield Problem(file_name(cycle[0]), None, Rule.CYCLE, message)


def _listed(pages: dict[str | None, Page]) -> Iterator[_Listed]:
    for parent, page in pages.items():
        for entry in page.entries() if parent is None else page.sub_issues():
            yield _Listed(entry, page.name, page.line_number(entry.at), parent)


def _listings(issues: dict[str, Issue], listed: list[_Listed], known: frozenset[str]) -> Iterator[Problem]:
    at_home: set[str] = set()
    for line in listed:
        issue = issues.get(line.entry.issue_id)
        if issue is None:
            if line.entry.issue_id not in known:
                message = f"Lists {line.entry.issue_id}, which does not exist."
                yield Problem(line.path, line.line, Rule.LISTED_UNKNOWN, message)
        elif issue.parent != line.parent:
            message = f"{issue.id} belongs in {_home(issue)} only."
            yield Problem(line.path, line.line, Rule.LISTED_ELSEWHERE, message)
        elif issue.id in at_home:
            yield Problem(line.path, line.line, Rule.LISTED_TWICE, f"{issue.id} is listed twice.")
        else:
            at_home.add(issue.id)
            if line.entry.box is not None and line.entry.status is not issue.status:
                shown = line.entry.status or "something unknown"
                message = f"The box says {shown}, {issue.id} is {issue.status}. Setting its status again mends the box."
                yield Problem(line.path, line.line, Rule.LISTED_STATUS, message)
    for issue in issues.values():
        if issue.id not in at_home and (issue.parent is None or issue.parent in known):
            message = f"Not listed in {_home(issue)}."
            yield Problem(file_name(issue.id), None, Rule.NOT_LISTED, message)


def _home(issue: Issue) -> str:
    return INDEX_NAME if issue.parent is None else file_name(issue.parent)
