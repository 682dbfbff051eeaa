"""The document that `redfirst demo --json` prints (contract 1)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class DemoDocument(BaseModel):
    """The demo's folders, the rows of the matrix that fired, and the run's own document."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["redfirst.demo/1"] = Field(default="redfirst.demo/1", alias="schema")
    ok: bool
    scripted: Literal[True] = True
    folder: str
    repository: str
    rows: tuple[str, ...]
    seconds: float
    run: dict[str, Any]
