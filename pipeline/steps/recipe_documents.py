"""Defines `steps/<name>/outcome.json` (contract 6): how a step stands, and what others may build on."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.recipes.step_table import Checkpoint


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class StepError(_Document):
    """Why a step did not come out: the signal in small letters, and what was said of it."""

    kind: str
    message: str


class LeftFile(_Document):
    """A file that a step left, by its path in the run."""

    path: str
    sha256: str


class Verified(_Document):
    """What somebody else than the author looked at: by whom, what, and the sha256 of what they looked at."""

    by: str
    what: str
    digest: str


class PayloadLeft(_Document):
    """A payload that others may use: its form, the dispatch that it is from (`measured`: none), and where it is."""

    schema_: str = Field(alias="schema")
    provenance: str
    valid: bool
    path: str


class SeamSaid(_Document):
    """A contract between steps, and whether this one says that it keeps to it."""

    name: str
    state: Literal["honoured", "not_honoured", "not_reported"]


class Bundle(_Document):
    """What others may build on; `dependent_safe` is whether those may that take nothing half."""

    dependent_safe: bool
    artifacts: tuple[LeftFile, ...]
    verification: tuple[Verified, ...]
    limitations: tuple[str, ...]
    payloads: tuple[PayloadLeft, ...]
    seams: tuple[SeamSaid, ...]


class StepOutcome(_Document):
    """How a step came out. `wave` is the start that it belongs to, `seconds` how long it took, all tries together."""

    schema_: Literal["redfirst.step-outcome/1"] = Field(default="redfirst.step-outcome/1", alias="schema")
    step: str
    wave: int
    dispatches: tuple[str, ...]
    session: str | None
    """The product's name of the last conversation, where it has one."""
    signal: str | None
    checkpoint: Checkpoint
    summary: str
    seconds: float
    error: StepError | None
    base_tree: str
    tree: str
    held_by: tuple[str, ...]
    bundle: Bundle
    safe_next_actions: tuple[str, ...]
