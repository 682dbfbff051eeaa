"""Files what a run saw and did not do: bugs, blockers and missing seams as sub-issues (ADR-11).

This is the `builtin` backend of @pm: rules and our tracker library, no model. A model behind @pm finds other words for
the same items, and says which of them somebody has asked for already.

Nothing is routed on words, so the matrix has no slot for them: PUBLISH asks once before its commits are built, once
more when the answer does not count, and files by the rule when there is none. What came of it is an artifact, written
before any commit, so that a crash or a park afterwards publishes the same words and asks nobody again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from pipeline.agents.dispatch.request import Request
from pipeline.data_types import Frozen
from pipeline.judge.reports.decode import Malformed
from pipeline.judge.reports.reviews import FollowUp, FollowUps
from pipeline.judge.reports.untrusted_text import block, one_line
from pipeline.matrix.routing.lookup import limit_of
from pipeline.matrix.routing.state import Event
from pipeline.run import tracker
from pipeline.steps.asking.dispatches import Answer, as_form, ask
from pipeline.steps.asking.reviews import all_last_reviews
from pipeline.steps.evidence_records import read_evidence
from pipeline.vocabulary import Loop, Role, Signal
from todo import NO_EDITS, Edits, Issue, NewIssue, Status, Tracker
from todo.issue import normalised_title

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pipeline.steps.context import Context


TITLE_LIMIT: Final = 120
"""In characters; a rule's title is cut there."""


class Item(Frozen):
    """One thing to file; `body` is fit to stand in an issue.

    `seen_as` is the title by the rule: under other words it would be filed again although it is open already.
    `duplicate_of` names the open issue that asks for the same, by the word of @pm; then there is nothing to file.
    """

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
    bugs = [(role is Role.PM, item) for role, seen in _bugs(ctx) for item in seen]
    others = [(False, item) for item in (*_blockers(ctx), *_seams(ctx))]
    found = [item for _, item in sorted([*bugs, *others], key=lambda one: one[0])]
    unique = {(item.labels, item.title.casefold()): item for item in reversed(found)}
    return tuple(item for item in found if unique.get((item.labels, item.title.casefold())) is item)


def _item(label: str, title: str, body: str, provenance: str) -> Item:
    return Item(labels=(label,), title=title, body=body, provenance=provenance, seen_as=title)


def _bugs(ctx: Context) -> Collection[tuple[Role, list[Item]]]:
    """Return the bugs that each dispatch names; a draft counts as long as no other one took its place."""
    found: dict[object, tuple[Role, list[Item]]] = {}
    work = 0
    for record in sorted(ctx.run.records.values(), key=lambda r: r.number):
        result = ctx.run.results.get(record.dispatch)
        if result is None or result.signal is not None or result.report is None:
            continue
        # what is drafted again takes the place of the draft before, until somebody has worked by that
        work = work if record.kind in {"plan", "review-plan", "split", "review-split"} else record.number
        by = f"Seen by @{record.role} in {ctx.run.info.run_id}, {record.dispatch}."
        bugs = cast("list[dict[str, str]]", result.report.get("out_of_scope") or [])
        seen = [_item("bug", bug["title"], block(bug.get("description", "")), by) for bug in bugs]
        found[(record.kind, work) if record.role is Role.ORCHESTRATOR else record.number] = record.role, seen
    return found.values()


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
    kept = ((task, read_evidence(ctx, task.id)) for task in ctx.state.done_tasks if not task.testable)
    found = ((task.id, evidence) for task, evidence in kept if evidence is not None)
    return [{"task": id_, "judged_by": each.judged_by, **(each.not_testable or {})} for id_, each in found]


_ITEMS: Final = "follow-ups/items.json"
_EXISTING: Final = "follow-ups/existing.json"
_WORDED: Final = "follow-ups/worded.json"

_ASKED_AGAIN: Final = frozenset({Signal.MALFORMED, Signal.VIOLATION})
_ROUTED: Final = frozenset({Signal.ESCAPE, Signal.CANCELLED})
"""What is no matter of words: the matrix hears of it."""


class Worded(Frozen):
    """What is filed, in whose words; `notes` say what a person should know of it."""

    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


async def word(ctx: Context) -> Worded | Event:
    """Return what is filed, in the words of @pm where it has a model and its answer counts, else by the rule.

    Returns:
        The event of a run that must not go on: the user stopped it, or an agent got out of its box.
    """
    if _WORDED in ctx.run.artifacts:
        return _worded(ctx)
    wanted = items(ctx)
    if not wanted or ctx.config.agent(Role.PM).backend == "builtin":
        return Worded(items=wanted)
    answer = await _ask(ctx, wanted)
    if isinstance(answer, Event):
        if answer.signal in _ROUTED:
            return answer
        note = f"@pm did not answer ({answer.signal.value}): filed by rule"
        worded = Worded(items=wanted, notes=(note,), evidence=answer.evidence)
    else:
        report = answer.form(FollowUps)
        # what the answer leaves out keeps the words of the rule
        said = tuple(item if entry is None else _in_words(item, entry) for item, entry in _by_item(wanted, report))
        more = tuple(item for item in items(ctx) if item not in wanted)  # what @pm saw on the way
        worded = Worded(items=(*said, *more), notes=_notes(wanted, report), evidence=(answer.evidence,))
    ctx.write_json(_WORDED, worded.model_dump(mode="json"))
    return worded


