"""Does the own steps of a recipe on the way of an issue: @make writes what each says, before the review.

FINAL_REVIEW asks for one of them in each visit (the rows WRITTEN and NOT_WRITTEN). What is written was measured as it
is: whatever passed before the run, or at the GREEN of a task, passes over it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.agents.dispatch.request import Request
from pipeline.judge.reports.work_reports import Complete
from pipeline.matrix.recipes.plan import ATTEMPTS, area_of
from pipeline.matrix.recipes.templates import Reference, filled
from pipeline.matrix.routing.state import Event
from pipeline.run.plans import kept_recipe
from pipeline.steps.asking.dispatches import Answer, as_step_says, ask
from pipeline.steps.asking.grants import scope_without_task
from pipeline.steps.evidence_records import baseline_of, files_of, known_tests
from pipeline.steps.publication.commits import request_name
from pipeline.steps.publication.suite_check import held_md, hold
from pipeline.steps.recipe_ask import changed_md
from pipeline.steps.recipe_context import in_text
from pipeline.testing.measure.measuring import changed_paths
from pipeline.testing.measure.project_tools import tools_for
from pipeline.vocabulary import Role, Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.matrix.recipes.model import Step
    from pipeline.steps.context import Context

_ASKED_AGAIN: Final = frozenset({Signal.MALFORMED, Signal.VIOLATION, Signal.TIMED_OUT})
_AGAIN: Final = (
    "\n\nYou have done this before: what you wrote then lies in the workspace, and others have worked on it since. "
    "Change only what has to be otherwise now."
)


async def run(ctx: Context, name: str) -> Event:
    """Return WRITTEN with the files as the step leaves them, or NOT_WRITTEN and why."""
    recipe, values = kept_recipe(ctx.run)
    step = next(one for one in recipe.steps if one.id == name)
    answer = await _asked(as_step_says(ctx, step), step, await _request(ctx, step, values))
    return answer if isinstance(answer, Event) else await _written(ctx, step, answer)


def answer_name(step: str) -> str:
    """Return where it is kept what a step said of its work."""
    return f"steps/{step}/{step}.md"


async def _asked(ctx: Context, step: Step, request: Request) -> Answer | Event:
    """Return the answer that counts, asked for as often as the step says; the others are told in NOT_WRITTEN."""
    answer = await ask(ctx, request)
    for number in range(1, step.attempts or ATTEMPTS):
        if not isinstance(answer, Event) or answer.signal not in _ASKED_AGAIN:
            break
        answer = await ask(ctx, replace(request, reasks=number))
    if isinstance(answer, Event) and answer.signal in _ASKED_AGAIN:
        note = f"{step.id}: {answer.signal.value}: {answer.note}"
        return Event(signal=Signal.NOT_WRITTEN, note=note, evidence=answer.evidence)
    return answer


async def _request(ctx: Context, step: Step, values: dict[str, str]) -> Request:
    inputs: list[Path] = []

    def keep(name: str, text: str) -> Path:
        return ctx.path(ctx.write(f"steps/{step.id}/{name}", text))

    def value(one: Reference) -> str:
        if one.input is None:
            return f"(what `{one.step}` came to is among the artifacts `outcomes`)"
        return in_text(f"{one.input}.txt", values[one.input], keep, inputs)

    said = filled(step.prompt or "", value).rstrip()
    before = any(one.step == step.id for one in ctx.state.written)
    asked = keep(request_name(step.id).rpartition("/")[2], f"{said}{_AGAIN if before else ''}\n")
    measured = ctx.path(_measured_name(ctx, step))
    tree = [entry.path for entry in ctx.repository.entries(ctx.run.info.start_tree)]
    scope = scope_without_task(baseline_of(ctx), tree, ctx.toolchain.sources)
    return Request(
        Role.MAKE,
        "change",
        ctx.state.head,
        artifacts={
            "request": [asked],
            "inputs": inputs,
            "outcomes": _outcomes(ctx, step),
            "measured": [measured] if measured.is_file() else [],
        },
        area=area_of(step, values),
        tests=replace(scope, known=scope.known.union(files_of(ctx, known_tests(ctx)))),  # and what its tasks brought
        tools=await tools_for(ctx, ()),
    )


def _outcomes(ctx: Context, step: Step) -> list[Path]:
    """Return what the run came to so far: issue, plan, tasks, the whole change, what steps like this one said."""
    names = ["issue.md", "plan.md", *(f"task-{task.id}.md" for task in ctx.state.done_tasks)]
    patch = ctx.repository.patch(ctx.state.start, ctx.state.head)
    if patch:
        names.append(ctx.write(f"steps/{step.id}/so-far.patch", patch))
    names += dict.fromkeys(answer_name(one.step) for one in ctx.state.written)
    return [path for path in map(ctx.path, names) if path.is_file()]


async def _written(ctx: Context, step: Step, answer: Answer) -> Event:
    """Return what the work comes to, measured.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    head, report = ctx.state.head, answer.report
    tree = answer.result.tree or head
    changed = changed_paths(ctx, head, tree)
    names = (ctx.write(answer_name(step.id), changed_md(report, changed)), answer.evidence)
    if not isinstance(report, Complete):
        why = getattr(report, "blocking_issue", None) or getattr(report, "missing", "")
        return Event(signal=Signal.NOT_WRITTEN, note=f"{step.id}: @make: {why}", evidence=names)
    if tree != head:
        held = await hold(ctx, tree)
        if held.lost:
            measured = ctx.write(_measured_name(ctx, step), held_md(held))
            note = f"{step.id}: {held.in_short}"
            return Event(signal=Signal.NOT_WRITTEN, note=note, evidence=(measured, *names))
    note = f"{step.id}: {', '.join(changed) or 'nothing had to be changed'}"
    return Event(signal=Signal.WRITTEN, tree=tree, note=note, evidence=names)


def _measured_name(ctx: Context, step: Step) -> str:
    return f"steps/{step.id}/measured-{ctx.lane.visit:03}.md"
