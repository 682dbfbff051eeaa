"""Puts what a recipe's steps made on the branch, one commit each: their changes, or the issues that they found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import JsonValue, ValidationError

from pipeline.errors import UserError
from pipeline.judge.reports.markdown import bullets, sections
from pipeline.judge.reports.payloads import Findings, ProposedIssue, ProposedIssues, QuotedFinding, spaced_once
from pipeline.judge.reports.untrusted_text import block, fenced, one_line
from pipeline.matrix.recipes.model import Kind
from pipeline.matrix.recipes.rules import going_along
from pipeline.matrix.recipes.step_table import Checkpoint, StepEvent, StepSignal
from pipeline.matrix.recipes.templates import only_reference
from pipeline.matrix.routing.state import Event
from pipeline.progress import counted
from pipeline.repo import SigningError
from pipeline.run import tracker
from pipeline.steps.publication.commits import Chain, Planned, assisted_by, message_of
from pipeline.steps.publication.follow_ups import Item, file_items, title_of
from pipeline.steps.publication.moving import intended, onto_line, put_on_branch, refusal_of_files
from pipeline.steps.publication.publisher import Base, Blocked, Built, since
from pipeline.steps.publication.suite_check import held_md, hold_over
from pipeline.steps.publication.trees import put_on
from pipeline.steps.recipe_context import RecipeContext, below, tree_with
from pipeline.steps.recipe_outcome import left_open
from pipeline.steps.recipe_tests import has_tests, prepared
from pipeline.testing.measure.measuring import changed_paths
from pipeline.vocabulary import Signal
from todo.issue import normalised_title

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from pipeline.run.journal_kinds import PublishIntended

_TRIES: Final = 3
"""How often the branch may be moved by others between our look at it and our move."""


@dataclass(frozen=True)
class Wanted:
    """A commit to be: its tree, its title, what else is said of it, and the ids of the issues that it files."""

    tree: str
    title: str
    body: str
    filed: tuple[str, ...] = ()


Made: TypeAlias = Wanted | StepEvent | None


async def _put(ctx: RecipeContext, make: Callable[[Base], Awaitable[Made]]) -> PublishIntended | StepEvent | None:
    """Return what the branch holds now, None where there is nothing to publish.

    Where the branch cannot be moved it is the event that says why, and nothing of the user's has changed.

    Args:
        ctx: The step that publishes.
        make: Returns the commit as it is on a base, None where it would change nothing, or why there is none.
    """
    moved_on = ""
    for _ in range(_TRIES):
        if not intended(ctx) and ctx.stopping != "no":
            return _stopped(ctx)
        said = await put_on_branch(ctx, partial(_build, ctx, make), ctx.hub)
        if isinstance(said, Blocked):
            return StepEvent(signal=StepSignal.BRANCH_MOVED, note=said.why)
        if not isinstance(said, Event):
            return said
        if said.signal is not Signal.TIP_MOVED:
            return StepEvent(signal=StepSignal(said.signal.value), note=said.note)
        moved_on = said.note
    return StepEvent(signal=StepSignal.BRANCH_MOVED, note=f"{moved_on}, again and again")


async def _build(ctx: RecipeContext, make: Callable[[Base], Awaitable[Made]], base: Base) -> Built | StepEvent | None:
    """Return the commit, to be published next; or why it cannot be."""
    wanted = await make(base)
    if not isinstance(wanted, Wanted):
        return wanted
    by = f"Step {ctx.step.id} of the recipe {ctx.run.recipe.name}, {ctx.run.info.run_id}."
    message = message_of(wanted.title, f"{wanted.body}\n\n{by}".strip(), _trailers(ctx))
    try:
        chain = Chain(ctx, base)
        chain.add(wanted.tree, message)
    except SigningError as error:
        return _stopped(ctx) if ctx.stopping != "no" else StepEvent(signal=StepSignal.SIGNING_FAILED, note=str(error))
    if ctx.stopping != "no":  # the last moment: what is intended is brought to its end
        return _stopped(ctx)
    return Built(chain.commits, wanted.filed)


def _trailers(ctx: RecipeContext) -> list[tuple[str, str]]:
    """Return the trailers of a commit of the run: of its agents those whom the step depends on."""
    used = {record.backend for record in ctx.run.records.values() if record.lane in _of_this(ctx)}
    return [("Run-Id", ctx.run.info.run_id), *assisted_by(used)]


def _stopped(ctx: RecipeContext) -> StepEvent:
    return StepEvent(signal=StepSignal.CANCELLED, note=f"{ctx.lane_name} is published when the run goes on")


_MEASURED: Final = "suite.md"


async def publish(ctx: RecipeContext) -> StepEvent:
    """Return PUBLISHED, also where nothing was changed; NOT_MET where a test breaks; or what is in the way."""
    done = await _put(ctx, partial(_made, ctx))
    return done if isinstance(done, StepEvent) else _told(ctx, done)


async def _made(ctx: RecipeContext, base: Base) -> Made:
    """Return the commit as it is on *base*; why it is none, where it does not go there or does not hold there.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    repository = ctx.repository
    (each,) = planned(ctx)
    if each.before == each.after:
        return None
    refused = refusal_of_files(ctx, base, (each,))
    if refused is not None:
        merge = f"; the changes merge as text; to have that measured and published: {onto_line(ctx)}"
        return StepEvent(signal=StepSignal.BRANCH_MOVED, note=refused.why + (merge if refused.mergeable else ""))
    under = repository.tree_of(base.commit)
    put = put_on(repository, under, each.before, each.after)
    if put.conflicts:
        why = f"{ctx.run.info.branch} has other words where {ctx.lane_name} changes {', '.join(put.conflicts)}"
        return StepEvent(signal=StepSignal.BRANCH_MOVED, note=why)
    broken = await _broken(ctx, put.tree, under)
    if broken is not None:
        return broken
    left = bullets(
        f"{name}: {one.id} [{one.severity}] {one.headline}" for name in _of_this(ctx) for one in left_open(ctx, name)
    )
    return Wanted(put.tree, ctx.with_values(ctx.step.publish or ""), f"Left open by @check:\n\n{left}" if left else "")


