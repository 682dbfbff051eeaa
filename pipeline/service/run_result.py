"""Defines what `run --json` and its relatives print (contract 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pipeline.outcomes import Outcome, Reason, exit_code
from pipeline.routing.state import TaskStatus
from pipeline.runs.events import Published, PublishIntended
from pipeline.runs.facts import UsageFacts, driven_s, dropped_tests, last_note, not_before_of, usage_of
from pipeline.runs.gates import OpenGate, gate_of, open_gate
from pipeline.runs.spending import spent
from pipeline.service.documents import Document
from pipeline.service.next_lines import next_lines
from pipeline.steps.asking.reviews import all_last_reviews

if TYPE_CHECKING:
    from pipeline.steps.context import Context


class TaskLine(Document):
    """One task of the present split."""

    id: str
    title: str
    state: TaskStatus


class BoxLine(Document):
    """What isolated the agents."""

    backend: str
    network: str


class RecipeLine(Document):
    """The recipe that the run is of; the hash is that of all its steps."""

    name: str
    version: int
    sha256: str


class RunDocument(Document):
    """How a run stands (contract 1)."""

    schema_: Literal["redfirst.run-result/1"] = Field(default="redfirst.run-result/1", alias="schema")
    ok: bool
    run_id: str
    issue: str
    outcome: Outcome
    reason: Reason
    exit_code: int
    note: str
    branch: str
    start_commit: str
    commits: tuple[str, ...]
    tasks: tuple[TaskLine, ...]
    follow_ups: tuple[str, ...]
    dropped_tests: tuple[str, ...]
    """A line for each task whose tests were written and are in no commit."""
    blockers: tuple[str, ...]
    advisory: tuple[str, ...]
    safe_next_actions: tuple[str, ...]
    run_dir: str
    sandbox: BoxLine
    usage: UsageFacts
    seconds: float
    """How long it was driven, all its drivers together."""
    spent: str
    """What its dispatches took, in words."""
    gate: str | None = None
    at_gate: OpenGate | None = None
    not_before: str | None = None
    """When the limit of an account ends that the run is parked by."""
    recipe: RecipeLine | None = None
    """Null of a run that an older version began, which is of the recipe `issue`."""


def run_document(ctx: Context) -> RunDocument:
    """Return how the run stands now."""
    state, info = ctx.state, ctx.run.info
    outcome, reason = state.outcome or Outcome.CANCELLED, state.reason or Reason.INTERRUPTED
    published = ctx.run.journal.of(Published)
    intended = ctx.run.journal.of(PublishIntended)
    ledgers = [record.ledger for record in all_last_reviews(ctx).values()]
    code = exit_code(outcome, reason)
    return RunDocument(
        ok=code == 0,
        run_id=info.run_id,
        issue=ctx.issue,
        outcome=outcome,
        reason=reason,
        exit_code=code,
        note=last_note(ctx.run),
        branch=info.branch,
        start_commit=info.start_commit,
        commits=published[-1].data.commits if published else (),
        tasks=tuple(
            TaskLine(id=t.id, title=t.spec.title, state=t.status)
            for t in state.tasks.values()
            if t.status is not TaskStatus.DROPPED
        ),
        follow_ups=intended[-1].data.follow_ups if published and intended else (),
        dropped_tests=dropped_tests(state),
        blockers=state.open_blockers,
        advisory=tuple(line for ledger in ledgers for line in ledger.advice(state.open_blockers)),
        safe_next_actions=next_lines(ctx.repository, ctx.run),
        run_dir=str(ctx.run.folder),
        sandbox=BoxLine(backend=ctx.box.name, network=ctx.box_facts.get("network", "none")),
        usage=usage_of(ctx.run),
        gate=gate_of(ctx.run),
        at_gate=open_gate(ctx.run),
        seconds=round(driven_s(ctx.run), 3),
        spent=str(spent(ctx.run)),
        not_before=not_before_of(ctx.run),
        recipe=None if info.recipe is None else RecipeLine.model_validate(info.recipe),
    )
