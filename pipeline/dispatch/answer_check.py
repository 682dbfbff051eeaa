"""Decides whether a dispatch's answer counts, by gate, process and report; gives one sentence for the re-ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.backends.protocol import Ended, Fault
from pipeline.reports.decode import Malformed, Missing
from pipeline.reports.parse import extract_report, read_report
from pipeline.routing.vocabulary import Signal

if TYPE_CHECKING:
    from pipeline.backends.protocol import AgentResult
    from pipeline.dispatch.gate import GateResult
    from pipeline.dispatch.request import Request
    from pipeline.reports.decode import JsonObject

_TOLD: Final = 5
_NO_WORK: Final = {
    Fault.UNAUTHORIZED: Signal.UNAVAILABLE,
    Fault.UNAVAILABLE: Signal.UNAVAILABLE,
    Fault.BUDGET: Signal.BUDGET,
}
"""The signals for an agent that was cut off; its changes are not used."""


def counts_as_work(answer: AgentResult) -> bool:
    """Return whether the agent's changes may be used."""
    return answer.fault not in _NO_WORK


def judge(
    request: Request, answer: AgentResult, gate: GateResult, escape: str | None
) -> tuple[Signal | None, str | None, JsonObject | None]:
    """Return (signal, complaint, report): signal None when the answer counts; the worst fault decides."""
    if escape is not None:
        return Signal.ESCAPE, escape, None
    if answer.fault is not None and answer.fault in _NO_WORK:
        return _NO_WORK[answer.fault], answer.complaint, None
    asked = (request.kind, request.role, request.question)
    found = extract_report(
        answer.report_file, answer.stdout, lambda value: read_report(*asked, value).report is not None
    )
    read = read_report(*asked, found) if not isinstance(found, Malformed | Missing) else None
    report = read.document if read is not None else None
    if gate.violations:
        told = "; ".join(f"{violation.path}: {violation.why}" for violation in gate.violations[:_TOLD])
        more = f"; and {len(gate.violations) - _TOLD} more" if len(gate.violations) > _TOLD else ""
        return Signal.VIOLATION, f"These changes are not yours to make: {told}{more}.", report
    if answer.ended is Ended.TIMED_OUT or answer.fault is Fault.STEPS:
        return Signal.TIMED_OUT, answer.complaint, report
    if answer.complaint is not None:
        return Signal.MALFORMED, answer.complaint, report
    if isinstance(found, Missing):
        return Signal.MALFORMED, "There was no report: write it as JSON to $REDFIRST_REPORT, or as the last line.", None
    if isinstance(found, Malformed):
        return Signal.MALFORMED, found.sentence, None
    if read is None or read.report is None:
        return Signal.MALFORMED, read.malformed.sentence if read is not None else None, report
    refused = request.accept(read.report) if request.accept is not None else None
    return (None, None, report) if refused is None else (Signal.MALFORMED, refused.sentence, report)
