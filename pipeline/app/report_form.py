"""Makes the form that a person fills in at a terminal, keeps it, and reads what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import ndiff
from typing import TYPE_CHECKING, Any, Final

from pipeline.app import human_report
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.judge.reports.yaml_form import Blank, Filled, blanks_of, form_text, marked, read_form, unmarked, with_head
from pipeline.progress import few
from pipeline.run.drafts import counted
from pipeline.run.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipeline.agents.backends.desk import Asked, Desk
    from pipeline.agents.backends.layout import Difference
    from pipeline.judge.reports.schema_errors import Fault
    from pipeline.judge.reports.tasks import Criterion

_SHOWN: Final = 20
_HOW: Final = (
    "Write behind the fields, save, and close the editor. Text may go on in the lines below its field, indented; with "
    "a | behind the field it may have any letters and colons. Lines that begin with # are comments. Empty fields are "
    "left out; {unchanged}."
)
_NOTHING: Final = "an unchanged form hands nothing in"
_ASKED_ABOUT: Final = "an unchanged form is handed in only if you say so"
_EDITED: Final = "What was edited at the approval point since is not in it. Take it over here, or it is undone:"


@dataclass(frozen=True)
class ReportForm:
    """The form of one desk.

    Args:
        desk: The desk.
        asked: What is asked there.
        difference: What was changed at it.
    """

    desk: Desk
    asked: Asked
    difference: Difference

    @property
    def file(self) -> Path:
        """Return where the form lies; it stays, so that nothing that was written is lost."""
        return self.desk.form

    def opened(self) -> str:
        """Return the form as it is opened, and lay it into its file.

        It is the one that was begun; else it begins with the report that is to be revised, or empty.
        """
        previous = previous_report(self.asked)
        head = self._head(previous)
        try:
            text = with_head(self._written(), head)
        except FileNotFoundError:
            text = form_text(self._blank(), head, self._begun_with(previous), self._notes())
        self.desk.put(self.file, text)
        return text

    def read(self) -> tuple[str, Filled]:
        """Return the text that was saved, without our remarks, and what it says."""
        text = unmarked(self._written())
        return text, read_form(self._blank(), text, self._begun())

    def _written(self) -> str:
        """Return the text of the form; one in another encoding is kept aside, since letters of it are lost."""
        content = self.file.read_bytes()
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.desk.set_aside(self.file)
            text = content.decode("utf-8-sig", errors="replace")
            self.desk.put(self.file, text)
            return text

    def report(self, filled: Filled) -> dict[str, Any]:
        """Return the report that a form says; ACCEPTABLE says yes wherever nothing else is said."""
        return human_report.accepted(self.asked, filled.report, prior=False)

    def faults(self, filled: Filled) -> list[Fault]:
        """Return everything that keeps the report from counting."""
        report = self.report(filled)
        vain = human_report.unchanged(self.asked, report, self.difference)
        return filled.faults or [*human_report.faults_of(self.desk, self.asked, report), *([vain] if vain else [])]

    def mark(self, text: str, filled: Filled, faults: list[Fault]) -> str:
        """Write each problem above its field, and return the form as it is opened again."""
        told = marked(text, filled.lines, faults)
        self.desk.put(self.file, told)
        return told

    def _blank(self) -> Blank:
        return blanks_of(self.asked.report_schema)

    def _begun(self) -> dict[str, list[dict[str, str]]]:
        begun: dict[str, list[dict[str, str]]] = {}
        if self.asked.to_answer:
            begun["criteria"] = [{"task": one.task, "id": one.id} for one in self.asked.to_answer]
        if self.asked.kind in human_report.SHOWS_CRITERIA:
            begun["criteria"] = [{"id": one.id} for one in self._criteria()]
        begun["prior"] = [{"id": one.id} for one in self.asked.open_findings()]
        return begun

    def _begun_with(self, previous: PreviousReport | None) -> Mapping[str, Any]:
        """Return what the form begins with: the previous report, with the criteria that it says nothing of."""
        begun = self._begun()
        if previous is None or "criteria" not in begun:
            return begun if previous is None else previous.report
        said = previous.report.get("criteria", ())
        known = {one["id"] for one in said}
        return {**previous.report, "criteria": [*said, *(one for one in begun["criteria"] if one["id"] not in known)]}

    def _criteria(self) -> list[Criterion]:
        return [one for task in human_report.tasks_of(self.asked) for one in task.criteria]

    def _notes(self) -> dict[str, list[str]]:
        shown = (
            [f"{one.id}: {one.text}" for one in self._criteria()]
            if self.asked.kind in human_report.SHOWS_CRITERIA
            else []
        )
        met = [f"task {one.task}, {one.id}: {one.text}" for one in self.asked.to_answer]
        open_ones = self.asked.open_findings()
        return {
            "criteria": list(map(visible, (*shown, *met))),
            "prior": [visible(f"{one.id} [{one.severity}] {one.title}") for one in open_ones],
        }

    def _head(self, previous: PreviousReport | None) -> list[str]:
        asked = self.asked
        about = f", task {asked.task}" if asked.task else ""
        question = f" ({asked.question})" if asked.question else ""
        lines = [f"Your report as @{asked.role}: {asked.kind}{question}{about}."]
        lines += came_back(asked)
        if asked.reask:
            lines.append(visible(f"Your last answer did not count: {asked.reask}"))
        if asked.writable:
            changed = [*self.difference.changed, *self.difference.removed]
            lines.append(visible(f"You changed: {few(changed, _SHOWN) or 'nothing'}."))
        if previous is not None:
            edited = f" {_EDITED}" if previous.edits else ""
            lines.append(visible(f"It began with the report of {previous.dispatch}, to be revised.{edited}"))
            lines += [f"  {visible(edit)}" for edit in previous.edits[:_SHOWN]]
            more = len(previous.edits) - _SHOWN
            lines += [f"  and {more} more: artifacts/previous_* beside this file"] if more > 0 else []
        return [*lines, _HOW.format(unchanged=_NOTHING if previous is None else _ASKED_ABOUT)]


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
    return ["What led here:", *(f"  {line}" for line in told)] if told else []


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
