"""Defines what `runs`, `show`, `explain` and `diff` print with `--json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.outcomes import Outcome, Reason
from pipeline.reports.fields import Severity
from pipeline.routing.state import TaskStatus
from pipeline.routing.vocabulary import Role, Signal
from pipeline.runs.activity_file import Doing
from pipeline.runs.drafts import VainEdit
from pipeline.runs.events import JournalLine
from pipeline.runs.facts import BoxFacts, Counter, UsageFacts
from pipeline.runs.gates import OpenGate
from pipeline.runs.info import Usage, ViolationRecord


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class RedLine(_Document):
    """One RED id: its class, and why that is (or is not) a legal reason (matrix 5)."""

    id: str
    red_class: str = Field(alias="class")
    legal: bool
    message: str
    granularity: Literal["id", "file"]


class GreenLine(_Document):
    """What was measured GREEN: the ids of the task, and how many other tests were kept."""

    tree: str
    passed: tuple[str, ...]
    kept: int
    flaky: tuple[str, ...]


class EvidenceShown(_Document):
    """A task's evidence as it is on disk."""

    path: str
    red: tuple[RedLine, ...]
    guards: tuple[str, ...]
    not_testable: Mapping[str, Any] | None
    judged_by: str | None
    proved_by: str | None = None
    """The finding whose proof the tests are."""
    green: GreenLine | None


class TaskShown(_Document):
    """One task with its evidence."""

    id: str
    title: str
    state: TaskStatus
    testable: bool
    evidence: EvidenceShown | None


class FindingLine(_Document):
    """One finding of a review."""

    id: str
    severity: Severity
    headline: str
    location: str
    proof: Literal["proved", "refuted", "unproved"] | None = None
    """What came of its proof; null where it has none."""


class ReviewShown(_Document):
    """One review: what the reviewers said, what the harness made of it, what must be fixed and what is open."""

    path: str
    stage: str
    number: int
    verdict: str | None
    advice: str | None
    signal: Signal
    must_fix: tuple[str, ...]
    open: tuple[FindingLine, ...]
    refuted: tuple[FindingLine, ...] = ()


class DispatchLine(_Document):
    """One dispatch: who was asked what, whether the answer counts, what the gate said of the changes."""

    dispatch: str
    role: Role
    kind: str
    question: str | None
    task: str | None
    attempt: int
    reask: str | None
    backend: str
    state: Literal["finished", "running", "lost"]
    signal: Signal | None
    complaint: str | None
    gate: Literal["admitted", "rejected"] | None
    changed: tuple[str, ...]
    violations: tuple[ViolationRecord, ...]
    dropped: tuple[str, ...]
    notes: tuple[str, ...]
    quarantine: str | None
    usage: Usage | None


class CostLine(_Document):
    """What one role or one phase took. Null where a part is not known; `known` says the rest in words."""

    of: Literal["role", "phase"]
    name: str
    dispatches: int
    cost_usd: float | None
    tokens: int | None
    known: str


