"""Asks agents: finds which slot needs a dispatch, and what a failed one means. The matrix decides about re-asks.

A slot is one role in one visit of a step. A finished dispatch of a slot is never repeated: its result
is read from disk, so that a crash after it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import anyio

from pipeline.config.agents import Backend
from pipeline.dispatch.redaction import LiveWords
from pipeline.dispatch.request import InRun, StoppedError
from pipeline.dispatch.results import refusal_of
from pipeline.dispatch.sandbox_escape import EscapeError
from pipeline.engine.events import DecisionMade
from pipeline.engine.machine import TRUNK
from pipeline.policy.characters import visible
from pipeline.process import BoxError
from pipeline.reports.decode import Malformed
from pipeline.reports.parse import parse_report
from pipeline.routing.lookup import counter_key, limit_of
from pipeline.routing.refusals import told_why, why_unusable
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Loop, Signal
from pipeline.runs.events import DispatchFinished
from pipeline.runs.files import to_json, write_atomic
from pipeline.runs.info import DispatchRecord, DispatchResult
from pipeline.runs.spending import Held, UsedUp, reserve
from pipeline.steps.asking.stopping import rest, stopped, waiting_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.dispatch.request import Request
    from pipeline.reports.fields import Report
    from pipeline.routing.vocabulary import Role, Step
    from pipeline.runs.info import Reserved
    from pipeline.steps.context import Context


@dataclass(frozen=True)
class Answer:
    """An answer that counts: the typed report, and what the gate admitted."""

    report: Report
    result: DispatchResult

    @property
    def evidence(self) -> str:
        """Return the path of result.json, relative to the run."""
        return f"dispatches/{self.result.dispatch}/result.json"


async def ask(ctx: Context, asked: Request) -> Answer | Event:
    """Return the slot's answer, or the event of a dispatch that does not count."""
    answers = await ask_all(ctx, [asked])
    return answers[0] if isinstance(answers, list) else answers


async def ask_all(ctx: Context, asks: Sequence[Request]) -> list[Answer] | Event:
    """Ask several slots side by side; return all answers, or the first slot's failure, in the order of *asks*.

    One failing never cancels the other: the matrix hears of one failure at a time.

    Raises:
        EscapeError: what was handed in with a report has changed something outside of its view when it was measured.
    """
    missing = [slot for slot in asks if _needs_dispatch(ctx, slot)]
    shares = await _shares(ctx, missing) if missing else []
    if isinstance(shares, Event):
        return shares
    pending = [(slot, _start(ctx, slot, share)) for slot, share in zip(missing, shares, strict=True)]
    broken: list[BoxError | EscapeError] = []
    async with anyio.create_task_group() as group:
        for slot, record in pending:
            group.start_soon(_run, ctx, slot, record, broken, group.cancel_scope)
    for error in broken:
        if isinstance(error, EscapeError):
            raise error
    if broken:  # the dispatch is lost, not failed: its slot is asked again when the run goes on
        return Event(signal=Signal.ENV_BROKEN, note=f"the sandbox did not work: {broken[0]}")
    answers: list[Answer] = []
    for slot in asks:
        result = _last(ctx, slot)
        if result is None:
            if ctx.stopping != "no":
                return stopped(ctx)
            raise LookupError(f"{slot.role} has no finished dispatch in visit {ctx.lane.visit}")
        if result.signal is not None:
            why = why_unusable(ctx.state, slot.role, result.signal, result.refusal)
            return Event(
                signal=result.signal,
                role=slot.role,
                # the tests that came with a wrong report are looked at by who diagnoses it, and are gone on from
                tree=result.tree if slot.verify is not None and result.signal is Signal.MALFORMED else None,
                note=told_why(why, result.complaint or "", result.signal),
                refusal=result.refusal,
                evidence=tuple(name for name in _evidence(result) if ctx.path(name).exists()),
            )
        answers.append(Answer(_report(slot, result), result))
    return answers if ctx.stopping == "no" else stopped(ctx)


def _evidence(result: DispatchResult) -> tuple[str, ...]:
    return f"dispatches/{result.dispatch}/result.json", f"dispatches/{result.dispatch}/escape.json"


def _report(slot: Request, result: DispatchResult) -> Report:
    report = parse_report(slot.kind, slot.role, slot.question, result.report or {})
    if isinstance(report, Malformed):
        raise TypeError(f"{result.dispatch}/result.json holds no {slot.kind} report: {report.sentence}")
    return report