async def _broken(ctx: RecipeContext, tree: str, under: str) -> StepEvent | None:
    """Return that the result breaks what passes over the tree that it is put on; None where it does not.

    Raises:
        UnmeasurableError: the environment is broken.
    """
    if not has_tests(ctx):
        ctx.write(_name(ctx, _MEASURED), "Nothing is known to run tests here: nothing was measured.\n")
        return None
    await prepared(ctx)
    held = await hold_over(ctx, tree, under)
    name = ctx.write(_name(ctx, _MEASURED), held_md(held))
    if not held.lost:
        return None
    return StepEvent(signal=StepSignal.NOT_MET, note=f"not published: {held.in_short}", evidence=(name,))


def planned(ctx: RecipeContext) -> tuple[Planned, ...]:
    """Return what the step would put on the branch, as the tree that it leads from and to in the run."""
    state, machine, mine = ctx.run.state, ctx.run.machine, ctx.step.id
    published = [one for one in machine.order if machine.steps[one].kind is Kind.PUBLISH]
    ready = {one for one in published if state.settled.get(one) is Checkpoint.READY} - {mine}
    before, after = (
        tree_with(ctx, _writers(ctx, [one for one in published if one in some])) for some in (ready, {*ready, mine})
    )
    return (Planned(before, after, "", ctx.lane_name),)


def _of_this(ctx: RecipeContext) -> list[str]:
    """Return the names of the steps that this one depends on, and publishes."""
    machine, state = ctx.run.machine, ctx.run.state
    return [name for id_ in machine.ancestors(ctx.step.id) for name in machine.names(state, id_)]


def _writers(ctx: RecipeContext, publishing: Iterable[str]) -> list[str]:
    """Return the names of all steps that these depend on, and of what those were written over, in order."""
    machine = ctx.run.machine
    above = {id_ for one in publishing for id_ in machine.ancestors(one)}
    along = going_along(machine.steps, machine.plan, above)
    return [name for id_ in along for name in machine.names(ctx.run.state, id_)]


