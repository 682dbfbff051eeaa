"""What a step of a recipe came to, as a file: its checkpoint, its bundle, and what it leaves open."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pipeline.engine.events import DecisionMade
from pipeline.recipes.step_table import Checkpoint
from pipeline.reports.answers import Answered, Questions, Unanswerable, Unsure
from pipeline.reports.markdown import bullets, sections
from pipeline.reports.untrusted_text import block, one_line
from pipeline.reports.work import CannotProceed, Complete, Incomplete
from pipeline.steps.recipe_trees import CollisionError, base_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.reports.fields import Report
    from pipeline.steps.recipe_context import RecipeContext


def answered_md(report: Report, doubts: tuple[str, ...]) -> str:
    """Return what a role said, for people and for the steps behind it; *doubts* is what we found of it."""
    if isinstance(report, Questions):
        return sections(("Questions", block(report.questions))).lstrip()
    if isinstance(report, Unanswerable):
        return sections(("Missing", block(report.missing)), ("Why", block(report.why))).lstrip()
    if not isinstance(report, Answered | Unsure):
        return ""
    open_ = sections(("Left open", block(report.limitations)), ("Not as it says", bullets(doubts)))
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


def write_outcome(ctx: RecipeContext, name: str, checkpoint: Checkpoint) -> str:
    """Write `steps/<name>/outcome.json` of a step that is settled; return its name."""
    run = ctx.run
    records = [one for one in run.records.values() if one.lane == name]
    decided = [line for line in run.journal.of(DecisionMade) if line.data.lane == name]
    last = decided[-1].data if decided else None
    step = run.machine.step_of(name)
    files = [f"steps/{name}/{name}.{kind}" for kind in ("md", "json", "patch")]
    there = [file for file in files if ctx.path(file).is_file()]
    payload = next((file for file in there if file.endswith(".json")), None)
    base = _base(ctx, name)
    held = [one for one in step.depends_on for each in run.machine.names(run.state, one) if _is_in_the_way(ctx, each)]
    return ctx.write_json(
        f"steps/{name}/outcome.json",
        {
            "schema": "redfirst.step-outcome/1",
            "step": name,
            "dispatches": [one.dispatch for one in records],
            "signal": last.signal if last is not None else None,
            "checkpoint": checkpoint.value,
            "summary": ctx.words_of(name).strip().partition("\n")[0][:200],
            "error": _error(last, checkpoint),
            "base_tree": base,
            "tree": run.state.trees.get(name, base),
            "held_by": held if checkpoint is Checkpoint.HELD else [],
            "bundle": {
                "dependent_safe": checkpoint is Checkpoint.READY,
                "artifacts": [{"path": file, "sha256": _sha256(ctx.path(file).read_bytes())} for file in there],
                "verification": [],
                "limitations": [last.note] if last is not None and last.note and checkpoint.is_usable else [],
                "payloads": [
                    {
                        "schema": step.payload if isinstance(step.payload, str) else "inline",
                        "provenance": records[-1].dispatch if records else "measured",
                        "valid": True,
                        "path": payload,
                    }
                ]
                if payload is not None
                else [],
                "seams": [],
            },
            "safe_next_actions": [] if checkpoint is Checkpoint.READY else [f"redfirst resume {run.info.run_id}"],
        },
    )


def _base(ctx: RecipeContext, name: str) -> str:
    try:
        return base_of(ctx, name)
    except CollisionError:
        return ctx.run.info.start_tree


def _is_in_the_way(ctx: RecipeContext, name: str) -> bool:
    return ctx.run.state.settled.get(name) is not Checkpoint.READY


def _error(last: DecisionMade | None, checkpoint: Checkpoint) -> dict[str, str] | None:
    if last is None or checkpoint not in {Checkpoint.FAILED, Checkpoint.NEEDS_ORCHESTRATOR}:
        return None
    return {"kind": last.signal.lower(), "message": last.note}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
