"""Asks roles for the steps of a recipe: readers for words and payloads, @make for changes of files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pipeline.agents.dispatch.request import Request
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.fields import HonouredSeam, Report
from pipeline.judge.reports.kinds import Answered, Questions, Unanswerable, Unsure
from pipeline.judge.reports.markdown import bullets, sections
from pipeline.judge.reports.payloads import form_of, read_payload, with_checked_quotes
from pipeline.judge.reports.untrusted_text import block, one_line
from pipeline.judge.reports.work_reports import CannotProceed, Complete, Incomplete
from pipeline.matrix.recipes.next_steps import seams_of
from pipeline.matrix.recipes.plan import most_dispatches
from pipeline.matrix.recipes.step_table import StepEvent, StepSignal
from pipeline.matrix.recipes.templates import area_texts, areas_by_item, below
from pipeline.matrix.scheduling.patterns import fault, parsed
from pipeline.run.files import to_json
from pipeline.steps.asking.dispatches import Asking, as_step_says, evidence_of, report_of, results_of
from pipeline.steps.recipe_tests import payload_proved, scope_of, tools_of
from pipeline.testing.measure.measuring import changed_paths
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from pipeline.matrix.recipes.model import Step
    from pipeline.run.info import DispatchResult
    from pipeline.steps.recipe_context import RecipeContext

REVIEW: Final = "review-step"
"""What reviewers of a step are asked."""
_SIGNALS: Final[dict[type[Report], StepSignal]] = {
    Answered: StepSignal.ANSWERED,
    Unsure: StepSignal.UNSURE,
    Questions: StepSignal.QUESTIONS,
}
"""What an answer of a reader means, where it can go on."""


async def ask(ctx: RecipeContext) -> StepEvent:
    """Ask the role of the step, unless it has answered before a crash; return what came of it, with the files."""
    request = await _request(ctx)
    results = await ask_all(as_step_says(ctx, ctx.step), [request])
    if isinstance(results, StepEvent):
        return results
    (result,) = results
    writes = request.area is not None
    event = not_counting(result)
    if event is None:
        event = _changed(ctx, request, result) if writes else await _answered(ctx, request, result)
    return event.model_copy(update={"tree": result.tree}) if writes else event


async def ask_all(ctx: RecipeContext, requests: Sequence[Request]) -> list[DispatchResult] | StepEvent:
    """Return what roles answered in this visit of the step; or the event of a step that could not ask them."""
    how = Asking(
        step=ctx.lane_name,
        limit=most_dispatches(len(ctx.run.recipe.steps)),
        event=lambda signal, note: StepEvent(signal=StepSignal(signal.value), note=note),
        facts=partial(_facts, ctx),
        shown=f"{ctx.lane_name}: ",
    )
    results = await results_of(ctx, how, requests)
    if not isinstance(results, list):
        return results
    answered = [result for result in results if result is not None]
    stopped = StepEvent(signal=StepSignal.CANCELLED, note=f"{ctx.lane_name} is asked when the run goes on")
    return answered if len(answered) == len(requests) else stopped


def _facts(ctx: RecipeContext, request: Request, _: DispatchResult | None) -> dict[str, Any]:
    """Return what the record of a dispatch says: the machine asks again in a new visit."""
    mine = [one for one in ctx.run.records.values() if (one.lane, one.role) == (ctx.lane_name, request.role)]
    before = [ctx.run.results[one.dispatch] for one in mine if one.dispatch in ctx.run.results]
    failed = before[-1] if before and before[-1].signal is not None else None
    return {
        "question": None,
        "task": None,
        "attempt": ctx.lane.attempt,
        "reask": failed.complaint if failed is not None else None,
        "base_tree": request.base,
    }


async def _request(ctx: RecipeContext) -> Request:
    """Return what the role of the step is asked.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    step, artifacts = ctx.step, handed(ctx)
    artifacts["findings"] = came_back(ctx, "review")
    writer: dict[str, Any] = {}
    writes = step.agent == Role.MAKE
    if writes:
        artifacts["measured"] = came_back(ctx, "measured")
        area = tuple(parsed(text) for text in area_texts(step, ctx.run.inputs, ctx.item()))
        writer = {"area": area, "tests": await scope_of(ctx), "tools": await tools_of(ctx)}
    elif step.payload is not None:
        name, form = f"steps/{ctx.lane_name}/payload_schema.json", to_json(form_of(step.payload))
        artifacts |= ctx.artifact("payload_schema", name, form)
    is_last = ctx.run.machine.is_last(ctx.run.state, ctx.lane_name)
    return Request(
        Role(step.agent or ""),
        "change" if writes else "answer",
        ctx.tree,
        artifacts=artifacts,
        accept=None if is_last else partial(_refusal, ctx),
        **writer,
    )


