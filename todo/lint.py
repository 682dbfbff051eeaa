"""Finds all problems of a tracker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from todo.errors import TrackerError
from todo.frontmatter import decode
from todo.index import Page
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
    UNCLOSED = "unclosed"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem of the tracker; `path` is relative to the tracker folder, `line` counts from 1."""

    path: str
    line: int | None
    rule: Rule
    message: str


def _wrong_in(content: bytes, name: str) -> Iterator[Problem]:
    issue, document = read_issue(content, name)
    if is_unwritten(issue) and issue.status is Status.TODO:
        message = "It has only the comments of the template; no run takes it before it says what is wanted."
        yield Problem(name, None, Rule.UNWRITTEN, message)
    for key, meant in misspelt_keys(document):
        message = f"The key {key!r} has no effect; the key is {meant!r}."
        yield Problem(name, document.line_of(key), Rule.MISSPELT_KEY, message)


def lint(tracker: Tracker) -> list[Problem]:
    """Return the problems of a tracker, sorted by place; an empty list means that it has none.

    Raises:
        TrackerError: there is no tracker to look at.
    """
    problems: list[Problem] = []
    issues: dict[str, Issue] = {}
    pages: list[Page] = []
    for issue_id in tracker.ids:
        name = file_name(issue_id)
        if not is_issue_id(issue_id):
            message = "Not the name of an issue: use letters, digits, `-`, `_` and inner dots."
            problems.append(Problem(name, None, Rule.FILE_NAME, message))
            continue
        try:
            issues[issue_id], content = tracker.read(issue_id), tracker.raw(name) or b""
            problems += _wrong_in(content, name)
            pages.append(Page.of(name, decode(content, name)))
        except TrackerError as error:
            problems.append(Problem(error.path or name, error.line, Rule.BROKEN_FILE, error.message))
    try:
        readme = tracker.raw(INDEX_NAME)
        if readme is not None:
            pages.append(Page.of(INDEX_NAME, decode(readme, INDEX_NAME)))
    except TrackerError as error:
        problems.append(Problem(INDEX_NAME, error.line, Rule.BROKEN_FILE, error.message))
    problems += _open_ends(pages)
    problems += _same_ids(tracker.ids)
    problems += _links(issues, frozenset(tracker.ids))
    problems += _cycles(issues)
    problems += _listings(issues, pages, frozenset(tracker.ids))
    return sorted(set(problems), key=lambda problem: (problem.path, problem.line or 0, problem.rule, problem.message))


def _open_ends(pages: list[Page]) -> Iterator[Problem]:
    for page in pages:
        if page.found.unclosed is not None:
            message = "This opens a code fence or HTML comment that nothing closes; nothing can be added below it."
            yield Problem(page.name, page.line_number(page.found.unclosed), Rule.UNCLOSED, message)


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


def _listings(issues: dict[str, Issue], pages: list[Page], known: frozenset[str]) -> Iterator[Problem]:
    at_home: set[str] = set()
    lists = ((page, page.entries() if page.name == INDEX_NAME else page.sub_issues()) for page in pages)
    for page, entry in ((page, entry) for page, entries in lists for entry in entries):
        place, issue = (page.name, page.line_number(entry.at)), issues.get(entry.issue_id)
        if issue is None:
            if entry.issue_id not in known:
                yield Problem(*place, Rule.LISTED_UNKNOWN, f"Lists {entry.issue_id}, which does not exist.")
        elif _home(issue) != page.name:
            yield Problem(*place, Rule.LISTED_ELSEWHERE, f"{issue.id} belongs in {_home(issue)} only.")
        elif issue.id in at_home:
            yield Problem(*place, Rule.LISTED_TWICE, f"{issue.id} is listed twice.")
        else:
            at_home.add(issue.id)
            if entry.box is not None and entry.status is not issue.status:
                shown = entry.status or "something unknown"
                message = f"The box says {shown}, {issue.id} is {issue.status}. Setting its status again mends the box."
                yield Problem(*place, Rule.LISTED_STATUS, message)
    for issue in issues.values():
        if issue.id not in at_home and (issue.parent is None or issue.parent in known):
            message = f"Not listed in {_home(issue)}."
            yield Problem(file_name(issue.id), None, Rule.NOT_LISTED, message)


def _home(issue: Issue) -> str:
    return INDEX_NAME if issue.parent is None else file_name(issue.parent)