def notes(ctx: Context) -> tuple[str, ...]:
    """Return what a person should know of the filing; nothing where no model was asked."""
    return _worded(ctx).notes if _WORDED in ctx.run.artifacts else ()


def evidence(ctx: Context) -> tuple[str, ...]:
    """Return the paths, relative to the run, of what the words rest on; nothing where no model was asked."""
    return (_WORDED, *_worded(ctx).evidence) if _WORDED in ctx.run.artifacts else ()


def _worded(ctx: Context) -> Worded:
    return Worded.model_validate_json(ctx.read(_WORDED))


async def _ask(ctx: Context, wanted: tuple[Item, ...]) -> Answer | Event:
    known = tracker.in_tree(ctx.repository, ctx.state.head)
    with tracker.as_user_errors(known):
        every = known.issues()
    existing = [issue for issue in every if issue.id != ctx.issue]  # which is Done with this publication
    shown = [{"label": one.labels[0], "title": one.title, "body": one.body, "from": one.provenance} for one in wanted]
    ctx.write_json(_ITEMS, [{"item": number, **one} for number, one in enumerate(shown, 1)])
    ctx.write_json(_EXISTING, [_shown_issue(issue, known.folder) for issue in existing])
    request = Request(
        Role.PM,
        "follow-ups",
        ctx.state.head,
        artifacts={"items": [ctx.path(_ITEMS)], "existing_issues": [ctx.path(_EXISTING)]},
        accept=lambda report: refusal(as_form(report, FollowUps), wanted, existing),
    )
    answer = await ask(ctx, request)
    for granted in range(1, (limit_of(ctx.state, Loop.REASK) or 0) + 1):
        if isinstance(answer, Answer) or answer.signal not in _ASKED_AGAIN:
            break
        answer = await ask(ctx, replace(request, reasks=granted))
    return answer


def _shown_issue(issue: Issue, folder: str) -> dict[str, object]:
    return {
        "id": issue.id,
        "title": issue.title,
        "status": issue.status.value,
        "parent": issue.parent,
        "labels": list(issue.labels),
        "file": f"{folder}/{issue.id}.md",
    }


def refusal(report: FollowUps, wanted: tuple[Item, ...], existing: list[Issue]) -> Malformed | None:
    """Return what is wrong with an answer of the right shape, None when it can be filed; what it leaves out may be.

    Args:
        report: The answer.
        wanted: What was asked about, in order; items are numbered from 1.
        existing: The issues that were shown.
    """
    seen: set[int] = set()
    for place, entry in enumerate(report.issues):
        number = _number(entry, len(wanted))
        if number is None:
            return _no(place, "item", f"is {entry.item!r}, which is no item; accepted: 1 to {len(wanted)}")
        if number in seen:
            return _no(place, "item", f"is {number} for the second time; one entry for each item")
        seen.add(number)
        wrong = _wrong(entry, wanted[number - 1], existing)
        if wrong is not None:
            return _no(place, *wrong)
    return None


def _no(place: int, key: str, why: str) -> Malformed:
    pointer = f"/issues/{place}/{key}"
    return Malformed(f"{pointer} {why}.", pointer)


def _wrong(entry: FollowUp, item: Item, existing: list[Issue]) -> tuple[str, str] | None:
    """Return the key and what is wrong with it."""
    if len(entry.title) > TITLE_LIMIT:
        return "title", f"is longer than {TITLE_LIMIT} characters"
    known = dict.fromkeys((*item.labels, *(label for issue in existing for label in issue.labels)))
    unknown = [label for label in entry.labels if label not in known]
    if unknown:
        return "labels", f"has {unknown[0]!r}, which no issue uses; accepted: {', '.join(known)}"
    if len(set(entry.labels) - set(item.labels)) > 1:
        return "labels", f"has more than one label beside {item.labels[0]!r}"
    if entry.duplicate_of is None:
        return None
    found = next((issue for issue in existing if issue.id == entry.duplicate_of), None)
    if found is None:
        return "duplicate_of", f"is {entry.duplicate_of!r}, which is not among the existing issues; null if in doubt"
    if found.status is Status.DONE:
        return "duplicate_of", f"is {found.id}, which is Done: what is closed asks for nothing; write null"
    return None


def _number(entry: FollowUp, count: int) -> int | None:
    """Return which of *count* items an entry is about."""
    return next((number for number in range(1, count + 1) if str(number) == str(entry.item).strip()), None)


def _by_item(wanted: tuple[Item, ...], report: FollowUps) -> Iterator[tuple[Item, FollowUp | None]]:
    said = {_number(entry, len(wanted)): entry for entry in report.issues}
    return ((item, said.get(number)) for number, item in enumerate(wanted, 1))


def _in_words(item: Item, entry: FollowUp) -> Item:
    return item.model_copy(
        update={
            "labels": tuple(dict.fromkeys((*item.labels, *entry.labels))),
            "title": one_line(entry.title),
            "body": block(entry.body) if entry.body.strip() else item.body,
            "provenance": f"{item.provenance} Worded by @{Role.PM.value}.",
            "duplicate_of": entry.duplicate_of,
        }
    )


def _notes(wanted: tuple[Item, ...], report: FollowUps) -> tuple[str, ...]:
    told: list[str] = []
    for item, entry in _by_item(wanted, report):
        if entry is None:
            told.append(f"@pm left out {one_line(item.title)!r}: filed by rule")
        elif entry.duplicate_of is not None:
            told.append(f"not filed, by @pm a duplicate of {entry.duplicate_of}: {one_line(item.title)}")
    return tuple(told)
