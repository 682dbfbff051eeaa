"""Asks agents: finds which slot needs a dispatch, and what a failed one means. The machine decides about re-asks.

A slot is one role in one visit of a step, of an issue's run or of a recipe's. A finished dispatch of a slot is never
repeated: its result is read from disk, so that a crash after it costs nothing. A run that the user stops keeps what
was answered, and asks the others again.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

import anyio

from pipeline.agents.dispatch.request import InRun, Request, Rest, StoppedError
from pipeline.agents.dispatch.results import refusal_of
from pipeline.agents.dispatch.transcript import LiveWords
from pipeline.characters import visible
from pipeline.config.agents import Backend
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.parse import parse_report
from pipeline.matrix.engine.journal_kinds import DecisionMade
from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.routing.lookup import counter_key, limit_of, told_why, why_unusable
from pipeline.matrix.routing.state import Event
from pipeline.process import BoxError
from pipeline.reset_times import as_text, moment_words
from pipeline.run.files import to_json, write_atomic
from pipeline.run.info import DispatchRecord, DispatchResult, Reserved
from pipeline.run.journal_kinds import DispatchFinished, DispatchWaits
from pipeline.run.spending import Held, UsedUp, reserve
from pipeline.sandbox.escapes import EscapeError
from pipeline.testing.measure.measuring import UnmeasurableError
from pipeline.testing.measure.project_tools import tools_for
from pipeline.vocabulary import Loop, Role, Signal, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.judge.reports.fields import Report
    from pipeline.matrix.recipes import model
    from pipeline.steps.context import Context, DriverContext


EventT = TypeVar("EventT")
ReportT = TypeVar("ReportT")
ContextT = TypeVar("ContextT", bound="DriverContext")


def evidence_of(result: DispatchResult) -> str:
    """Return the path of result.json, relative to the run."""
    return f"dispatches/{result.dispatch}/result.json"


@dataclass(frozen=True)
class Answer:
    """An answer that counts: the typed report, and what the gate admitted."""

    report: Report
    result: DispatchResult

    @property
    def evidence(self) -> str:
        """Return the path of result.json, relative to the run."""
        return evidence_of(self.result)

    def form(self, *forms: type[ReportT]) -> ReportT:
        """Return the report in the form that what was asked gives it; see `as_form`."""
        return as_form(self.report, *forms)


def as_form(report: Report, *forms: type[ReportT]) -> ReportT:
    """Return a report in the form that what was asked gives it.

    Raises:
        TypeError: it has another one, which is a bug of ours.
    """
    if not isinstance(report, forms):
        raise TypeError(f"{' or '.join(one.__name__ for one in forms)} was asked for, not {type(report).__name__}")
    return report


@dataclass(frozen=True)
class Asking(Generic[EventT]):
    """What a workflow says of the dispatches of one lane.

    Args:
        step: The name of the step, as dispatches are called by it.
        limit: How many dispatches the run may take.
        event: Returns the event of a step that could not ask, from a signal and a note.
        facts: Returns what a record says of a request and of the last result of its slot, beside what all have.
        granted: Returns how often a role may be asked again in this visit.
        spent: The dispatches whose answers have parked the run in this visit, and which are asked anew.
        place: What the prompt says of the place in the run.
        shown: What stands before the role in what is going on.
    """

    step: str
    limit: int | None
    event: Callable[[Signal, str], EventT]
    facts: Callable[[Request, DispatchResult | None], dict[str, Any]]
    granted: Callable[[Role], int] = lambda _: 0
    spent: frozenset[str] = frozenset()
    place: InRun = field(default_factory=InRun)
    shown: str = ""


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
    results = await results_of(ctx, _of_issue(ctx), asks)
    if not isinstance(results, list):
        return results
    answers: list[Answer] = []
    for slot, result in zip(asks, results, strict=True):
        if result is None:
            return stopped(ctx)
        if result.signal is not None:
            why = why_unusable(ctx.state, slot.role, result.signal, result.refusal)
            evidence = evidence_of(result), f"dispatches/{result.dispatch}/escape.json"
            return Event(
                signal=result.signal,
                role=slot.role,
                # the tests that came with a wrong report are looked at by who diagnoses it, and are gone on from
                tree=result.tree if slot.verify is not None and result.signal is Signal.MALFORMED else None,
                note=told_why(why, result.complaint or "", result.signal),
                refusal=result.refusal,
                evidence=tuple(name for name in evidence if ctx.path(name).exists()),
            )
        answers.append(Answer(report_of(slot, result), result))
    return answers if ctx.stopping == "no" else stopped(ctx)


def report_of(slot: Request, result: DispatchResult) -> Report:
    """Return the report of a result that counts."""
    report = parse_report(slot.kind, slot.role, slot.question, result.report or {})
    if isinstance(report, Malformed):
        raise TypeError(f"{result.dispatch}/result.json holds no {slot.kind} report: {report.sentence}")
    return report


def _of_issue(ctx: Context) -> Asking[Event]:
    """Return what an issue's run says of its dispatches: the matrix grants them."""
    task = ctx.state.current

    def facts(slot: Request, previous: DispatchResult | None) -> dict[str, Any]:
        about = (slot.role, slot.kind, task, slot.question)
        same = [r for r in ctx.run.records.values() if (r.role, r.kind, r.task, r.question) == about]
        lost = _lost(ctx, slot)  # whose number is used again, and which was no attempt
        return {
            "question": slot.question.value if slot.question else None,
            "task": task,
            "attempt": len([r for r in same if lost is None or r.number != lost.number]) + 1,
            "reask": previous.complaint if previous is not None else None,
            "base_tree": previous.tree if previous is not None and previous.tree is not None else slot.base,
            "continues": previous.dispatch if previous is not None else None,
        }

    return Asking(
        step=ctx.lane.step.value,
        limit=limit_of(ctx.state, Loop.DISPATCHES),
        event=lambda signal, note: stopped(ctx) if signal is Signal.CANCELLED else Event(signal=signal, note=note),
        facts=facts,
        granted=lambda role: ctx.state.counters.get(counter_key(ctx.state, Loop.REASK, role), 0),
        spent=_spent(ctx),
        place=InRun(ctx.lane.step.phase, ctx.why()),
    )


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


