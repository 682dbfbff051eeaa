"""Defines run.json (immutable) and the result of a dispatch (its commit point)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Final, Literal, cast

from pydantic import Field, field_validator

from pipeline.data_types import BareName, BranchName, Frozen, ObjectName, SessionName, Timestamp
from pipeline.matrix.engine.protocols import TRUNK
from pipeline.matrix.routing.state import EVERYBODY, Phases
from pipeline.vocabulary import Role, Signal

RECIPE: Final = "recipe.json"
"""The file of a run that says what recipe it is of, as it was when it began."""
PREVIOUS_PATCH: Final = "previous.patch"
"""The work of an earlier run of the issue, which did not go onto the base; a file of the run that does it again."""
HIDDEN: Final = "(hidden)"
"""What stands where a value is not kept."""


Trigger = Literal["cli", "mcp"]


class RecipeFacts(Frozen):
    """Which recipe a run is of: its hash is that of all its steps, `path` is where it was found."""

    name: BareName
    version: int
    sha256: str
    path: str


class ChangeSeen(Frozen):
    """The change that a run of a recipe is about: the input that names it, the trees before it and with it."""

    input: BareName
    before: ObjectName
    after: ObjectName


class RunInfo(Frozen):
    """run.json: everything that must not change while the run lives."""

    schema_: str = Field(default="redfirst.run/1", alias="schema")
    run_id: BareName
    workflow: str = "issue-to-commits"
    workflow_version: str
    workflow_hash: str
    redfirst_version: str
    issue: BareName | None = None
    """What the run works on; a run that is not of an issue has none."""
    branch: BranchName
    base_branch: BranchName
    start_commit: ObjectName
    start_tree: ObjectName
    config: dict[str, object]
    config_hash: str
    flags: Mapping[str, dict[str, str]] = {}
    """What the command line said of the configuration: `set` by key, `agent` by role."""
    prompts_hash: str
    limits: Mapping[str, int] = {}
    """How often a loop of the machine may be taken, by its name; and how much of it may be done side by side."""
    gates: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    """Where somebody is told that the run passed."""
    park_on_blockers: bool = False
    recipe: RecipeFacts | None = None
    """None of a run that an older version began: it is of the recipe `issue`."""
    steps: dict[str, object] | None = None
    """The whole recipe of a run that the matrix does not drive, and `inputs` its values."""
    inputs: Mapping[str, str] = {}
    change: ChangeSeen | None = None
    """The change that one of the inputs names; then its steps see the files with it."""
    phases: Phases = EVERYBODY
    """What of the recipe the matrix goes by."""
    previous: str | None = None
    """The run whose result did not go onto the base, which this one does again, as it is called in any worktree."""
    trigger: Trigger = "cli"
    """Who began it: a person at the command line, or an agent of another program (`redfirst mcp`)."""
    started_at: Timestamp
    tracker_before: Mapping[str, str | None] = {}
    """sha256 of each tracker file that the claim rewrites in the user's worktree, as it was before."""

    @property
    def seen_tree(self) -> str:
        """Return the tree that steps see before any of them has changed something."""
        return self.start_tree if self.change is None else self.change.after

    @field_validator("config")
    @classmethod
    def _without_secrets(cls, config: dict[str, object]) -> dict[str, object]:
        """Return the configuration without the values of agents' variables: run.json goes into the run's ref."""
        return without_secrets(config)


def day_of(info: RunInfo) -> date:
    """Return the day that counts for a run: that on which it began, so that resuming it judges alike."""
    return datetime.fromisoformat(info.started_at).date()


def without_secrets(config: dict[str, object]) -> dict[str, object]:
    """Return a configuration without the values of agents' variables."""
    return cast("dict[str, object]", _without_values(config))


def _without_values(value: object, *, hide: bool = False) -> object:
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return {key: _without_values(entry, hide=hide or key == "env") for key, entry in entries.items()}
    return HIDDEN if hide else value


class ChangeRecord(Frozen):
    """One admitted change: `oid` is the blob (None for a deletion), `mode` git's."""

    path: str
    kind: Literal["added", "modified", "deleted"]
    mode: str | None = None
    oid: ObjectName | None = None
    sha256: str | None = None


