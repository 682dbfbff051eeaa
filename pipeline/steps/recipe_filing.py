"""Files issues for a step of a recipe: what other steps found becomes files of the tracker, in one commit."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from pipeline.errors import UserError
from pipeline.progress import counted
from pipeline.recipes.step_table import StepEvent, StepSignal
from pipeline.recipes.templates import only_reference
from pipeline.reports.markdown import bullets, sections
from pipeline.reports.payloads import Findings, ProposedIssues, spaced_once
from pipeline.reports.untrusted_text import block, fenced, one_line
from pipeline.runs import tracker
from pipeline.steps.publication.follow_ups import Item, file_items, title_of
from pipeline.steps.recipe_commit import Wanted, put_on_branch
from pipeline.steps.recipe_context import below
from todo.issue import normalised_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue

    from pipeline.reports.payloads import ProposedIssue, QuotedFinding
    from pipeline.runs.events import PublishIntended
    from pipeline.steps.publication.bases import Base
    from pipeline.steps.recipe_commit import Made
    from pipeline.steps.recipe_context import RecipeContext

_LABELS: Final = {"simplify": "tech-debt"}
_LABEL: Final = "followup"
"""What a finding is filed as, by the role that found it, where it is no other."""


async def run(ctx: RecipeContext) -> StepEvent:
    """Return PUBLISHED where all that was found is filed or open already, NOT_MET where it is not of a known form."""
    items, faults = _items(ctx)
    if faults:
        return StepEvent(signal=StepSignal.NOT_MET, note="; ".join(faults))
    done = await put_on_branch(ctx, partial(_made, ctx, items))
    return done if isinstance(done, StepEvent) else _told(ctx, items, done)


async def _made(ctx: RecipeContext, items: Sequence[Item], base: Base) -> Made:
    """Return the commit that files what is not open on *base*."""
    tree = ctx.repository.tree_of(base.commit)
    issues = tracker.in_tree(ctx.repository, tree)
    try:
        with tracker.as_user_errors(issues):
            filed, edits = file_items(issues, None, items, prefix=tracker.first_prefix(ctx.repository.worktree.name))
            titles = [f"{id_}: {issues.with_edits(edits).read(id_).title}" for id_ in filed]
    except UserError as error:  # the start was looked at before anybody was asked
        return StepEvent(signal=StepSignal.BRANCH_MOVED, note=error.message)
    if not filed:
        return None
    title = f"chore(todo): file {filed[0] if len(filed) == 1 else counted(len(filed), 'issue')}"
    return Wanted(tracker.tree_with(ctx.repository, tree, issues, edits), title, bullets(titles), filed)


def _told(ctx: RecipeContext, items: Sequence[Item], done: PublishIntended | None) -> StepEvent:
    """Leave what was filed, and what was not, for people and for the steps behind; return PUBLISHED."""
    filed = [] if done is None else [(id_, _title_in(ctx, done.commits[-1], id_)) for id_ in done.follow_ups]
    taken = {normalised_title(title) for _, title in filed}
    known = [item.title for item in items if normalised_title(title_of(item.title)) not in taken]
    note = f"{counted(len(filed), 'issue')} filed on {ctx.run.info.branch}"
    note += f", {len(known)} open already" if known else ""
    name = ctx.lane_name
    said = sections(
        ("Filed", bullets(f"{id_}: {title}" for id_, title in filed)),
        ("Open already, and not filed again", bullets(known)),
    )
    ctx.write(f"steps/{name}/{name}.md", f"{note}\n{said}")
    document = {
        "commit": None if done is None else done.commits[-1],
        "filed": [{"id": id_, "title": title} for id_, title in filed],
        "open_already": known,
    }
    payload = ctx.write_json(f"steps/{name}/{name}.json", document)
    return StepEvent(signal=StepSignal.PUBLISHED, note=note, evidence=(payload,))


def _title_in(ctx: RecipeContext, commit: str, issue: str) -> str:
    return tracker.in_tree(ctx.repository, ctx.repository.tree_of(commit)).read(issue).title


def _items(ctx: RecipeContext) -> tuple[list[Item], list[str]]:
    """Return what shall be filed, the same thing found twice once, and a sentence for each payload of another form."""
    said = ctx.step.file_issues or ()
    machine, state = ctx.run.machine, ctx.run.state
    found: dict[object, Item] = {}
    faults: list[str] = []
    for text in (said,) if isinstance(said, str) else said:
        reference = only_reference(text)
        if reference is None or reference.step is None:
            raise LookupError(f"{text} is no payload of a step")  # the rules of recipes see to it
        role = machine.steps[reference.step].agent or "redfirst"
        for name in machine.names(state, reference.step):
            if not ctx.path(f"steps/{name}/{name}.json").is_file():
                continue  # with `accepts: partial` a step may be left without one
            value = below(ctx.payload_of(name), reference.path)
            where = f"Found by @{role} in {ctx.run.info.run_id}, step {name}."
            each = _read(value, _LABELS.get(role, _LABEL), where)
            if each is None:
                faults.append(f"{name} left neither issues nor findings to file")
                continue
            for key, item in each:
                same = found.get(key)
                found[key] = item if same is None else _both(same, item)
    return list(found.values()), faults


def _read(value: JsonValue, label: str, where: str) -> list[tuple[object, Item]] | None:
    """Return what a payload asks to be filed, each with what it is known by; None where it is of no known form."""
    try:
        if isinstance(value, dict) and "issues" in value:
            issues = ProposedIssues.model_validate_json(json.dumps(value)).issues
            return [(normalised_title(one.title), _of_issue(one, where)) for one in issues]
        findings = Findings.model_validate_json(json.dumps(value)).findings
    except ValidationError:
        return None
    # what its proof refutes is no finding any more; it stays in the payload
    held = (one for one in findings if one.measured is None or one.measured.found != "refuted")
    return [(_key(one), _of_finding(one, label, where)) for one in held]


def _key(finding: QuotedFinding) -> object:
    """Return what a finding is known by: the words that it is about, else what it says."""
    quote = spaced_once(finding.quote)
    return (finding.path, quote) if quote and finding.path else normalised_title(finding.claim)


def _of_issue(one: ProposedIssue, where: str) -> Item:
    parts = [block(one.body), *_severity(one.severity), *("\n\n".join(_finding(each)) for each in one.evidence)]
    return _item(one.labels, one.title, parts, where)


def _of_finding(one: QuotedFinding, label: str, where: str) -> Item:
    return _item((label,), one.claim, [*_severity(one.severity), *_finding(one)], where)


def _item(labels: Sequence[str], title: str, parts: Sequence[str], where: str) -> Item:
    words, known = one_line(title), tuple(dict.fromkeys(map(one_line, labels)))
    body = "\n\n".join(part for part in parts if part.strip())
    return Item(labels=known, title=words, body=body, provenance=where, seen_as=words)


def _severity(word: str | None) -> list[str]:
    return [f"Severity: {word}"] if word is not None else []


def _finding(one: QuotedFinding) -> Iterator[str]:
    yield block(one.claim)
    if one.path is not None:
        yield f"`{one.path}`" + (" says:" if one.quote.strip() else "")
    if one.quote.strip():
        yield fenced(one.quote)
    if one.measured is not None:
        yield f"{one.measured.found.capitalize()}: {one_line(one.measured.why)}"
    test = one.proof.test if one.proof is not None else None
    if test is not None and one.measured is not None and one.measured.found == "proved":
        yield f"`{test.path}`, which fails:"
        yield fenced(test.content)
    if one.confidence == "uncertain":
        yield "Uncertain: what it quotes was not found there, or who found it is not sure."


def _both(one: Item, other: Item) -> Item:
    """Return one item of two that are about the same words."""
    labels = tuple(dict.fromkeys((*one.labels, *other.labels)))
    body = one.body if other.body == one.body else f"{one.body}\n\n{other.provenance}\n\n{other.body}"
    return one.model_copy(update={"labels": labels, "body": body})