async def _shares(ctx: Context, slots: Sequence[Request]) -> list[Reserved] | Event:
    """Return what each dispatch may spend, once others have left something; or the event of a run that must stop."""
    while isinstance(found := _may_start(ctx, slots), Held):
        over = anyio.Event()
        ctx.waiting.append(over)
        await over.wait()
    return found


def _may_start(ctx: Context, slots: Sequence[Request]) -> list[Reserved] | Held | Event:
    """Return what each dispatch may spend, or the event of a run that must stop before: the user, or the budget."""
    if ctx.stopping != "no":
        return stopped(ctx)
    limit = limit_of(ctx.state, Loop.DISPATCHES)
    if limit is not None and ctx.state.dispatches + sum(not _is_desk_left(ctx, slot) for slot in slots) > limit:
        return Event(signal=Signal.BUDGET, note=f"{ctx.state.dispatches} of {limit} dispatches are used up")
    begin = [(slot.role, ctx.lane.step.value) for slot in slots]
    shares = reserve(ctx.run, ctx.config.budget, begin, beside=_others(ctx))
    return Event(signal=Signal.BUDGET, note=shares.why) if isinstance(shares, UsedUp) else shares


def _others(ctx: Context) -> int:
    """Return how many other lanes may ask somebody before this one has its answers; the trunk waits for them."""
    return max(0, len(ctx.run.state.lanes.keys() - {TRUNK}) - 1)


def _slot_records(ctx: Context, slot: Request) -> list[DispatchRecord]:
    return [r for r in ctx.run.records.values() if r.visit == ctx.lane.visit and r.role is slot.role]


def _lost(ctx: Context, slot: Request) -> DispatchRecord | None:
    """Return the dispatch of the slot whose driver was stopped or died before it had an answer."""
    lost = [record for record in _slot_records(ctx, slot) if record.dispatch not in ctx.run.results]
    return lost[-1] if lost else None


def _is_desk_left(ctx: Context, slot: Request) -> bool:
    """Return whether a person has a desk for this slot already, which they are led to again."""
    lost = _lost(ctx, slot)
    return lost is not None and lost.backend == ctx.config.agent(slot.role).backend.value == Backend.HUMAN.value


def _spent(ctx: Context) -> frozenset[str]:
    """Return the dispatches whose answers parked the run in this visit: a resumed run asks anew (matrix 1, RESUMED).

    The rows of "any dispatch" are no decision on an answer: what was answered beside a failure still counts.
    """
    decided = [
        line.seq
        for line in ctx.run.journal.of(DecisionMade)
        if line.data.visit == ctx.lane.visit and not line.data.row.startswith("any/")
    ]
    finished = ctx.run.journal.of(DispatchFinished)
    return frozenset(line.data.dispatch for line in finished if line.seq < max(decided, default=0))


def _last(ctx: Context, slot: Request) -> DispatchResult | None:
    """Return the slot's result: one that counts wins; else the last of this attempt at the visit."""
    finished = ctx.run.results.keys() - _spent(ctx)
    results = [(r, ctx.run.results[r.dispatch]) for r in _slot_records(ctx, slot) if r.dispatch in finished]
    for _, result in results:
        if result.signal is None:
            return result
    recent = [result for record, result in results if record.resumes == ctx.state.resumes]
    return recent[-1] if recent else None


def last_answer(ctx: Context, step: Step, role: Role, kind: str) -> Answer | None:
    """Return the last answer of a step to a request about the current task that counts; None where there is none."""
    records = [
        record
        for record in ctx.run.records.values()
        if (record.step, record.role, record.kind, record.task) == (step.value, role, kind, ctx.state.current)
    ]
    results = [ctx.run.results[record.dispatch] for record in records if record.dispatch in ctx.run.results]
    counting = [result for result in results if result.signal is None]
    if not counting:
        return None
    report = parse_report(kind, role, None, counting[-1].report or {})
    return None if isinstance(report, Malformed) else Answer(report, counting[-1])


def _needs_dispatch(ctx: Context, slot: Request) -> bool:
    last = _last(ctx, slot)
    if last is None:
        return True
    if last.signal is None:
        return False
    failed = [
        record
        for record in _slot_records(ctx, slot)
        if record.dispatch in ctx.run.results and record.resumes == ctx.state.resumes
    ]
    granted = slot.reasks + ctx.state.counters.get(counter_key(ctx.state, Loop.REASK, slot.role), 0)
    return len(failed) <= granted