class ViolationRecord(Frozen):
    """One refused change, in words that the agent was told."""

    path: str
    rule: str
    why: str


class Usage(Frozen):
    """What a dispatch cost. None means that the backend does not say; never 0 for unknown."""

    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    model: str | None = None


class TokenCount(Frozen):
    """Tokens of one model; `input` counts those that came from or went into a cache too."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


class ModelTraffic(Frozen):
    """What went through the gateway in one dispatch (network `model`); sizes in bytes."""

    requests: int
    refused: int
    bytes_up: int
    bytes_down: int
    answers: int = 0
    """Of models, whole ones."""
    by_model: Mapping[str, TokenCount] = {}
    cost_usd: float | None = None
    """By known prices; None if one of them is not known."""
    unpriced: tuple[str, ...] = ()
    """Models whose price is not known."""
    unmetered: int = 0
    """Answers that did not say how many tokens they took."""
    cut: int = 0
    """Answers that broke off: their tokens are a lower bound."""


class AgentFacts(Frozen):
    """Who was asked: nothing of it is inherited from a product's own settings in silence."""

    product: str
    """The backend, and for acp its profile; only the same product can go on with a conversation."""
    service: str | None = None
    model: str | None = None
    effort: str | None = None


class Try(Frozen):
    """One agent that was out of reach, before the one that the result is of; its files are in `try-N`."""

    agent: AgentFacts
    complaint: str
    usage: Usage = Usage()


class Reserved(Frozen):
    """What a dispatch may spend: its share of what was left when it began. None = no limit but the dispatches."""

    cost_usd: float | None = None
    tokens: int | None = None


class DispatchResult(Frozen):
    """result.json: a dispatch is finished when this file is there."""

    schema_: str = Field(default="redfirst.result/1", alias="schema")
    dispatch: BareName
    signal: Signal | None = None
    """Why the answer does not count; None when it does."""
    complaint: str | None = None
    refusal: str | None = None
    """A hash of what was refused, and why: what comes again with the same one is the same, refused the same way."""
    report: dict[str, object] | None = None
    report_sha256: str | None = None
    gate: Literal["admitted", "rejected"] | None = None
    base_tree: ObjectName
    tree: ObjectName | None = None
    changes: tuple[ChangeRecord, ...] = ()
    dropped: tuple[str, ...] = ()
    violations: tuple[ViolationRecord, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()
    model_traffic: ModelTraffic | None = None
    checkpoint: Literal["ready", "partial", "failed", "held", "needs_orchestrator"] = "ready"
    limitations: tuple[str, ...] = ()
    verification: tuple[str, ...] = ()
    entry: int | None = None
    """Which entry of a script answered (scripted agents only)."""
    agent: AgentFacts | None = None
    tries: tuple[Try, ...] = ()
    fault: str | None = None
    """What kind of failure it was, in the words of `backends.protocol.Fault`."""
    denials: tuple[str, ...] = ()
    """Calls that the agent's product, or a tool of ours, refused."""
    steps: int | None = None
    """How many answers the model gave."""
    session: SessionName | None = None
    """The product's name of the conversation."""
    not_before: Timestamp | None = None
    """When the first of the services that were out of reach may be asked again, where one says so."""


class DispatchRecord(Frozen):
    """What the journal says of one dispatch when it starts."""

    dispatch: BareName
    number: int
    step: str
    visit: int
    resumes: int
    role: Role
    kind: str
    question: str | None
    task: BareName | None
    attempt: int
    reask: str | None
    base_tree: ObjectName
    backend: str
    pid: int | None = None
    model: str | None = None
    service: str | None = None
    """The model service, if it is asked through the gateway, which writes down every request."""
    continues: BareName | None = None
    """The dispatch whose answer did not count: its conversation is gone on with, where the product can."""
    reserved: Reserved | None = None
    lane: BareName = TRUNK
    """The line of work that it belongs to; not written where that is the trunk."""
    offered_again: bool = False
    """A person finds the same desk again that a stopped driver left: that counts against no limit; else not written."""
