"""Makes `result.json` from an agent's answer: the verdict on it, and the tree with its admitted changes.

Whether an answer counts is decided by gate, process and report.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from pipeline.agents.backends.protocol import AgentResult, Ended, Fault
from pipeline.agents.dispatch.transcript import redacted_report
from pipeline.characters import visible
from pipeline.data_types import SESSION
from pipeline.judge.policy.rights import ChangeKind
from pipeline.judge.reports.decode import JsonObject, Malformed, Missing
from pipeline.judge.reports.parse import extract_report, read_report
from pipeline.progress import few
from pipeline.repo import Entry, Repository, TreeChange
from pipeline.reset_times import as_text
from pipeline.run import info
from pipeline.run.files import to_json
from pipeline.sandbox.redaction import redacted_text
from pipeline.vocabulary import Signal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pipeline.agents.dispatch.agent_choice import Choice
    from pipeline.agents.dispatch.gate import AdmittedChange, GateResult
    from pipeline.agents.dispatch.request import Request
    from pipeline.agents.gateway.spending import GatewayUse
    from pipeline.run.checkout import PrivateCheckout
    from pipeline.sandbox.escapes import Escape


_Number = TypeVar("_Number", int, float)
_REFUSED: Final = frozenset({Signal.MALFORMED, Signal.VIOLATION})
"""What was handed in is refused; of an agent that did not end in time nothing is known of what it would hand in."""
_SESSION: Final = re.compile(SESSION)


@dataclass(frozen=True)
class Remains:
    """The outcome of one agent: its answer, the gate's result, and an escape if there was one; nothing is redacted."""

    choice: Choice
    answer: AgentResult
    gate: GateResult
    escape: Escape | None
    traffic: GatewayUse | None
    secrets: Collection[str]


def result_of(
    record: info.DispatchRecord, request: Request, remains: Remains, repository: Repository, checkout: PrivateCheckout
) -> info.DispatchResult:
    """Return the result of a dispatch; its blobs and its tree are written to the repository."""
    answer, gate, escape = remains.answer, remains.gate, remains.escape
    signal, said, report = judge(request, remains)
    # It may quote an agent's bytes, and goes on to a terminal, a prompt, a document.
    quiet = partial(redacted_text, secrets=remains.secrets, shapes=True)
    complaint = visible(quiet(said), keep="\n\t") if said is not None else None
    legal = gate.changes if escape is None and counts_as_work(answer) else ()
    changes = tuple(_stored(change, repository, checkout) for change in legal)
    tree = repository.build_tree(record.base_tree, (_tree_change(change) for change in changes))
    return info.DispatchResult.from_fields(
        record,
        gate,
        answer,
        signal=signal,
        complaint=complaint,
        denials=tuple(quiet(line) for line in answer.denials),
        refusal=_refusal(signal, complaint, remains, tree, report) if signal in _REFUSED else None,
        report=report,
        report_sha256=hashlib.sha256(to_json(report, pretty=False).encode()).hexdigest() if report else None,
        gate="admitted" if gate.admitted and escape is None and counts_as_work(answer) else "rejected",
        # After a rejection the agent goes on from the legal part, offending paths put back.
        tree=None if escape is not None else tree,
        changes=changes,
        violations=tuple(info.ViolationRecord.from_fields(violation) for violation in gate.violations),
        model_traffic=_traffic(remains.traffic) if remains.traffic is not None else None,
        checkpoint="ready" if signal is None else "partial" if changes else "failed",
        agent=facts_of(remains.choice),
        session=answer.session if answer.session is not None and _SESSION.fullmatch(answer.session) else None,
        not_before=as_text(answer.not_before) if answer.not_before and answer.fault is Fault.UNAVAILABLE else None,
    )