def _told(ctx: RecipeContext, done: PublishIntended | None) -> StepEvent:
    """Leave what is on the branch now, for people and for the steps behind; return PUBLISHED."""
    branch = ctx.run.info.branch
    if done is None:
        note, paths, commit = "nothing was changed, so nothing was published", (), None
    else:
        commit = done.commits[-1]
        paths = changed_paths(ctx, *(ctx.repository.tree_of(each) for each in (f"{commit}^", commit)))
        note = f"{commit[:12]} on {branch}: {ctx.repository.subject(commit)}"
        if done.base is not None and done.base != since(ctx):
            note += f"; on top of {done.base[:12]}, and measured there"
    said = sections(("Files", bullets(f"`{path}`" for path in paths)))
    return _leave(ctx, note, said, {"commit": commit, "branch": branch, "files": list(paths)})


def _leave(ctx: RecipeContext, note: str, said: str, payload: dict[str, object]) -> StepEvent:
    """Leave the words and the payload of the step; return PUBLISHED."""
    ctx.write(_name(ctx, f"{ctx.lane_name}.md"), f"{note}\n{said}")
    evidence = ctx.write_json(_name(ctx, f"{ctx.lane_name}.json"), payload)
    return StepEvent(signal=StepSignal.PUBLISHED, note=note, evidence=(evidence,))


def _name(ctx: RecipeContext, name: str) -> str:
    return f"steps/{ctx.lane_name}/{name}"


_LABELS: Final = {"simplify": "tech-debt"}
_LABEL: Final = "followup"
"""What a finding is filed as, by the role that found it, where it is no other."""


async def file(ctx: RecipeContext) -> StepEvent:
    """Return PUBLISHED where all that was found is filed or open already, NOT_MET where it is not of a known form."""
    items, faults = _items(ctx)
    if faults:
        return StepEvent(signal=StepSignal.NOT_MET, note="; ".join(faults))
    done = await _put(ctx, partial(_filed_on, ctx, items))
    return done if isinstance(done, StepEvent) else _filed(ctx, items, done)


async def _filed_on(ctx: RecipeContext, items: Sequence[Item], base: Base) -> Made:
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


def _filed(ctx: RecipeContext, items: Sequence[Item], done: PublishIntended | None) -> StepEvent:
    """Leave what was filed, and what was not, for people and for the steps behind; return PUBLISHED."""
    filed: list[tuple[str, str]] = []
    if done is not None:
        issues = tracker.in_tree(ctx.repository, ctx.repository.tree_of(done.commits[-1]))
        filed = [(id_, issues.read(id_).title) for id_ in done.follow_ups]
    taken = {normalised_title(title) for _, title in filed}
    known = [item.title for item in items if normalised_title(title_of(item.title)) not in taken]
    note = f"{counted(len(filed), 'issue')} filed on {ctx.run.info.branch}"
    note += f", {len(known)} open already" if known else ""
    said = sections(
        ("Filed", bullets(f"{id_}: {title}" for id_, title in filed)),
        ("Open already, and not filed again", bullets(known)),
    )
    document: dict[str, object] = {
        "commit": None if done is None else done.commits[-1],
        "filed": [{"id": id_, "title": title} for id_, title in filed],
        "open_already": known,
    }
    return _leave(ctx, note, said, document)


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
    return [(_key(one), _item((label,), one.claim, [*_severity(one.severity), *_finding(one)], where)) for one in held]


def _key(finding: QuotedFinding) -> object:
    """Return what a finding is known by: the words that it is about, else what it says."""
    quote = spaced_once(finding.quote)
    return (finding.path, quote) if quote and finding.path else normalised_title(finding.claim)


def _of_issue(one: ProposedIssue, where: str) -> Item:
    parts = [block(one.body), *_severity(one.severity), *("\n\n".join(_finding(each)) for each in one.evidence)]
    return _item(one.labels, one.title, parts, where)


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
