"""The ruling on one change: whether it is allowed, by which rule, and a sentence that the agent can act on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ruling:
    """A ruling on one change. `note` tells @check why an allowed change deserves a look."""

    allowed: bool
    rule: str
    why: str
    note: str | None = None


def refused(rule: str, why: str) -> Ruling:
    """Return a ruling that refuses the change."""
    return Ruling(allowed=False, rule=rule, why=why)