def _refusal(
    signal: Signal | None, complaint: str | None, remains: Remains, tree: str, report: JsonObject | None
) -> str:
    answer = remains.answer
    said = to_json(report, pretty=False).encode() if report else answer.report_file or answer.stdout
    # the tree and not the changes: an agent goes on from the legal part of what it did, so that this comes only once
    return refusal_of(signal, complaint, hashlib.sha256(said).hexdigest(), tree, remains.gate.refused)


def refusal_of(*parts: object) -> str:
    """Return the digest of a refusal: of what was handed in and of what is said of it. The same twice ends a loop."""
    return hashlib.sha256(ascii(parts).encode()).hexdigest()


def together(result: info.DispatchResult, tries: Sequence[info.Try]) -> info.DispatchResult:
    """Return the result with the failed tries of other agents added, whose usage counts as well."""
    uses = [result.usage, *(each.usage for each in tries)]
    usage = info.Usage(
        cost_usd=_sum((use.cost_usd for use in uses), 0.0),
        input_tokens=_sum((use.input_tokens for use in uses), 0),
        output_tokens=_sum((use.output_tokens for use in uses), 0),
        model=result.usage.model,
    )
    return result.model_copy(update={"usage": usage, "tries": tuple(tries)})


def as_try(result: info.DispatchResult) -> info.Try:
    """Return the record of a try with an agent that was out of reach.

    Raises:
        LookupError: the result does not say who was asked.
    """
    if result.agent is None:
        raise LookupError(f"{result.dispatch} does not say who was asked")
    return info.Try(agent=result.agent, complaint=result.complaint or "", usage=result.usage)


def _sum(values: Iterable[_Number | None], nothing: _Number) -> _Number | None:
    every = list(values)
    known = [value for value in every if value is not None]
    return sum(known, start=nothing) if len(known) == len(every) else None


def facts_of(choice: Choice) -> info.AgentFacts:
    """Return the facts about an agent for the record."""
    service = choice.service.name if choice.service is not None else None
    return info.AgentFacts.from_fields(choice, service=service, effort=choice.agent.effort)


def _traffic(use: GatewayUse) -> info.ModelTraffic:
    by_model = {model: info.TokenCount.from_fields(tokens) for model, tokens in use.spent.by_model.items()}
    return info.ModelTraffic.from_fields(use, use.spent, by_model=by_model)


def _stored(change: AdmittedChange, repository: Repository, checkout: PrivateCheckout) -> info.ChangeRecord:
    if change.content is None:
        return info.ChangeRecord(path=change.path, kind="deleted")
    oid = repository.write_blob(change.content, change.path, checkout.tree)
    kind = "added" if change.kind is ChangeKind.ADDED else "modified"
    return info.ChangeRecord.from_fields(change, kind=kind, oid=oid)


def _tree_change(change: info.ChangeRecord) -> TreeChange:
    if change.oid is None or change.mode is None:
        return TreeChange(change.path, None)
    return TreeChange(change.path, Entry(change.path, change.mode, change.oid))


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


def judge(request: Request, remains: Remains) -> tuple[Signal | None, str | None, JsonObject | None]:
    """Return (signal, complaint, report): signal None when the answer counts; the worst fault decides."""
    answer, gate = remains.answer, remains.gate
    if remains.escape is not None:
        return Signal.ESCAPE, remains.escape.why, None
    if answer.fault is not None and answer.fault in _NO_WORK:
        return _NO_WORK[answer.fault], answer.complaint, None
    asked = (request.kind, request.role, request.question)
    found = extract_report(
        answer.report_file, answer.stdout, lambda value: read_report(*asked, value).report is not None
    )
    is_one = not isinstance(found, Malformed | Missing)
    read = read_report(*asked, redacted_report(found, remains.secrets)) if is_one else None
    report = read.document if read is not None else None
    if gate.violations:
        told = few((f"{violation.path}: {violation.why}" for violation in gate.violations), _TOLD, "; ")
        return Signal.VIOLATION, f"These changes are not yours to make: {told}.", report
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
