"""Handles questions of agents to a person: what an agent is told of them, what it asked, what was answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.judge.reports.untrusted_text import block, fenced, one_line
from pipeline.matrix.engine.journal_kinds import DecisionMade, InputGiven
from pipeline.matrix.routing.lookup import counter_key, limit_of
from pipeline.matrix.routing.state import Event
from pipeline.vocabulary import Loop, Role, Signal

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.judge.reports.fields import Report
    from pipeline.steps.asking.dispatches import Answer
    from pipeline.steps.context import Context

_LONGEST: Final = 200


def left(ctx: Context) -> int:
    """Return how many questions a person may still be asked in this run."""
    limit = limit_of(ctx.state, Loop.QUESTIONS) or 0
    return max(0, limit - ctx.state.counters.get(counter_key(ctx.state, Loop.QUESTIONS, None), 0))


@dataclass(frozen=True)
class Told:
    """What a request says of questions: whether one may be asked, and in words how, or why none is answered."""

    asks: bool = False
    words: str = ""


NONE: Final = Told()


def told(ctx: Context, role: Role) -> Told:
    """Return what a request to a role says of questions."""
    count = left(ctx)
    if count:
        words = (
            "If only a person can decide, put one question into `question`. Put what you would do without an answer "
            "into the other fields. The run waits for the person: ask nothing that can be found out here. "
            f"Questions left in this run: {count}."
        )
        return Told(asks=True, words=f"\n\n{words}")
    if ctx.lane.reasks.get(role) is Signal.QUESTION:
        return Told(
            words="\n\nNo question is answered here: decide yourself, and write down what you took for granted."
        )
    return NONE


def answers(ctx: Context) -> dict[str, list[Path]]:
    """Return the artifacts with what a person has answered so far, each with its question."""
    found = [ctx.path(line.data.answer) for line in ctx.run.journal.of(InputGiven)]
    return {"answers": found} if found else {}


def is_question(report: Report) -> bool:
    """Return whether a report asks a person instead of settling what was asked of it."""
    return bool(_text(report))


def asked(ctx: Context, role: Role, answer: Answer) -> Event:
    """Return the event of a report that asks a person; its question is written down."""
    decided = ctx.run.journal.of(DecisionMade)
    number = sum(line.data.signal == Signal.QUESTION for line in decided) + 1
    text = _text(answer.report)
    head = f"# Question {number}, of @{role.value} ({answer.result.dispatch})"
    rest = answer.report.model_dump(mode="json", exclude={"question"}, exclude_defaults=True)
    without = fenced(json.dumps(rest, indent=1, ensure_ascii=False), "json")
    asks = f"{head}\n\n{block(text)}\n\n## What Would Be Done without an Answer\n\n{without}\n"
    name = ctx.write(f"question-{number}.md", asks)
    note = one_line(text)
    return Event(
        signal=Signal.QUESTION,
        role=role,
        note=note if len(note) <= _LONGEST else f"{note[:_LONGEST]} ...",
        evidence=(name, answer.evidence),
    )


def _text(report: Report) -> str:
    return str(getattr(report, "question", "")).strip()
