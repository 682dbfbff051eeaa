"""Describes one thing that a run has left, and removes it after another look (ADR-R207)."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.service.gc_document import GcLine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.service.gc_document import Kind


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