def _start(ctx: Context, slot: Request, share: Reserved) -> DispatchRecord:
    """Journal the start of a dispatch and what it may spend; a lost attempt's number is used again."""
    previous = _last(ctx, slot)
    lost = _lost(ctx, slot)
    number = lost.number if lost is not None else max(ctx.run.records, default=0) + 1
    task = ctx.state.current
    same = [
        r
        for r in ctx.run.records.values()
        if (r.role, r.kind, r.task, r.question) == (slot.role, slot.kind, task, slot.question) and r.number != number
    ]
    base = previous.tree if previous is not None and previous.tree is not None else slot.base
    record = DispatchRecord(
        dispatch=f"{number:03}-{ctx.lane.step.value}-{slot.role.value}",
        number=number,
        step=ctx.lane.step.value,
        visit=ctx.lane.visit,
        resumes=ctx.state.resumes,
        role=slot.role,
        kind=slot.kind,
        question=slot.question.value if slot.question else None,
        task=task,
        attempt=len(same) + 1,
        reask=previous.complaint if previous is not None else None,
        base_tree=base,
        backend=ctx.config.agent(slot.role).backend.value,
        continues=previous.dispatch if previous is not None else None,
        reserved=share,
        lane=ctx.lane_name,
        offered_again=_is_desk_left(ctx, slot),
    )
    who = ctx.dispatcher.who(record)
    service = who.service.name if who.service is not None else None
    record = record.model_copy(update={"model": who.model, "service": service})
    ctx.run.start_dispatch(record)
    again = " (asked again)" if record.reask else ""
    ctx.say(f"{record.dispatch}: asking @{slot.role.value} to {slot.kind}, {who}{again}")
    return record


async def _run(
    ctx: Context,
    slot: Request,
    record: DispatchRecord,
    broken: list[BoxError | EscapeError],
    all_of_them: anyio.CancelScope,
) -> None:
    words = LiveWords(ctx.dispatcher.secrets)
    with ctx.progress.doing(f"@{slot.role.value} ({ctx.dispatcher.who(record)})", words.said) as took:
        try:
            place = InRun(ctx.lane.step.phase, ctx.why(), words.hear, partial(rest, ctx))
            result = await ctx.dispatcher.dispatch(record, slot, place)
            try:
                result = await _verified(ctx, slot, result)
            except EscapeError as error:  # raised below: in a group nobody would know it
                broken.append(error)
                all_of_them.cancel()
        except BoxError as error:
            broken.append(error)
            return
        except StoppedError:
            return
        finally:
            ctx.run.lose_dispatch(record.dispatch)
            ctx.wake()
        ctx.run.finish_dispatch(result)
    said = f"{result.signal.value}: {result.complaint}" if result.signal is not None else "answered"
    ctx.say(f"{record.dispatch}: {said} ({', '.join((str(took), *_known(result)))})")
    if ctx.stopping != "no" and not waiting_for(ctx, person=False):
        all_of_them.cancel()  # people are left, whose desks stay


async def _verified(ctx: Context, slot: Request, result: DispatchResult) -> DispatchResult:
    """Return the result, which does not count where what was handed in shows that the report cannot be true.

    It is on disk as it came already, so that a crash meanwhile loses no answer; the step measures in any case.
    """
    if slot.verify is None or result.signal is not None:
        return result
    refused = await slot.verify(_report(slot, result), result.tree or slot.base)
    if refused is None:
        return result
    update = {
        "signal": Signal.MALFORMED,
        "complaint": visible(refused.sentence),
        "refusal": refusal_of(Signal.MALFORMED, refused.sentence, result.report_sha256, result.tree),
        "checkpoint": "partial" if result.changes else "failed",
    }
    result = result.model_copy(update=update)
    document = result.model_dump(mode="json", by_alias=True)
    write_atomic(ctx.path(f"dispatches/{result.dispatch}/result.json"), to_json(document))
    return result


def _known(result: DispatchResult) -> list[str]:
    """Return what is known of what an answer took, in words."""
    usage = result.usage
    tokens = (usage.input_tokens, usage.output_tokens)
    known = [f"{sum(count or 0 for count in tokens):,} tokens"] if None not in tokens and any(tokens) else []
    return known + ([f"{usage.cost_usd:.2f} USD"] if usage.cost_usd else [])
