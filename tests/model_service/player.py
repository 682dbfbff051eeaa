"""Which turn answers a request. It follows from the request itself: what began the conversation, and how far it is.

So a request that is sent again gets the same turn, a conversation that is resumed in a new process goes on, and a
dispatch that was killed half-way and is asked again in the same words begins the same conversation again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from model_service.asked import Reply, Speaker, Stop
from model_service.script import Answering, Empty, Huge, Refuse, Report, Say, Truncate, Uses
from model_service.structured import example, report_of
from model_service.tools import ScriptError, calls_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model_service.asked import Asked, Call
    from model_service.script import Conversation, Trouble

_BESIDE: Final = ("title generator", "generate a title", "concise title", "Task Routing AI", "next speaker")
"""What products ask a model beside the work; such a request quotes the prompt, and offers no tools."""


@dataclass(frozen=True)
class Move:
    """What to do with a request: an answer's turn or a trouble, and which conversation it is of (None: beside them)."""

    turn: Answering | Trouble
    conversation: int | None
    number: int


@dataclass
class _Part:
    """A conversation of the script as it is played; `base` answers of the model came before it."""

    number: int
    turns: Sequence[Answering | Trouble]
    base: int
    troubles: Counter[int] = field(default_factory=Counter[int])
    finished: bool = False

    def next(self, rounds: int) -> int | None:
        """Return the index of the turn after so many answers in all, None if the script says no more."""
        answered = self.base
        for index, turn in enumerate(self.turns):
            if isinstance(turn, Answering):
                if answered == rounds:
                    return index
                answered += 1
            elif answered == rounds and (turn.times is None or self.troubles[index] < turn.times):
                return index
        return None

    @property
    def ends_badly(self) -> bool:
        """Return whether a product may well send its request again after the last turn."""
        return not isinstance(self.turns[-1], Say | Uses | Report | Huge)

    def take(self, index: int) -> Move:
        turn = self.turns[index]
        if not isinstance(turn, Answering):
            self.troubles[index] += 1
        self.finished = self.finished or index == len(self.turns) - 1
        return Move(turn, self.number, index)


@dataclass
class _Playing:
    """One conversation of an agent; it may go through several of the script, being asked again."""

    opening: tuple[int, str]
    session: str | None
    parts: list[_Part]
    reasks: int

    def is_of(self, asked: Asked) -> bool:
        """Return whether a request is part of it; some products add to the first message instead of sending another."""
        start, words = asked.opening
        return start == self.opening[0] and words.startswith(self.opening[1])


class Player:
    """Plays a script. Not for several threads at once."""

    def __init__(self, script: Sequence[Conversation]) -> None:
        self._script = tuple(script)
        self._used: set[int] = set()
        self._playing: list[_Playing] = []

    @property
    def unused(self) -> tuple[int, ...]:
        """Return the conversations that nobody began."""
        return tuple(number for number in range(len(self._script)) if number not in self._used)

    def move(self, asked: Asked) -> Move:
        """Return what answers a request.

        Raises:
            ScriptError: no conversation is for it, or its conversation has no more turns.
        """
        if not asked.tools and any(word.lower() in asked.system.lower() for word in _BESIDE):
            return _beside(asked)
        playing = self._known(asked)
        if playing is None:
            if not asked.tools and not asked.prompt.known and self._unused(asked) is None:
                return _beside(asked)
            playing = _Playing(asked.opening, asked.session, [self._begin(asked, 0)], asked.reasks)
            self._playing.append(playing)
        part = playing.parts[-1]
        if part.finished and asked.reasks > playing.reasks:
            # In the same conversation; the answer is the next entry, as it is for an agent that begins afresh.
            part = self._begin(asked, asked.rounds)
            playing.parts.append(part)
            playing.reasks = asked.reasks
        index = part.next(asked.rounds)
        return part.take(index) if index is not None else _after(part, asked)

    def _known(self, asked: Asked) -> _Playing | None:
        known = [playing for playing in self._playing if playing.is_of(asked)]
        if not known:
            return None
        latest = known[-1]
        part = latest.parts[-1]
        retried = asked.session == latest.session and (asked.session is not None or part.ends_badly)
        return latest if asked.rounds or retried or not (part.finished or part.base) else None

    def _unused(self, asked: Asked) -> int | None:
        fitting = (number for number in self.unused if asked.prompt.matches(self._script[number].when))
        return next(fitting, None)

    def _begin(self, asked: Asked, base: int) -> _Part:
        number = self._unused(asked)
        if number is None:
            raise ScriptError(f"no unused conversation of the script is for this request: {_summary(asked)}")
        self._used.add(number)
        return _Part(number, self._script[number].turns, base)


def _after(part: _Part, asked: Asked) -> Move:
    """Return what a model says to a product that has something to say after the last turn of the script."""
    last = next((turn for turn in reversed(part.turns) if isinstance(turn, Answering)), None)
    if isinstance(last, Report) and asked.told is Speaker.TOOL:
        return Move(Say("Done."), part.number, len(part.turns))
    if last is not None and not isinstance(last, Uses) and asked.told is Speaker.USER:
        return Move(last, part.number, part.turns.index(last))
    raise ScriptError(f"conversation {part.number} has no turn after {asked.rounds} rounds: {_summary(asked)}")


def _beside(asked: Asked) -> Move:
    text = "Work" if asked.schema is None else json.dumps(example(asked.schema))
    return Move(Say(text), None, 0)


def _summary(asked: Asked) -> str:
    said = asked.prompt
    facts = {name: getattr(said, name) for name in ("role", "kind", "question", "task", "attempt", "reask")}
    known = ", ".join(f"{name} {value}" for name, value in facts.items() if value)
    return f"{known or asked.prompt.text[-200:]!r} after {asked.rounds} rounds, {len(asked.tools)} tools"


def reply_of(turn: Answering, asked: Asked, number: int) -> Reply:
    """Return the answer of a turn to a request.

    Raises:
        ScriptError: the request offers no tool for it.
    """
    text = ""
    calls: tuple[Call, ...] = ()
    stop = Stop.DONE
    match turn:
        case Say():
            text = turn.text
        case Uses():
            text, calls = turn.text, calls_of(turn.acts, asked)
        case Report():
            text, calls = report_of(turn.report, turn.text, asked)
        case Refuse():
            text, stop = turn.text, Stop.REFUSED
        case Truncate():
            text, stop = turn.text, Stop.LENGTH
        case Empty():
            pass
        case Huge():
            text = "x" * turn.characters
    stop = Stop.CALLS if calls else stop
    return Reply(asked.model, number, text, calls, stop, usage=asked.usage)
