"""Describes things that runs have left, as `gc --json` prints them, and removes one after another look (ADR-R207)."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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


@dataclass(frozen=True)
class Thing:
    """Something that a run left. `why` is the proof that nobody needs it, or why it stays.

    `remove` looks again, removes it, and returns why it did not; None of what stays.
    """

    kind: Kind
    what: str
    why: str
    remove: Callable[[], str] | None = None

    def line(self, *, apply: bool) -> GcLine:
        """Return what becomes of it; with *apply* that is done."""
        if self.remove is None:
            return GcLine(kind=self.kind, what=self.what, status="kept", why=self.why)
        if not apply:
            return GcLine(kind=self.kind, what=self.what, status="would_remove", why=self.why)
        try:
            stays = self.remove()
        except (UserError, OSError) as error:
            stays = str(error)
        if stays:
            return GcLine(kind=self.kind, what=self.what, status="kept", why=stays)
        return GcLine(kind=self.kind, what=self.what, status="removed", why=self.why)


def not_ours(path: Path) -> str:
    """Return, in words, why a folder is none that a run of this user made; "" where it is one."""
    try:
        status = path.lstat()
    except OSError as error:
        return f"it cannot be looked at: {error.strerror}"
    if stat.S_ISLNK(status.st_mode):
        return "it is a link"
    if not stat.S_ISDIR(status.st_mode):
        return "it is no folder"
    return "" if status.st_uid == os.geteuid() else "it is somebody else's"
