"""Makes the one task of an issue that nobody plans: its criteria with ids, and later what one writer did for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.reports import markdown
from pipeline.reports.drafts import SplitTask
from pipeline.reports.tasks import Task, body_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.reports.fields import FileChange, OldTest, Symbol

ONLY: Final = "1"
"""The id of the task: an issue has one."""
_CRITERIA: Final = "acceptance criteria"
_ITEM: Final = re.compile(r"\s{0,3}(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.*\S)")
_BOX: Final = re.compile(r"\s*[-*+]\s+\[[ xX]\]\s+\S")
_LONGEST: Final = 300


def task_of_issue(title: str, body: str) -> Task:
    """Return the task of an issue before anybody worked on it: what has to hold, by the issue's own words.

    Criteria are the items below "Acceptance criteria", else all checkboxes, else the title.
    """
    criteria = tuple(_criteria(body)) or (title,)
    return _task(SplitTask(title=title[:_LONGEST], acceptance_criteria=criteria, files=(), test_files=()))


def task_as_done(
    task: Task,
    files: tuple[FileChange, ...],
    test_files: tuple[FileChange, ...],
    symbols: tuple[Symbol, ...],
    tests_to_change: tuple[OldTest, ...],
) -> Task:
    """Return the task with what came of it: its files by side, the names that are new, the old tests that change."""
    return _task(
        SplitTask(
            title=task.title,
            acceptance_criteria=task.acceptance_criteria,
            files=files,
            test_files=test_files,
            symbols=symbols,
            tests_to_change=tests_to_change,
        )
    )


def _task(said: SplitTask) -> Task:
    return Task(
        id=ONLY,
        title=said.title,
        files=said.files,
        test_files=said.test_files,
        symbols=said.symbols,
        tests_to_change=said.tests_to_change,
        body=body_of(said, ONLY),
    )


def _criteria(body: str) -> Iterator[str]:
    lines = markdown.parse(body).prose
    own = [one.text for one in lines if one.section.rstrip(": ").casefold() == _CRITERIA and not one.is_heading]
    named = any(_ITEM.fullmatch(line) for line in own)
    found: list[str] = []
    is_open = False
    for line in own if named else [one.text for one in lines]:
        item = _ITEM.fullmatch(line) if named or _BOX.match(line) else None
        if item is not None:
            found.append(item["text"])
        elif is_open and line.strip() and line[:1].isspace():  # the item goes on
            found[-1] = f"{found[-1]} {line.strip()}"
        is_open = item is not None or (is_open and bool(line.strip()) and line[:1].isspace())
    yield from found