def _refusal(ctx: RecipeContext, report: Report) -> Malformed | None:
    _, faults = _payload(ctx, report)
    told = f"`payload` is not of the form that is asked for: {'; '.join(faults)}."
    return Malformed(told, "/payload") if faults else unsaid(ctx.step, report)


def _payload(ctx: RecipeContext, report: Report) -> tuple[JsonValue, list[str]]:
    """Return the payload of an answer, and what keeps it from being what the step asks for."""
    wanted = ctx.step.payload
    if wanted is None or not isinstance(report, Answered | Unsure):
        return None, []
    payload, faults = read_payload(report.payload, wanted)
    return payload, faults or area_faults(ctx, payload)


async def _answered(ctx: RecipeContext, request: Request, result: DispatchResult) -> StepEvent:
    """Return what a reader's answer comes to, with its words and its payload written."""
    evidence, report = (evidence_of(result),), report_of(request, result)
    payload, faults = _payload(ctx, report)
    payload, missing = with_checked_quotes(payload, lambda path: _content(ctx, path))
    payload, proofs = await payload_proved(ctx, payload) if not faults else (payload, ())
    name = ctx.lane_name
    ctx.write(f"steps/{name}/{name}.md", answered_md(report, (*faults, *missing), proofs))
    if faults:
        return StepEvent(signal=StepSignal.PAYLOAD_INVALID, note="; ".join(faults), evidence=evidence)
    if ctx.step.payload is not None and isinstance(report, Answered | Unsure):
        ctx.write_json(f"steps/{name}/{name}.json", payload)
    note = report.questions if isinstance(report, Questions) else ""
    note = report.missing if isinstance(report, Unanswerable) else note or "; ".join(missing)
    return StepEvent(
        signal=_SIGNALS.get(type(report), StepSignal.CANNOT_PROCEED),
        note=note,
        evidence=evidence,
        items={step.id: len(items) for step, items in _lists(ctx, payload)},
        areas=areas_of(ctx, payload),
        open_seams=open_seams(ctx.step, report),
    )


def _content(ctx: RecipeContext, path: str) -> str | None:
    found = ctx.repository.blob(f"{ctx.base}:{path}")
    return None if found is None else found.decode(errors="replace")


def _changed(ctx: RecipeContext, request: Request, result: DispatchResult) -> StepEvent:
    """Return what a writer's answer comes to, with its words and its patch written."""
    report, name, tree = report_of(request, result), ctx.lane_name, result.tree or ctx.tree
    ctx.write(f"steps/{name}/{name}.patch", ctx.repository.patch(ctx.base, tree))
    ctx.write(f"steps/{name}/{name}.md", changed_md(report, changed_paths(ctx, ctx.base, tree)))
    evidence = (evidence_of(result), f"steps/{name}/{name}.patch")
    match report:
        case Complete():
            return StepEvent(signal=StepSignal.ANSWERED, evidence=evidence, open_seams=open_seams(ctx.step, report))
        case Incomplete():
            return StepEvent(signal=StepSignal.INCOMPLETE, note=report.blocking_issue, evidence=evidence)
        case _:
            return StepEvent(signal=StepSignal.CANNOT_PROCEED, note=getattr(report, "missing", ""), evidence=evidence)


def handed(ctx: RecipeContext) -> dict[str, list[Path]]:
    """Return what each role is handed that a step asks: the request, the values in it, what came before."""
    said, inputs = ctx.told(ctx.step.prompt or "")
    return {
        **ctx.artifact("request", f"steps/{ctx.lane_name}/request.md", f"{said.rstrip()}{seams_told(ctx.step)}\n"),
        "inputs": inputs,
        "feedback": ctx.feedback(),
        "outcomes": [path for id_ in ctx.run.machine.ancestors(ctx.step.id) for path in ctx.left_by(id_)],
    }


def came_back(ctx: RecipeContext, what: str) -> list[Path]:
    """Return what the last measurement, or review, said of the work that is asked for again."""
    path = ctx.path(f"steps/{ctx.lane_name}/{what}.md")
    return [path] if ctx.lane.attempt > 1 and path.is_file() else []


