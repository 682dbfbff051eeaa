"""Finds the lines that a task changed, by file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.measure.measuring import changed_paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.measure.measuring import MeasurementContext

_HUNK: Final = re.compile(r"@@ -\d+(?:,(?P<gone>\d+))? \+(?P<start>\d+)(?:,(?P<there>\d+))? @@")


def changed_lines(
    ctx: MeasurementContext, old: str, new: str, wanted: Callable[[str], bool]
) -> dict[str, frozenset[int]]:
    """Return the line numbers, from 1, that *new* has and *old* has not, by path; only for files that *wanted* accepts.

    A file that was moved counts as new. Files without such lines are left out.
    """
    paths = [path for path in changed_paths(ctx, old, new) if wanted(path)]
    found = {path: added_lines(ctx.repository.patch(old, new, path)) for path in paths}
    return {path: lines for path, lines in found.items() if lines}


def added_lines(patch: str) -> frozenset[int]:
    """Return the numbers, from 1, of the lines that a one-file unified patch adds; a binary one adds none."""
    added: set[int] = set()
    line = gone = there = 0
    for text in patch.split("\n"):  # never splitlines: a form feed in the code ends no line of a patch
        if gone <= 0 and there <= 0:
            hunk = _HUNK.match(text)
            if hunk is not None:
                line = int(hunk["start"])
                gone, there = (1 if hunk[name] is None else int(hunk[name]) for name in ("gone", "there"))
        elif text.startswith("+"):
            added.add(line)
            line, there = line + 1, there - 1
        elif text.startswith("-"):
            gone -= 1
        elif not text.startswith("\\"):
            line, there, gone = line + 1, there - 1, gone - 1
    return frozenset(added)
