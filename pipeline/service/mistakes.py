"""Picks from the decisions of a run what agents did wrong, in plain words, each with what shows it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.routing.story import WRONG
from pipeline.routing.vocabulary import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.service.explanation import DecisionLine, ExplainDocument

_NOT_AGENTS: Final = frozenset({Step.INTEGRATE.value, Step.PUBLISH.value})
"""Where work that was right where it was done does not fit what others did."""
_RESULT: Final = re.compile(r"dispatches/([^/]+)/")


@dataclass(frozen=True)
class Mistake:
    """Something that an agent did wrong.

    Args:
        at: When it was decided.
        step: Where.
        task: At which task; empty before there were any.
        signal: The word of the matrix.
        who: The role.
        says: What it did, behind its name.
        note: What was found.
        then: What followed.
        dispatch: Which dispatch it was.
        evidence: The files that show it, as they were.
    """

    at: str
    step: str
    task: str
    signal: str
    who: str
    says: str
    note: str
    then: str
    dispatch: str | None
    evidence: tuple[str, ...]


def mistakes_of(document: ExplainDocument) -> tuple[Mistake, ...]:
    """Return what agents did wrong, in its order."""
    return tuple(_mistakes(document))


def _mistakes(document: ExplainDocument) -> Iterator[Mistake]:
    for line in document.decisions:
        if line.signal not in WRONG or line.step in _NOT_AGENTS:
            continue
        dispatch = _dispatch_of(line)
        roles = {one.dispatch: one.role.value for one in line.dispatches}
        files = (one.path if one.state == "as_decided" else one.kept for one in line.evidence)
        yield Mistake(
            at=line.at,
            step=line.step,
            task=line.task or "",
            signal=line.signal.value,
            who=line.role.value if line.role is not None else roles.get(dispatch or "", "agent"),
            says=WRONG[line.signal],
            note=line.note,
            then=line.then,
            dispatch=dispatch,
            evidence=tuple(name for name in files if name is not None and name.endswith(".md")),
        )


def _dispatch_of(line: DecisionLine) -> str | None:
    """Return the dispatch that a decision was about: the one whose result it rests on, else the last one."""
    named = [found[1] for one in line.evidence if (found := _RESULT.match(one.path))]
    return named[-1] if named else next((one.dispatch for one in reversed(line.dispatches)), None)
