"""Words a gate: what to read, with paths that open from where the person stands, and what each answer does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipeline.policy.characters import visible

if TYPE_CHECKING:
    from pipeline.runs.gates import OpenGate


def reading_rows(gate: OpenGate) -> list[tuple[str, str]]:
    """Return what a person reads at the gate, with labels."""
    return [
        *(("may edit", near(path)) for path in gate.edit),
        *(("read", near(path)) for path in gate.read),
        *(("note", visible(note)) for note in gate.notes),
        *(("to commit", visible(subject)) for subject in gate.commits),
    ]


def answer_rows(gate: OpenGate) -> list[tuple[str, str]]:
    """Return each answer, and below it what it does."""
    return [row for one in gate.answers for row in (("next", visible(one.command)), ("", f"  {visible(one.does)}"))]


def near(path: str) -> str:
    """Return a path as it is shortest from here."""
    return visible(min(path, os.path.relpath(path), key=len))
