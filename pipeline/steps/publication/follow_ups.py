"""Files what a run saw and did not do: bugs, blockers and missing seams as sub-issues (ADR-11).

This is the `builtin` backend of @pm: rules and our tracker library, no model. A model behind @pm finds other words for
the same items (`wording`); what is filed, and where, is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from pydantic import BaseModel, ConfigDict

from pipeline.reports.untrusted_text import block, one_line
from pipeline.routing.vocabulary import Role
from pipeline.runs import tracker
from pipeline.steps.asking.reviews import all_last_reviews
from pipeline.steps.evidence.records import read_evidence
from todo import NO_EDITS, Edits, NewIssue, Tracker
from todo.issue import normalised_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.steps.context import Context

TITLE_LIMIT: Final = 120
"""In characters; a rule's title is cut there."""


class Item(BaseModel):
    """One thing to file; `body` is fit to stand in an issue.

    `seen_as` is the title by the rule: under other words it would be filed again although it is open already.
    `duplicate_of` names the open issue that asks for the same, by the word of @pm; then there is nothing to file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    labels: tuple[str, ...]
    title: str
    body: str
    provenance: str
    seen_as: str
    duplicate_of: str | None = None


def items(ctx: Context) -> tuple[Item, ...]:
    """Return what must be filed, in the order in which it was seen; the same thing seen twice counts once.

    What @pm itself saw while it was asked for words comes last: the numbers of what it was asked about stay theirs.
    """
    found = [*_bugs(ctx, by_pm=False), *_blockers(ctx), *_seams(ctx), *_bugs(ctx, by_pm=True)]
    unique = {(item.labels, item.title.casefold()): item for item in reversed(found)}
    return tuple(item for item in found if unique.get((item.labels, item.title.casefold())) is item)


def _item(label: str, title: str, body: str, provenance: str) -> Item:
    return Item(labels=(label,), title=title, body=body, provenance=provenance, seen_as=title)


def _bugs(ctx: Context, *, by_pm: bool) -> Iterator[Item]:
    run_id = ctx.run.info.run_id
    for record in sorted(ctx.run.records.values(), key=lambda r: r.number):
        result = ctx.run.results.get(record.dispatch)
        if result is None or result.signal is not None or result.report is None:
            continue
        if (record.role is Role.PM) != by_pm:
            continue
        for bug in cast("list[dict[str, str]]", result.report.get("out_of_scope") or []):
            where = f"{run_id}, {record.dispatch}"
            yield _item("bug", bug["title"], block(bug.get("description", "")), f"Seen by @{record.role} in {where}.")


def _blockers(ctx: Context) -> Iterator[Item]:
    on_record = set(ctx.state.open_blockers)
    for review in all_last_reviews(ctx).values():
        for finding in review.ledger.open:
            if finding.id in on_record:
                said = (finding.problem, finding.risk, finding.suggestion)
                body = "\n\n".join(block(text) for text in said if text.strip())
                where = f"Open finding {finding.id} of {ctx.run.info.run_id}."
                yield _item("followup", finding.headline, body, where)


def _seams(ctx: Context) -> Iterator[Item]:
    for entry in not_testable_manifest(ctx):
        seam = str(entry.get("future_seam") or "").strip()
        if seam:
            title = f"Make it testable: {seam.splitlines()[0]}"
            where = f"Task {entry['task']} of {ctx.run.info.run_id} has no test."
            yield _item("tech-debt", title, block(seam), where)


def planned_titles(ctx: Context) -> tuple[str, ...]:
    """Return the titles of what would be filed now; @pm may find other words for it."""
    known = tracker.in_tree(ctx.repository, ctx.run.info.start_tree)
    return tuple(title_of(item.title) for item in not_open(known, ctx.issue, items(ctx)))


def not_open(issues: Tracker, parent: str | None, wanted: Sequence[Item]) -> tuple[Item, ...]:
    """Return what is not open already under *parent*, or without one anywhere; the same is filed once."""
    found: dict[str, Item] = {}
    for item in wanted:
        known_as = title_of(item.seen_as)
        same = (issues.find_duplicate(words, parent) for words in (known_as, title_of(item.title)))
        if item.duplicate_of is None and normalised_title(known_as) not in found and not any(same):
            found[normalised_title(known_as)] = item
    return tuple(found.values())


def file_items(
    issues: Tracker, parent: str | None, wanted: Sequence[Item], *, prefix: str | None = None
) -> tuple[tuple[str, ...], Edits]:
    """Return the ids of the filed issues, and the edits; what is open already under *parent* is not filed twice.

    Without a parent they are issues of their own, and what is open anywhere is not filed; *prefix* is that of the first
    id, where the tracker has none yet.
    """
    filed: list[str] = []
    edits = NO_EDITS
    for item in not_open(issues, parent, wanted):
        new = NewIssue(
            title=title_of(item.title),
            prefix=prefix,
            parent=parent,
            labels=item.labels,
            description=item.body,
            provenance=item.provenance,
        )
        issue_id, more = issues.with_edits(edits).create(new)
        filed.append(issue_id)
        edits = edits.then(more)
    return tuple(filed), edits


def title_of(text: str) -> str:
    """Return the title that something is filed under."""
    return one_line(text)[:TITLE_LIMIT]


def not_testable_manifest(ctx: Context) -> list[dict[str, object]]:
    """Return every accepted task without tests, with its reason and who signed it off."""
    manifest: list[dict[str, object]] = []
    for task in ctx.state.done_tasks:
        evidence = read_evidence(ctx, task.id)
        if not task.testable and evidence is not None:
            manifest.append({"task": task.id, "judged_by": evidence.judged_by, **(evidence.not_testable or {})})
    return manifest
