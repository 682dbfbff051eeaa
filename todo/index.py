"""The lines that list issues: in README.md by category, in a parent's file under Sub-issues (contract 3).

A line is an issue's by its first link to an issue file, whatever its form; only the character in its box is ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from todo.errors import invalid
from todo.issue import Issue, Status, id_of_file, is_issue_id
from todo.outline import Outline, Section, insert_after, is_list_line, last_filled, newline_of, outline, split_lines
from todo.render import one_line

SUB_ISSUES: Final = "Sub-issues"
COMMENTS: Final = "Comments"
DEFAULT_CATEGORY: Final = "Uncategorised"

_MARKS: Final = {Status.TODO: " ", Status.IN_PROGRESS: "~", Status.DONE: "x"}
_STATUSES: Final = {mark: status for status, mark in _MARKS.items()} | {"X": Status.DONE}
_LIST_LINE: Final = re.compile(r"\s*(?:[-+*]|\d+[.)]|\||\[)")
_LINK: Final = re.compile(r"\]\(<?(?:\./)?([^()<>/\s#]+\.md)(?:#[^()<>\s]*)?>?(?:\s+\"[^\"]*\")?\)")
_BOX: Final = re.compile(r"\[([ xX~-])\](?!\()")


class Entry(NamedTuple):
    """A line that lists an issue; `box` is the position of the character in its box, None when it has no box."""

    at: int
    issue_id: str
    box: int | None
    status: Status | None


@dataclass(frozen=True)
class Page:
    """A Markdown file to be edited: what comes before the body, and the lines of the body."""

    name: str
    head: str
    lines: list[str]
    found: Outline
    newline: str

    @classmethod
    def of(cls, name: str, text: str, body: int = 0) -> Page:
        """Return the page of a Markdown file whose body begins at character `body` of its text."""
        lines = split_lines(text[body:])
        return cls(name, text[:body], lines, outline(lines), newline_of(lines or split_lines(text[:body])))

    def line_number(self, index: int) -> int:
        """Return the line number in the file, counted from 1, of a line of the body."""
        return len(split_lines(self.head)) + index + 1

    def entries(self, section: Section | None = None) -> list[Entry]:
        """Return the lines that list an issue, in a section or in the whole body; code and comments are left out."""
        listed: list[Entry] = []
        for index in range(len(self.lines)) if section is None else range(section.start, section.end):
            line = self.lines[index]
            if index in self.found.hidden or not _LIST_LINE.match(line):
                continue
            link = _LINK.search(line)
            issue_id = id_of_file(link[1]) if link is not None else None
            if issue_id is not None and is_issue_id(issue_id):
                is_row = line.lstrip().startswith("|")  # else what is behind the link is a title
                box = _BOX.search(line, 0, len(line) if is_row or link is None else link.start())
                place, mark = (None, "") if box is None else (box.start(1), box[1])
                listed.append(Entry(index, issue_id, place, _STATUSES.get(mark)))
        return listed

    def sub_issues(self) -> list[Entry]:
        """Return the lines under Sub-issues that list an issue."""
        section = self.found.section(SUB_ISSUES)
        return [] if section is None else self.entries(section)

    def listing(self, issue: Issue, status: Status, category: str | None = None, former: str | None = None) -> str:
        """Return the text of README.md or of the parent's file with the issue's box showing the status.

        A missing line is added. Where the line ends with the *former* title, it gets the one of today.

        Raises:
            TrackerError: the line would end up inside a code fence that is not closed.
        """
        is_top = issue.parent is None
        listed, title = (self.entries(), category or DEFAULT_CATEGORY) if is_top else (self.sub_issues(), SUB_ISSUES)
        own = [entry for entry in listed if entry.issue_id == issue.id]
        if own:
            return self._with_boxes(own, status, None if former is None else (one_line(former), one_line(issue.title)))
        section = self.found.section(title)
        there = [] if section is None else self.entries(section)
        if there:
            return self._inserted(self._end_of_item(there[-1].at), [entry_line(issue, status)])
        return self.appended(title, [entry_line(issue, status)])

    def _with_boxes(self, own: list[Entry], status: Status, renamed: tuple[str, str] | None) -> str:
        changed = list(self.lines)
        for entry in own:
            if entry.box is not None and entry.status is not status:
                line = changed[entry.at]
                changed[entry.at] = line[: entry.box] + _MARKS[status] + line[entry.box + 1 :]
            if renamed is not None:
                said = changed[entry.at].rstrip("\r\n")
                before = said.removesuffix(f") {renamed[0]}")
                if before != said:
                    changed[entry.at] = f"{before}) {renamed[1]}{changed[entry.at][len(said) :]}"
        return self.head + "".join(changed)

    def _end_of_item(self, index: int) -> int:
        end = index + 1
        while end < len(self.lines) and (not self.lines[end].strip() or self.lines[end][:1] in {" ", "\t"}):
            end += 1
        return last_filled(self.lines, index + 1, end)

    def appended(self, title: str, added: list[str]) -> str:
        """Return the page's text with lines added at the end of a section, which is created if it is missing.

        Comments stay last, so another new section goes before them.

        Raises:
            TrackerError: the lines would end up inside a code fence that is not closed.
        """
        section = self.found.section(title)
        if section is not None:
            following = (heading.at for heading in self.found.headings if heading.at > section.heading)
            place = last_filled(self.lines, section.start, next(following, section.end))
            loose = place > section.heading and not is_list_line(self.lines[place])
            return self._inserted(place, ["", *added] if loose else added)
        comments = self.found.section(COMMENTS)
        end = len(self.lines) if comments is None else comments.heading
        place = last_filled(self.lines, 0, end)
        before = [""] if place >= 0 else []
        after = [""] if comments is not None and place + 1 == end else []
        return self._inserted(place, [*before, f"## {title}", *added, *after])

    def _inserted(self, place: int, added: list[str]) -> str:
        unclosed = self.found.unclosed
        if unclosed is not None and place >= unclosed:
            message = "This opens a code fence or HTML comment that nothing closes, so nothing can be added below it."
            raise invalid(message, path=self.name, line=self.line_number(unclosed))
        if not self.lines and not self.head.endswith(("\r", "\n")):
            return self.newline.join([self.head, *added]) if self.head else self.newline.join([*added, ""])
        return self.head + "".join(insert_after(self.lines, place, added, self.newline))


def entry_line(issue: Issue, status: Status) -> str:
    """Return the line that lists an issue, without a line end."""
    return f"- [{_MARKS[status]}] [{issue.id}]({issue.id}.md) {one_line(issue.title)}"