# --- the same for each workflow --------------------------------------------------------------------------------------


def as_step_says(ctx: ContextT, step: model.Step) -> ContextT:
    """Return the same ports with the model, effort and time that a step of a recipe says for the role that it asks."""
    here, agents, role = copy(ctx), ctx.config.agents, step.agent or ""
    said = {"model": step.model, "effort": step.effort, "timeout_s": step.timeout_s}
    own = agents.override(Role(role)).model_copy(update={k: v for k, v in said.items() if v is not None})
    here.config = ctx.config.model_copy(update={"agents": agents.model_copy(update={role: own})})
    here.dispatcher = copy(ctx.dispatcher)
    here.dispatcher.config = here.config
    return here


async def results_of(
    ctx: DriverContext, how: Asking[EventT], asks: Sequence[Request]
) -> list[DispatchResult | None] | EventT:
    """Ask those of several slots that have no result yet, side by side; return the results in the order of *asks*.

    None stands for a slot that the user stopped. Where nobody could be asked, or the sandbox broke, it is the event.

    Raises:
        EscapeError: what was handed in with a report has changed something outside of its view when it was measured.
    """
    missing = [await _with_tests(ctx, slot) for slot in asks if _needs_dispatch(ctx, how, slot)]
    shares = await _shares(ctx, how, missing)
    if not isinstance(shares, list):
        return shares
    each = zip(missing, cast("list[Reserved]", shares), strict=True)
    pending = [(slot, _start(ctx, how, slot, share)) for slot, share in each]
    broken: list[BoxError | EscapeError] = []
    async with anyio.create_task_group() as group:
        for slot, record in pending:
            group.start_soon(_run, ctx, how, slot, record, broken, group.cancel_scope)
    for error in broken:
        if isinstance(error, EscapeError):
            raise error
    if broken:  # the dispatch is lost, not failed: its slot is asked again when the run goes on
        return how.event(Signal.ENV_BROKEN, f"the sandbox did not work: {broken[0]}")
    results = [_last(ctx, how, slot) for slot in asks]
    if None in results and ctx.stopping == "no":
        raise LookupError(f"a slot has no finished dispatch in visit {ctx.lane.visit}")
    return results


