"""Tells a role of the contracts of its step, and finds those that it does not say it keeps to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.recipes.machine import seams_of
from pipeline.reports.decode import Malformed
from pipeline.reports.fields import HonouredSeam
from pipeline.reports.untrusted_text import one_line

if TYPE_CHECKING:
    from pipeline.recipes.model import Step
    from pipeline.reports.fields import Report


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