class ShowDocument(_Document):
    """What `show --json` prints: how a run stands."""

    schema_: Literal["redfirst.show/1"] = Field(default="redfirst.show/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    issue: str
    title: str
    branch: str
    base_branch: str
    start_commit: str
    recipe: str | None = None
    """The name of the recipe that the run is of; null where an older version began it."""
    started_at: str
    last_at: str
    epoch: int
    live: bool
    queued: bool = False
    """It was answered, and no process drives it yet."""
    outcome: Outcome | None
    reason: Reason | None
    exit_code: int | None
    step: str
    phase: str
    task: str | None
    place: str
    gate: str | None
    at_gate: OpenGate | None = None
    note: str
    not_before: str | None = None
    """When the limit of an account ends that it waits for, or is parked by."""
    now: tuple[Doing, ...]
    """What its driver is doing, and since when; empty where none is at work."""
    plan_revision: int
    tasks: tuple[TaskShown, ...]
    reviews: tuple[ReviewShown, ...]
    counters: tuple[Counter, ...]
    blockers: tuple[FindingLine, ...]
    dispatches: tuple[DispatchLine, ...]
    commits: tuple[str, ...]
    landed: bool | None = None
    """Whether the base has the commits of the run; null where there is nothing to merge."""
    landed_on: str | None = None
    """The branch that has them: what `land` put them on, else the base; null where none is known to have them."""
    follow_ups: tuple[str, ...]
    dropped_tests: tuple[str, ...] = ()
    sandbox: BoxFacts
    usage: UsageFacts
    spent: str = ""
    """What its dispatches took, in words."""
    costs: tuple[CostLine, ...]
    edits_without_effect: tuple[VainEdit, ...] = ()
    safe_next_actions: tuple[str, ...]
    run_dir: str
    artifacts: tuple[str, ...]


class LogDocument(_Document):
    """What `show --log --json` prints: the journal."""

    schema_: Literal["redfirst.log/1"] = Field(default="redfirst.log/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    lines: tuple[JournalLine, ...]


class DiffFile(_Document):
    """One path that differs; the counts of lines are null for a binary file."""

    path: str
    added: int | None
    deleted: int | None


class DiffDocument(_Document):
    """What `diff --json` prints. `old` and `new` are trees; `patch` is null with `--stat`."""

    schema_: Literal["redfirst.diff/1"] = Field(default="redfirst.diff/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    task: str | None
    old: str
    new: str
    files: tuple[DiffFile, ...]
    patch: str | None


class Exhausted(_Document):
    """A limit that was found reached, and what the matrix says follows."""

    counter: Counter = Field(validation_alias="purse", serialization_alias="purse")  # the key is contract
    follows: str


class EvidenceLine(_Document):
    """An artifact that a decision was based on. `changed`: it was written again since; `missing`: it is gone.

    `kept` is where it lies as it was then, where it is not as decided and some version is.
    """

    path: str
    state: Literal["as_decided", "changed", "missing"]
    kept: str | None = None


class TestsLine(_Document):
    """One test run of the harness: what was run, over which tree, how the tests ended, how long that took.

    `what` and `seconds` are empty and null for runs of older versions.
    """

    what: str
    tree: str
    selected: tuple[str, ...] | None
    state: str
    outcomes: Mapping[str, int]
    collection_errors: tuple[str, ...]
    command: tuple[str, ...]
    seconds: float | None


class DecisionLine(_Document):
    """One decision: the row that fired, the signal and what it rests on, what was paid, what followed."""

    number: int
    seq: int
    at: str
    step: str
    phase: str
    task: str | None
    visit: int
    signal: Signal
    role: Role | None
    note: str
    row: str
    source: str
    says: str
    action: Mapping[str, str | None]
    then: str
    before: tuple[str, ...]
    dispatches: tuple[DispatchLine, ...]
    tests: tuple[TestsLine, ...]
    facts: tuple[str, ...]
    evidence: tuple[EvidenceLine, ...]
    paid: tuple[Counter, ...]
    exhausted: tuple[Exhausted, ...]
    blockers: tuple[str, ...]
    outcome: Outcome | None
    reason: Reason | None


class SinceLine(_Document):
    """What happened behind the last decision: a resumption, a landing, or why it did not land."""

    at: str
    says: str


class ExplainDocument(_Document):
    """What `explain --json` prints: the decisions, oldest first, and what happened behind the last one."""

    schema_: Literal["redfirst.explain/1"] = Field(default="redfirst.explain/1", alias="schema")
    ok: Literal[True] = True
    run_id: str
    issue: str
    workflow: str
    workflow_version: str
    workflow_hash: str
    redfirst_version: str
    outcome: Outcome | None
    reason: Reason | None
    live: bool = False
    queued: bool = False
    place: str
    decisions: tuple[DecisionLine, ...]
    since: tuple[SinceLine, ...] = ()