async def _with_tests(ctx: DriverContext, slot: Request) -> Request:
    """Return the slot with the project's tools where a person answers it: whoever reads code may try it, too."""
    if slot.tools is None and ctx.config.agent(slot.role).backend is Backend.HUMAN:
        with suppress(UnmeasurableError):  # there is nothing to run the tests with, and the step does not need that
            return replace(slot, tools=await tools_for(ctx, ()))
    return slot


async def _shares(ctx: DriverContext, how: Asking[EventT], slots: Sequence[Request]) -> list[Reserved] | EventT:
    """Return what each dispatch may spend, once others have left something; or the event of a run that must stop."""
    if not slots:
        return []
    while isinstance(found := _may_start(ctx, how, slots), Held):
        over = anyio.Event()
        ctx.waiting.append(over)
        await over.wait()
    return found


def _may_start(ctx: DriverContext, how: Asking[EventT], slots: Sequence[Request]) -> list[Reserved] | Held | EventT:
    """Return what each dispatch may spend, or the event of a run that must stop before: the user, or the budget."""
    if ctx.stopping != "no":
        return how.event(Signal.CANCELLED, f"{how.step} is asked when the run goes on")
    taken = ctx.run.state.dispatches
    if how.limit is not None and taken + (asked := sum(not _is_desk_left(ctx, slot) for slot in slots)) > how.limit:
        return how.event(Signal.BUDGET, f"{taken} of {how.limit} dispatches are used up, and {how.step} asks {asked}")
    begin = [(slot.role, how.step) for slot in slots]
    # other lanes may ask somebody before this one has its answers; the trunk waits for them
    others = max(0, len(ctx.run.state.lanes.keys() - {TRUNK}) - 1)
    shares = reserve(ctx.run, ctx.config.budget, begin, beside=others)
    return how.event(Signal.BUDGET, shares.why) if isinstance(shares, UsedUp) else shares


def _slot_records(ctx: DriverContext, slot: Request) -> list[DispatchRecord]:
    return [r for r in ctx.run.records.values() if r.visit == ctx.lane.visit and r.role is slot.role]


def _lost(ctx: DriverContext, slot: Request) -> DispatchRecord | None:
    """Return the dispatch of the slot whose driver was stopped or died before it had an answer."""
    lost = [record for record in _slot_records(ctx, slot) if record.dispatch not in ctx.run.results]
    return lost[-1] if lost else None


def _is_desk_left(ctx: DriverContext, slot: Request) -> bool:
    """Return whether a person has a desk for this slot already, which they are led to again."""
    lost = _lost(ctx, slot)
    return lost is not None and lost.backend == ctx.config.agent(slot.role).backend.value == Backend.HUMAN.value


def _last(ctx: DriverContext, how: Asking[Any], slot: Request) -> DispatchResult | None:
    """Return the slot's result: one that counts wins; else the last of this attempt at the visit."""
    finished = ctx.run.results.keys() - how.spent
    results = [(r, ctx.run.results[r.dispatch]) for r in _slot_records(ctx, slot) if r.dispatch in finished]
    for _, result in results:
        if result.signal is None:
            return result
    recent = [result for record, result in results if record.resumes == ctx.run.state.resumes]
    return recent[-1] if recent else None


def _needs_dispatch(ctx: DriverContext, how: Asking[Any], slot: Request) -> bool:
    last = _last(ctx, how, slot)
    if last is None or last.signal is None:
        return last is None
    failed = [
        record
        for record in _slot_records(ctx, slot)
        if record.dispatch in ctx.run.results and record.resumes == ctx.run.state.resumes
    ]
    return len(failed) <= slot.reasks + how.granted(slot.role)


def _start(ctx: DriverContext, how: Asking[Any], slot: Request, share: Reserved) -> DispatchRecord:
    """Journal the start of a dispatch and what it may spend; a lost attempt's number is used again."""
    lost = _lost(ctx, slot)
    number = lost.number if lost is not None else max(ctx.run.records, default=0) + 1
    said: dict[str, Any] = {
        "dispatch": f"{number:03}-{how.step}-{slot.role.value}",
        "number": number,
        "step": how.step,
        "visit": ctx.lane.visit,
        "resumes": ctx.run.state.resumes,
        "role": slot.role,
        "kind": slot.kind,
        "backend": ctx.config.agent(slot.role).backend.value,
        "reserved": share,
        "lane": ctx.lane_name,
        "offered_again": _is_desk_left(ctx, slot),
    }
    record = DispatchRecord(**said, **how.facts(slot, _last(ctx, how, slot)))
    who = ctx.dispatcher.who(record)
    service = who.service.name if who.service is not None else None
    record = record.model_copy(update={"model": who.model, "service": service})
    ctx.run.start_dispatch(record)
    again = " (asked again)" if record.reask else ""
    ctx.say(f"{record.dispatch}: asking @{slot.role.value} to {slot.kind}, {who}{again}")
    return record


