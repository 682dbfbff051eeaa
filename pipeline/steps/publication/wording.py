"""Asks a model as @pm for other words for follow-ups, and which of them somebody has asked for already.

Nothing is routed on words, so the matrix has no slot for them: PUBLISH asks once before its commits are built, once
more when the answer does not count, and files by the rule when there is none. What came of it is an artifact, written
before any commit, so that a crash or a park afterwards publishes the same words and asks nobody again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict

from pipeline.dispatch.request import Request
from pipeline.reports.decode import Malformed
from pipeline.reports.reviews import FollowUps
from pipeline.reports.untrusted_text import block, one_line
from pipeline.routing.lookup import limit_of
from pipeline.routing.state import Event
from pipeline.routing.vocabulary import Loop, Role, Signal
from pipeline.runs import tracker
from pipeline.steps.asking.dispatches import Answer, ask
from pipeline.steps.publication.follow_ups import TITLE_LIMIT, Item, items
from todo import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.reports.fields import Report
    from pipeline.reports.reviews import FollowUp
    from pipeline.steps.context import Context
    from todo import Issue

_ITEMS: Final = "follow-ups/items.json"
_EXISTING: Final = "follow-ups/existing.json"
_WORDED: Final = "follow-ups/worded.json"

_ASKED_AGAIN: Final = frozenset({Signal.MALFORMED, Signal.VIOLATION})
_ROUTED: Final = frozenset({Signal.ESCAPE, Signal.CANCELLED})
"""What is no matter of words: the matrix hears of it."""


class Worded(BaseModel):
    """What is filed, in whose words; `notes` say what a person should know of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        report = _follow_ups(answer.report)
        said = _reworded(wanted, report)
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
    ctx.write_json(_ITEMS, [_shown_item(number, item) for number, item in enumerate(wanted, 1)])
    ctx.write_json(_EXISTING, [_shown_issue(issue, known.folder) for issue in existing])
    request = Request(
        Role.PM,
        "follow-ups",
        ctx.state.head,
        artifacts={"items": [ctx.path(_ITEMS)], "existing_issues": [ctx.path(_EXISTING)]},
        accept=lambda report: refusal(_follow_ups(report), wanted, existing),
    )
    answer = await ask(ctx, request)
    for granted in range(1, (limit_of(ctx.state, Loop.REASK) or 0) + 1):
        if isinstance(answer, Answer) or answer.signal not in _ASKED_AGAIN:
            break
        answer = await ask(ctx, replace(request, reasks=granted))
    return answer


def _shown_item(number: int, item: Item) -> dict[str, object]:
    label = item.labels[0]
    return {"item": number, "label": label, "title": item.title, "body": item.body, "from": item.provenance}


def _shown_issue(issue: Issue, folder: str) -> dict[str, object]:
    return {
        "id": issue.id,
        "title": issue.title,
        "status": issue.status.value,
        "parent": issue.parent,
        "labels": list(issue.labels),
        "file": f"{folder}/{issue.id}.md",
    }


def _follow_ups(report: Report) -> FollowUps:
    if not isinstance(report, FollowUps):
        raise TypeError(f"kind follow-ups was answered by {type(report).__name__}")
    return report


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


def _reworded(wanted: tuple[Item, ...], report: FollowUps) -> tuple[Item, ...]:
    """Return the items in the words of an accepted answer; what it leaves out keeps the rule's."""
    return tuple(item if entry is None else _in_words(item, entry) for item, entry in _by_item(wanted, report))


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
