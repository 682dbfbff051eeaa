"""Makes the form that a person fills in at a terminal, keeps it, and reads what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pipeline.policy.characters import visible
from pipeline.reports.form_fields import blanks_of
from pipeline.reports.form_reader import read_form
from pipeline.reports.form_text import form_text, marked, unmarked, with_head
from pipeline.service import human_report
from pipeline.service.earlier_try import came_back, previous_report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.backends.desk import Asked, Desk
    from pipeline.backends.layout import Difference
    from pipeline.reports.form_fields import Blank
    from pipeline.reports.form_reader import Filled
    from pipeline.reports.schema_errors import Fault
    from pipeline.reports.tasks import Criterion
    from pipeline.service.earlier_try import PreviousReport

_SHOWN: Final = 20
_HOW: Final = (
    "Write behind the fields, save, and close the editor. Text may go on in the lines below its field, indented; lines "
    "that begin with # are comments. Empty fields are left out; {unchanged}."
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
        begun["prior"] = [{"id": one.id} for one in human_report.open_findings(self.asked)]
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
        open_ones = human_report.open_findings(self.asked)
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
            more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
            lines.append(visible(f"You changed: {', '.join(changed[:_SHOWN]) or 'nothing'}{more}."))
        if previous is not None:
            edited = f" {_EDITED}" if previous.edits else ""
            lines.append(visible(f"It began with the report of {previous.dispatch}, to be revised.{edited}"))
            lines += [f"  {visible(edit)}" for edit in previous.edits[:_SHOWN]]
            more = len(previous.edits) - _SHOWN
            lines += [f"  and {more} more: artifacts/previous_* beside this file"] if more > 0 else []
        return [*lines, _HOW.format(unchanged=_NOTHING if previous is None else _ASKED_ABOUT)]
