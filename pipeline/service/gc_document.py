"""Defines what `gc --json` prints."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["checkout", "pool", "run_folder", "worktree", "publish_ref", "claim", "run_ref", "orders"]


class GcLine(BaseModel):
    """One thing that runs have left: what becomes of it, and the proof that nobody needs it, or why it stays."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    what: str
    status: Literal["removed", "would_remove", "kept"]
    why: str


class GcDocument(BaseModel):
    """All of them. Without `--apply` nothing is removed."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["redfirst.gc/1"] = Field(default="redfirst.gc/1", alias="schema")
    ok: Literal[True] = True
    applied: bool
    older_than_s: int
    things: tuple[GcLine, ...]