async def _run(
    ctx: DriverContext,
    how: Asking[Any],
    slot: Request,
    record: DispatchRecord,
    broken: list[BoxError | EscapeError],
    all_of_them: anyio.CancelScope,
) -> None:
    words = LiveWords(ctx.secrets)
    doing = f"{how.shown}@{slot.role.value} ({ctx.dispatcher.who(record)})"
    with ctx.progress.doing(doing, words.said) as took:
        try:
            place = replace(how.place, on_words=words.hear, rest=partial(rest, ctx))
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


async def _verified(ctx: DriverContext, slot: Request, result: DispatchResult) -> DispatchResult:
    """Return the result, which does not count where what was handed in shows that the report cannot be true.

    It is on disk as it came already, so that a crash meanwhile loses no answer; the step measures in any case.
    """
    if slot.verify is None or result.signal is not None:
        return result
    refused = await slot.verify(report_of(slot, result), result.tree or slot.base)
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
    write_atomic(ctx.path(evidence_of(result)), to_json(document))
    return result


def _known(result: DispatchResult) -> list[str]:
    """Return what is known of what an answer took, in words."""
    usage = result.usage
    tokens = (usage.input_tokens, usage.output_tokens)
    known = [f"{sum(count or 0 for count in tokens):,} tokens"] if None not in tokens and any(tokens) else []
    return known + ([f"{usage.cost_usd:.2f} USD"] if usage.cost_usd else [])


def waiting_for(ctx: DriverContext, *, person: bool) -> list[str]:
    """Return the dispatches of this visit that have not answered: those of people, or those of agents at work.

    Seen from the trunk they are those of all lanes.
    """
    lanes = ctx.run.state.lanes.values() if ctx.lane_name == TRUNK else (ctx.lane,)
    visits = {lane.visit for lane in lanes}
    records = [each for each in ctx.run.records.values() if each.visit in visits]
    over = {*ctx.run.results, *ctx.run.resting}
    open_ones = [each for each in records if each.dispatch not in over]
    return [each.dispatch for each in open_ones if (each.backend == Backend.HUMAN.value) == person]


def stopped(ctx: Context) -> Event:
    """Return the event of a run that the user stopped; its note says what stays of what was going on."""
    said = [f"the desk of {name} stays as it is" for name in waiting_for(ctx, person=True)]
    said += [f"{name} had not answered and is asked again" for name in waiting_for(ctx, person=False)]
    if not said and any(record.visit == ctx.lane.visit for record in ctx.run.records.values()):
        said = [f"what was answered is kept, and the step {ctx.lane.step} goes on with it"]
    elif not said:
        said = [f"nobody was being asked, and the step {ctx.lane.step} begins again"]
    return Event(signal=Signal.CANCELLED, note="; ".join(said))


_LOOKS_S: Final = 1.0
"""How often the clock is asked: that of the machine goes on while it sleeps, and one that only grows may not."""


async def rest(ctx: DriverContext, pause: Rest) -> None:
    """Wait as long as a dispatch must.

    Raises:
        StoppedError: the run is being stopped.
    """
    what = f"waiting to ask {pause.then} again"
    if pause.until is not None:
        said = as_text(pause.until)
        what = f"waiting until {moment_words(said)} to ask {pause.then} again, whose limit ends then"
        ctx.note(DispatchWaits(dispatch=pause.dispatch, not_before=said, why=pause.why))
    ctx.run.resting.add(pause.dispatch)
    end = datetime.now(UTC) + timedelta(seconds=pause.seconds)
    try:
        with ctx.progress.doing(what):
            while ctx.stopping == "no" and (left_s := (end - datetime.now(UTC)).total_seconds()) > 0:  # noqa: ASYNC110  (a clock is no event)
                await anyio.sleep(min(left_s, _LOOKS_S))
        if ctx.stopping != "no":
            raise StoppedError
    finally:
        ctx.run.resting.discard(pause.dispatch)
