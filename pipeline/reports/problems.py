"""The rules for drafts by id, and the problems that break them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pipeline.routing.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Iterable

RULES: Final[dict[str, str]] = {
    "H001": "unfinished text",
    "H002": "a code block of more than 5 lines",
    "H003": "a finished function body",
    "H004": "a command that hides in a shell",
    "H005": "an oversized snippet of code context",
    "H006": "the same thing twice, or in two versions",
    "H007": "a file that is not there, or is there already",
    "H008": "a test file where tests are not looked for",
    "H009": "acceptance criteria that are missing or cannot fail",
    "H010": "a behaviour without action and observable outcome",
    "H011": "a task that should be split",
    "H012": "an open question in the approach",
    "H013": "a file that controls tests or builds",
    "H014": "tasks that do not fit together",
    "H015": "a file whose content goes through a filter",
    "H016": "tests beside code that is not there when they are written",
    "H017": "a task that is named by a number which is no task's any more",
    "H018": "a title that a commit's subject has to cut",
    "H019": "an old test that nobody knows",
    "H020": "a part that no draft has",
    "H021": "a new file where the user has one that git does not know",
    "H022": "a title with which a commit's subject breaks the pattern of the repository",
    "H023": "a path that leads through a symbolic link",
    "H024": "a new name that differs from another in upper and lower case only",
}
"""The rules by id. H015 to H017, H019 and H021 to H024 need more than the text: `steps.asking.task_drafts` and
`draft_places` check them. H020 is for a person's edits (`reports.edited`): our rendering makes no such part."""


class Weight(StrEnum):
    """The weight of a problem: an error sends the draft back, a note is for the reviewer."""

    ERROR = "error"
    NOTE = "note"


@dataclass(frozen=True, order=True)
class Problem:
    """A problem of a draft: the line (from 1), the rule, a sentence, and its weight."""

    line: int
    rule: str
    message: str
    severity: Weight = Weight.ERROR


def drafted(problems: Iterable[Problem]) -> Signal:
    """Return HYGIENE if a problem is an error, else DRAFTED (matrix 1)."""
    return Signal.HYGIENE if any(problem.severity is Weight.ERROR for problem in problems) else Signal.DRAFTED