def not_counting(result: DispatchResult) -> StepEvent | None:
    """Return the event of an answer that does not count; None where it does. A tree has what could be kept of it."""
    if result.signal is None:
        return None
    signal = StepSignal(result.signal.value)
    return StepEvent(signal=signal, note=result.complaint or "", evidence=(evidence_of(result),))


def seams_told(step: Step) -> str:
    """Return what the request says of the contracts of its step; nothing where it is no side of one."""
    said = [f"* `{one_line(seam)}`: this step provides it." for seam in step.provides]
    said += [f"* `{one_line(seam)}`: this step relies on it." for seam in step.requires if seam not in step.provides]
    if not said:
        return ""
    lines = "\n".join(said)
    return f"\n\n## Contracts between steps\n\n{lines}\n\nSay of each in `seams` whether your work keeps to it."


def seams_said(report: Report) -> dict[str, HonouredSeam]:
    """Return what a role said of each contract, by name; what it said last counts."""
    return {one.name: one for one in getattr(report, "seams", ()) if isinstance(one, HonouredSeam)}


def unsaid(step: Step, report: Report) -> Malformed | None:
    """Return the refusal of a report that leaves out a contract of its step."""
    missing = [seam for seam in seams_of(step) if seam not in seams_said(report)]
    if not missing or not hasattr(report, "seams"):
        return None
    return Malformed(
        f"`seams` says nothing of {', '.join(map(one_line, missing))}: say whether you keep to it.", "/seams"
    )


def open_seams(step: Step, report: Report) -> tuple[str, ...]:
    """Return the contracts of a step that a role does not say it keeps to."""
    said = seams_said(report)
    return tuple(seam for seam in seams_of(step) if seam not in said or not said[seam].honoured)


def areas_of(ctx: RecipeContext, payload: JsonValue) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return what each of these steps may change, where that depends on its item."""
    found = {step.id: areas_by_item(step, ctx.run.inputs, items) for step, items in _lists(ctx, payload)}
    return {step: areas for step, areas in found.items() if areas}


def area_faults(ctx: RecipeContext, payload: JsonValue) -> list[str]:
    """Return what is wrong with the patterns that the items of a payload make."""
    areas = areas_of(ctx, payload)
    texts = [(step, text) for step, area in areas.items() for one in area for text in one]
    return [f"{text!r}, which {step} may change: {why}" for step, text in texts if (why := fault(text)) is not None]


def _lists(ctx: RecipeContext, payload: JsonValue) -> list[tuple[Step, list[JsonValue]]]:
    machine = ctx.run.machine
    found = [(machine.steps[id_], below(payload, keys)) for id_, keys in machine.lists_of(ctx.step.id)]
    return [(step, items) for step, items in found if isinstance(items, list)]


def answered_md(report: Report, doubts: tuple[str, ...], proofs: tuple[str, ...] = ()) -> str:
    """Return what a role said, for people and for the steps behind it.

    Args:
        report: What it answered.
        doubts: What we found of it.
        proofs: What came of the proofs in it.
    """
    if isinstance(report, Questions):
        return sections(("Questions", block(report.questions))).lstrip()
    if isinstance(report, Unanswerable):
        return sections(("Missing", block(report.missing)), ("Why", block(report.why))).lstrip()
    if not isinstance(report, Answered | Unsure):
        return ""
    open_ = sections(
        ("Left open", block(report.limitations)), ("Not as it says", bullets(doubts)), ("Proofs", bullets(proofs))
    )
    return f"{report.output.strip()}\n{open_}"


def changed_md(report: Report, changed: Sequence[str]) -> str:
    """Return what a writer said of its work, under which files it did change."""
    files = bullets(f"`{one_line(path)}`" for path in changed) or "Nothing."
    if isinstance(report, Incomplete):
        said = (("Left open", block(report.blocking_issue)), ("Tried", bullets(report.attempts)))
        return sections(*said, ("Changed", files)).lstrip()
    if not isinstance(report, Complete):
        missing = block(report.missing) if isinstance(report, CannotProceed) else ""
        return sections(("Missing", missing)).lstrip()
    more = (("Assumed", bullets(report.assumptions)), ("Notes", block(report.notes)))
    return f"{report.summary.strip()}\n{sections(('Changed', files), *more)}".lstrip()
