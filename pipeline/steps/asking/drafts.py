"""Shares what PLAN and SPLIT need: the artifacts that lead to a draft, and findings as input of the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.dispatch.results import refusal_of
from pipeline.reports.markdown import bullets
from pipeline.routing.refusals import told_why, why_unusable
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Loop, Signal
from pipeline.runs import plans
from pipeline.steps.asking.questions import answers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeline.reports.drafts import PlanAndTasks, PlanReport
    from pipeline.reports.problems import Problem
    from pipeline.steps.context import Context


REFUSED: Final = "drafts/"
"""Where task files lie that hygiene refused: nobody but the next draft is given them."""


def draft_artifacts(ctx: Context) -> dict[str, list[Path]]:
    """Return the artifacts of a draft: the issue, and what the decision that led here was based on.

    A person's feedback is an artifact of its own name; everything else that sends a draft back is `findings`.
    """
    artifacts = {"issue": [ctx.path("issue.md")], **answers(ctx)}
    came_back = [ctx.path(name) for name in ctx.handed_words() if not name.startswith(REFUSED)]
    if ctx.lane.via is Loop.HUMAN:
        artifacts["feedback"] = came_back
    elif ctx.lane.via is not None and came_back:
        artifacts["findings"] = came_back
    return artifacts


def hygiene_evidence(
    ctx: Context,
    what: str,
    problems: Sequence[Problem],
    number: str,
    drafts: Sequence[str] = (),
    *,
    report_sha256: str | None,
) -> Event:
    """Return HYGIENE with the problems as an artifact: rule, line, sentence; `drafts` are what they were found in.

    `number` tells the file from those of other drafts; `report_sha256` is of what was handed in, None of what was not.
    """
    lines = bullets(f"{p.severity} {p.rule}, line {p.line}: {p.message}" for p in problems)
    text = f"# Dispatch hygiene: this {what} cannot be handed to anybody yet\n\n{lines}\n"
    name = ctx.write(f"reviews/hygiene-{what}-{number}.md", text)
    first = next((p for p in problems if p.severity == "error"), problems[0])
    refusal = refusal_of(report_sha256, text) if report_sha256 is not None else None
    why = why_unusable(ctx.state, None, Signal.HYGIENE, refusal)
    note = told_why(why, f"{first.rule}: {first.message}", Signal.HYGIENE)
    return Event(signal=Signal.HYGIENE, note=note, evidence=(name, *drafts), refusal=refusal)


def planned(ctx: Context) -> PlanReport | PlanAndTasks:
    """Return the report that plan.md was rendered from: the last draft that counted."""
    return plans.planned(ctx.run)


def planned_files(ctx: Context) -> frozenset[str]:
    """Return the files of the plan; none where nobody plans."""
    return frozenset() if ctx.state.one_writer else frozenset(file.path for file in planned(ctx).files)


def as_given(ctx: Context) -> PlanAndTasks | None:
    """Return the plan that the recipe brings along, where it is what counts here: nothing has come back yet."""
    return plans.as_given(ctx.run) if ctx.lane.via is None else None
