"""What is said of one change: whether it may be made, by which rule, and a sentence that the agent can act on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ruling:
    """The answer for one change. `note` is for @check to read when an allowed change deserves a look."""

    allowed: bool
    rule: str
    why: str
    note: str | None = None


def refused(rule: str, why: str) -> Ruling:
    """Return that it may not be made."""
    return Ruling(allowed=False, rule=rule, why=why)
