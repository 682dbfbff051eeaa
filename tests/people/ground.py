"""A project whose whole runs take a second or two, for what people do with runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from e2e.lanes import Played, go_on, play
from e2e.shapes import TRACKER, answers
from kit import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Entry, Project

FILES = {"greet.sum": "greet n = n\n", "greet.check": "nothing: greet 0 = 0\n", "sums.project": "", **TRACKER}
TESTS = {"greet.check": "nothing: greet 0 = 0\ntwo: greet 2 = 4\n"}
CODE = {"greet.sum": "greet n = n * 2\n"}
FAST = 'sandbox = "none"\n[agents.simplify]\nbackend = "off"\n'
SCRIPT = answers(FILES, TESTS, CODE)


def make(tmp_path: Path) -> Project:
    """Return a project in the language of sums, whose tests take no process."""
    project = make_project(tmp_path, FILES)
    project.env["TESTS_LANGUAGE"] = "languages.sums"
    return project


def waiting(tmp_path: Path, gates: str = "plan", script: list[Entry] | None = None, extra: str = "") -> Played:
    """Return a run that waits at the first of these gates."""
    played = play(make(tmp_path), SCRIPT if script is None else script, "--approve", gates, extra=FAST + extra)
    assert played.document["reason"] == "approval", played.document["_stderr"]
    return played


__all__ = ["CODE", "FAST", "FILES", "SCRIPT", "TESTS", "Played", "go_on", "make", "play", "waiting"]
