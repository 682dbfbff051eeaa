"""What a run saw and did not do: bugs, blockers and missing seams become sub-issues; advice is only recorded (ADR-11).

This is the `builtin` backend of @pm: rules and our tracker library, no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pipeline.reports.foreign import block, one_line
from pipeline.steps.final_review import not_testable_manifest
from pipeline.steps.reviews import all_last_reviews
from todo import NO_EDITS, Edits, NewIssue, Tracker

if TYPE_CHECKING:
    from pipeline.steps.context import Context

_TITLE_LIMIT = 120


@dataclass(frozen=True)
class Item:
    """One thing to file."""

    label: str
    title: str
    body: str
    provenance: str


def items(ctx: Context) -> tuple[Item, ...]:
    """Return what must be filed, in the order in which it was seen; the same thing seen twice counts once."""
    run_id = ctx.run.info.run_id
    found: list[Item] = []
    for record in sorted(ctx.run.records.values(), key=lambda r: r.number):
        result = ctx.run.results.get(record.dispatch)
        if result is None or result.signal is not None or result.report is None:
            continue
        for bug in cast("list[dict[str, str]]", result.report.get("out_of_scope") or []):
            where = f"{run_id}, {record.dispatch}"
            body = block(bug.get("description", ""))
            found.append(Item("bug", bug["title"], body, f"Seen by @{record.role} in {where}."))
    on_record = set(ctx.state.open_blockers)
    for review in all_last_reviews(ctx).values():
        for finding in review.ledger.blockers:
            if finding.id in on_record:
                said = (finding.problem, finding.risk, finding.suggestion)
                body = "\n\n".join(block(text) for text in said if text.strip())
                found.append(Item("followup", finding.headline, body, f"Open finding {finding.id} of {run_id}."))
    for entry in not_testable_manifest(ctx):
        seam = str(entry.get("future_seam") or "").strip()
        if seam:
            title = f"Make it testable: {seam.splitlines()[0]}"
            found.append(Item("tech-debt", title, block(seam), f"Task {entry['task']} of {run_id} has no test."))
    unique = {(item.label, item.title.casefold()): item for item in reversed(found)}
    return tuple(item for item in found if unique.get((item.label, item.title.casefold())) is item)


def file_items(tracker: Tracker, parent: str, wanted: tuple[Item, ...]) -> tuple[tuple[str, ...], Edits]:
    """Return the ids of the filed sub-issues, and the edits; what is open already under *parent* is not filed twice."""
    filed: list[str] = []
    edits = NO_EDITS
    for item in wanted:
        now = tracker.with_edits(edits)
        title = one_line(item.title)[:_TITLE_LIMIT]
        if now.find_duplicate(title, parent) is not None:
            continue
        new = NewIssue(
            title=title, parent=parent, labels=(item.label,), description=item.body, provenance=item.provenance
        )
        issue_id, more = now.create(new)
        filed.append(issue_id)
        edits = edits.then(more)
    return tuple(filed), edits
