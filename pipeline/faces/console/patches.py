"""Splits the work of a run for a page: files, hunks, lines, and RED and GREEN beside each test."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.app.documents import DiffFile, TaskShown

MOST_LINES: Final = 4_000
"""Lines of a patch on one page."""
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
_NAME: Final = re.compile(r"(?:.*(?:::|/| > ))?([^\[\]]+?)(?:\[.*\])?$", re.DOTALL)


@dataclass(frozen=True)
class TestFacts:
    """A test of the change: how it failed before, and whether it passes now."""

    id: str
    task: str
    red: str
    message: str
    legal: bool
    green: bool

    @property
    def name(self) -> str:
        """Return the word by which it stands in its file."""
        found = _NAME.match(self.id)
        return found[1].strip() if found else self.id


@dataclass(frozen=True)
class PatchLine:
    """A line of a hunk: its numbers before and after, what it is (add, del, same, note), and the tests named in it."""

    before: int | None
    after: int | None
    kind: str
    text: str
    tests: tuple[TestFacts, ...] = ()

    @property
    def sign(self) -> str:
        """Return what it begins with in the patch."""
        return {"add": "+", "del": "-", "same": " "}.get(self.kind, "")

    @property
    def place(self) -> str:
        """Return what names it in its file, for a form: `+` or `-` and its number; nothing where it is no line."""
        number = self.before if self.kind == "del" else self.after
        return "" if number is None else f"{'-' if self.kind == 'del' else '+'}{number}"

    @property
    def said(self) -> str:
        """Return its number in words."""
        return f"{self.before} as it was" if self.kind == "del" else str(self.after)


@dataclass
class PatchFile:
    """A file of a patch, and the tests in it."""

    path: str
    added: int | None
    deleted: int | None
    tests: list[TestFacts] = field(default_factory=list[TestFacts])
    hunks: list[tuple[str, list[PatchLine]]] = field(default_factory=list[tuple[str, list[PatchLine]]])


def tests_of(tasks: Iterable[TaskShown]) -> list[TestFacts]:
    """Return the tests that were RED, with what is known of them now."""
    found: list[TestFacts] = []
    for task in tasks:
        evidence = task.evidence
        if evidence is None:
            continue
        passed = set(evidence.green.passed) if evidence.green is not None else set[str]()
        for red in evidence.red:
            # of a file that could not be loaded before: whether tests of it pass
            of_file = red.granularity == "file" and any(one.startswith(red.id) for one in passed)
            is_green = red.id in passed or of_file
            found.append(TestFacts(red.id, task.id, red.red_class, red.message, red.legal, is_green))
    return found


def files_of(changed: Iterable[DiffFile], patch: str, tests: Iterable[TestFacts]) -> tuple[list[PatchFile], int]:
    """Return the files of a patch, and how many of its lines are left out."""
    files = [PatchFile(one.path, one.added, one.deleted) for one in changed]
    by_path: Mapping[str, PatchFile] = {one.path: one for one in files}
    for test in tests:
        holder = next((one for path, one in by_path.items() if test.id.startswith(path)), None)
        if holder is not None:
            holder.tests.append(test)
    sections = _sections(patch.split("\n"))
    room, left_out = MOST_LINES, 0
    for file, lines in zip(files, sections, strict=False):
        left_out += max(0, len(lines) - room)
        _fill(file, lines[:room])
        room = max(0, room - len(lines))
    return files, left_out


def _sections(lines: list[str]) -> list[list[str]]:
    found: list[list[str]] = []
    for line in lines:
        if line.startswith("diff --git "):
            found.append([])
        elif found:
            found[-1].append(line)
    return found


def _fill(file: PatchFile, lines: list[str]) -> None:
    before = after = 0
    open_tests = {test.name: test for test in file.tests}
    for line in lines:
        hunk = _HUNK.match(line)
        if hunk:
            before, after = int(hunk[1]), int(hunk[2])
            file.hunks.append((hunk[3].strip(), []))
        elif file.hunks and line[:1] in {"+", "-", " ", "\\"}:
            mark, text = line[0], line[1:]
            new, old = mark in "+ ", mark in "- "
            kind = {"+": "add", "-": "del", " ": "same"}.get(mark, "note")
            named = tuple(open_tests.pop(name) for name in list(open_tests) if kind == "add" and _has(text, name))
            file.hunks[-1][1].append(PatchLine(before if old else None, after if new else None, kind, text, named))
            before, after = before + old, after + new


def _has(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
