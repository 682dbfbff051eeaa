"""A project whose whole runs take a second or two, for what people do with runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.lanes import Played, go_on, play
from e2e.shapes import FAST, SUMS_HONEST, sums_project
from e2e.shapes import SUM_CODE as CODE
from e2e.shapes import SUM_TESTS as TESTS
from e2e.shapes import SUMS as FILES

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

SCRIPT = SUMS_HONEST


def make(tmp_path: Path) -> Project:
    """Return a project in the language of sums, whose tests take no process."""
    return sums_project(tmp_path)


def waiting(tmp_path: Path, gates: str = "plan", script: list[Entry] | None = None, extra: str = "") -> Played:
    """Return a run that waits at the first of these gates."""
    played = play(make(tmp_path), SCRIPT if script is None else script, "--approve", gates, extra=FAST + extra)
    assert played.document["reason"] == "approval", played.document["_stderr"]
    return played


__all__ = ["CODE", "FAST", "FILES", "SCRIPT", "TESTS", "Played", "go_on", "make", "play", "waiting"]
