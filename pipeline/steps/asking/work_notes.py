"""Collects what @test and @make say of their own work: notes, assumptions, what is missing.

Nothing of it decides: a claim of being done is measured, and a doubt is read by whoever reviews.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, cast

from pydantic import BeforeValidator, TypeAdapter

from pipeline.reports.markdown import bullets
from pipeline.reports.untrusted_text import one_line
from pipeline.routing.state import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.steps.context import Context

_TEXTS: Final = TypeAdapter(
    Annotated[tuple[str, ...], BeforeValidator(lambda one: (one,) if isinstance(one, str) else one)]
)
_KINDS: Final = frozenset({"write-tests", "stub", "seam", "implement", "build"})
_SAID: Final[Mapping[str, str]] = {
    "assumptions": "assumes",
    "notes": "notes",
    "blocking_issue": "says that this is in the way",
    "attempts": "tried",
    "missing": "says that this is missing",
    "why": "because",
    "suggestion": "suggests",
    "escalation_reason": "wants a second look",
}
"""Fields of reports that nothing else reads once the work is measured, in words."""


def work_notes(ctx: Context) -> tuple[str, ...]:
    """Return one line for each thing that the last answer of each kind says of a task, tasks in order."""
    last: dict[tuple[str, str], str] = {}
    for _, record in sorted(ctx.run.records.items()):
        result = ctx.run.results.get(record.dispatch)
        if record.kind in _KINDS and record.task is not None and result is not None and result.report is not None:
            last[record.task, record.kind] = record.dispatch
    dropped = {task.id for task in ctx.state.tasks.values() if task.status is TaskStatus.DROPPED}
    return tuple(
        f"task {task}, @{'test' if kind == 'write-tests' else 'make'} ({kind}) {line}"
        for (task, kind), dispatch in last.items()
        if task in ctx.state.tasks and task not in dropped
        for line in _said(ctx.run.results[dispatch].report or {})
    )


def notes_of_tests(ctx: Context, task: str) -> tuple[str, ...]:
    """Return what the last answer of @test says of its tests of a task: whoever makes them pass is to know it."""
    asked = [r.dispatch for _, r in sorted(ctx.run.records.items()) if r.kind == "write-tests" and r.task == task]
    found = [result.report for name in asked if (result := ctx.run.results.get(name)) is not None and result.report]
    return tuple(_said(found[-1])) if found else ()


def work_notes_md(ctx: Context) -> str:
    """Return the document for the final review, empty where nobody said anything."""
    lines = work_notes(ctx)
    return f"# What @test and @make say of their own work\n\n{bullets(lines)}\n" if lines else ""


def _said(report: Mapping[str, object]) -> Iterator[str]:
    for name, words in _SAID.items():
        yield from (
            f"{words}: {one_line(text)}" for text in _TEXTS.validate_python(report.get(name) or ()) if text.strip()
        )
    for bug in cast("list[dict[str, str]]", report.get("out_of_scope") or []):
        yield f"reports a bug that was there before, and that is filed: {one_line(bug['title'])}"
