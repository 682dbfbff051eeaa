"""Tells a person at a desk what is known of the try before theirs: why it came back, and what was reported then."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import ndiff
from typing import TYPE_CHECKING, Any, Final

from pipeline.errors import UserError
from pipeline.policy.characters import visible
from pipeline.runs.drafts import counted
from pipeline.runs.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.backends.desk import Asked

_SAID: Final = ("feedback", "findings", "diagnosis")
"""The artifacts that say why something is asked again."""
_REDRAFTED: Final = ("previous_plan", "previous_tasks")
"""The artifacts of whoever is to draft again; what was edited at a gate stands in them."""
_TESTS: Final = "write-tests"
_READY: Final = "TESTS_READY"
_MOST_LINES: Final = 24
_MOST_CHARS: Final = 2000
_SECTION: Final = re.compile(r"^## (.*)$")
_HEADING: Final = re.compile(r"^#+ ")


@dataclass(frozen=True)
class PreviousReport:
    """The report of an earlier dispatch of the same kind, and the lines that a person made other since (`- `, `+ `)."""

    dispatch: str
    report: Mapping[str, Any]
    edits: tuple[str, ...]


def came_back(asked: Asked) -> list[str]:
    """Return why something is asked again: the words of a person, a review or a measurement, below a heading.

    Of long ones the begin is told, with the place of the whole.
    """
    told: list[str] = []
    for name in _SAID:
        text = "\n".join(file.read_text(encoding="utf-8") for file in asked.artifact(name))
        lines = [_plain(line.rstrip()) for line in text.split("\n") if line.strip()]
        room = _MOST_CHARS
        for line in lines[:_MOST_LINES]:
            told += [line if len(line) <= room else f"{line[:room]} ..."] if room > 0 else []
            room -= len(line)
        if room < 0 or len(lines) > _MOST_LINES:
            told.append(f"(all of it: artifacts/{name} beside the desk)")
    return ["It came back:", *(f"  {line}" for line in told)] if told else []


def _plain(line: str) -> str:
    return visible(_HEADING.sub("", _SECTION.sub(r"\1:", line)), keep="\t")


def previous_report(asked: Asked) -> PreviousReport | None:
    """Return the last report of what is to be done again; None where something else is wanted, or none is on disk.

    Where tasks are done a split is about what is left, so that the report of the one before says too much.
    """
    if not _is_again(asked):
        return None
    try:
        run = Run.load(asked.run_folder, driving=False)
    except UserError:  # what is wrong with a run is told by the command that drives it
        return None
    for record in reversed(run.records.values()):
        result = run.results.get(record.dispatch)
        if record.kind != asked.kind or result is None or result.signal is not None or not result.report:
            continue
        is_tests = record.task == asked.task and result.report.get("verdict") == _READY
        if is_tests if asked.kind == _TESTS else not result.report.get("question"):
            return PreviousReport(record.dispatch, result.report, tuple(_edits(run, asked)))
    return None


def _is_again(asked: Asked) -> bool:
    if asked.kind == _TESTS:
        return bool(asked.artifact("findings"))
    return any(asked.artifact(name) for name in _REDRAFTED) and not asked.artifact("done_tasks")


def _edits(run: Run, asked: Asked) -> Iterator[str]:
    """Yield the lines by which what came back differs from what was drafted."""
    for file in (file for name in _REDRAFTED for file in asked.artifact(name)):
        drafted, now = (counted(run, file.name) or b"").decode("utf-8", "replace"), file.read_text(encoding="utf-8")
        for line in ndiff(drafted.splitlines(), now.splitlines()) if drafted else ():
            if line.startswith(("- ", "+ ")) and line[2:].strip():
                yield line
