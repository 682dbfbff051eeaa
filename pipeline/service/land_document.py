"""Defines what `land --json` prints."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.landing.table import Found, Then


class LandLine(BaseModel):
    """One run. `commits` are those on the base; `found` and `then` say what came of the pick, `why` what is in the way.

    `already`: it had landed before. `passed_over`: it was not named, and something else counts in its place. `waits`:
    for an issue that it depends on, for a person, or for what is in the way. `order` was placed for its issue.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    issue: str
    branch: str
    status: Literal["landed", "would_land", "already", "refused", "waits", "passed_over"]
    found: Found | None = None
    then: Then | None = None
    commits: tuple[str, ...] = ()
    filed: tuple[str, ...] = ()
    order: str | None = None
    why: tuple[str, ...] = ()
    safe_next_actions: tuple[str, ...] = ()


class LandDocument(BaseModel):
    """What came of all of them, in the order in which they were picked; `before` and `after` are the tip of `onto`.

    `ok`: nothing was refused and nothing waits. The exit code is 0 then, 7 where a result was refused, else 4.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["redfirst.land/1"] = Field(default="redfirst.land/1", alias="schema")
    ok: bool
    exit_code: Literal[0, 4, 7]
    onto: str | None
    before: str | None
    after: str | None
    dry_run: bool
    runs: tuple[LandLine, ...]
