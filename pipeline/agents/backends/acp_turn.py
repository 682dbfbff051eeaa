"""Collects an agent's messages, tool calls and cost during one turn, in a transcript of bounded size."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    Cost,
    SessionNotification,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
)
from pydantic import ValidationError

from pipeline.agents.backends.stream_result import call_words

if TYPE_CHECKING:
    from collections.abc import Callable

_TRANSCRIPT_BYTES: Final = 3_000_000
_LINE_CHARACTERS: Final = 20_000
_MESSAGE_CHARACTERS: Final = 2_000_000
_CALLS: Final = 10_000
_NOISE_BYTES: Final = 300
_CUT: Final = " [... cut ...] "


@dataclass
class Transcript:
    """A transcript as JSON lines, each a list of a word and its details, so that no line looks like a report.

    Of a long one the middle is left out, and the place says so.
    """

    limit: int = _TRANSCRIPT_BYTES
    _head: list[bytes] = field(default_factory=list[bytes])
    _tail: deque[bytes] = field(default_factory=deque[bytes])
    _room: int = field(init=False)
    _kept: int = 0
    left_out: int = 0

    def __post_init__(self) -> None:
        self._room = self.limit // 2

    def add(self, word: str, *said: object) -> None:
        """Add one line."""
        line = json.dumps([word, *map(_short, said)], ensure_ascii=False, default=str).encode(errors="replace") + b"\n"
        if self._room >= len(line) and not self._tail:
            self._head.append(line)
            self._room -= len(line)
            return
        self._tail.append(line)
        self._kept += len(line)
        while self._kept > self.limit // 2:
            self._kept -= len(self._tail.popleft())
            self.left_out += 1

    def content(self) -> bytes:
        """Return all lines, with a mark where lines were left out."""
        mark = [json.dumps(["left out", f"{self.left_out} lines"]).encode() + b"\n"] if self.left_out else []
        return b"".join([*self._head, *mark, *self._tail])


@dataclass(frozen=True)
class Call:
    """A tool call, as far as the agent has described it."""

    title: str = ""
    kind: str | None = None
    input: object = None


@dataclass
class Turn:
    """Collects the updates of one turn in order.

    Attributes:
        message: What was said after the last tool call, or before it if nothing was.
        cost_usd: What the session has cost, as the agent says; None if it does not.
        on_words: Gets what was said as soon as it is whole, and each call's title.
    """

    transcript: Transcript = field(default_factory=Transcript)
    on_words: Callable[[str], None] = field(default=lambda _: None, kw_only=True)
    message: str = ""
    cost_usd: float | None = None
    _calls: dict[str, Call] = field(default_factory=dict[str, Call])
    _speaking: str | None = None
    _said: list[str] = field(default_factory=list[str])
    _length: int = 0

    def update(self, params: object) -> None:
        """Record a `session/update` message."""
        try:
            update = SessionNotification.model_validate(params).update
        except ValidationError:
            self.transcript.add("update", params)
            return
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text), message_id=number):
                self._say(f"message {number}", text)
            case AgentThoughtChunk(content=TextContentBlock(text=text)):
                self._say("thought", text)
            case ToolCallStart() | ToolCallProgress():
                self.pause()
                self._call(update)
            case UsageUpdate(cost=Cost(amount=amount, currency="USD")) if math.isfinite(amount) and amount >= 0:
                self.cost_usd = amount  # what is no number would stand for no limit, as a budget counts
            case UsageUpdate():
                pass
            case _:
                self.transcript.add(update.session_update)

    def noise(self, line: bytes) -> None:
        """Record a line that is no message."""
        if line.strip():
            self.transcript.add("noise", line[:_NOISE_BYTES].decode(errors="replace"))

    def call(self, number: str) -> Call:
        """Return the description of a tool call, empty if it is unknown."""
        return self._calls.get(number, Call())

    def pause(self) -> None:
        """Write the text that the agent has said so far to the transcript."""
        text = "".join(self._said)
        if self._speaking is not None and text.strip():
            word = "thought" if self._speaking == "thought" else "message"
            self.message = text if word == "message" else self.message
            self.transcript.add(word, text)
            self.on_words(text)
        self._speaking, self._said, self._length = None, [], 0

    def settle(self) -> None:
        """Write the rest of the turn to the transcript, unfinished calls included."""
        self.pause()
        for call in self._calls.values():
            self.transcript.add("call", call.kind, call.title, call.input, "unfinished")
        self._calls.clear()

    def forget(self) -> None:
        """Discard everything collected so far: it belongs to an earlier turn."""
        self._speaking, self._said, self._length, self.message = None, [], 0, ""
        self.transcript = Transcript(self.transcript.limit)

    def _say(self, speaking: str, text: str) -> None:
        if speaking != self._speaking:
            self.pause()
        self._speaking = speaking
        self._said.append(text)
        self._length += len(text)
        if self._length > 2 * _MESSAGE_CHARACTERS:  # the report is at the end
            self._said = ["".join(self._said)[-_MESSAGE_CHARACTERS:]]
            self._length = _MESSAGE_CHARACTERS

    def _call(self, update: ToolCallStart | ToolCallProgress) -> None:
        number, known = update.tool_call_id, self.call(update.tool_call_id)
        call = Call(
            update.title or known.title,
            update.kind or known.kind,
            known.input if update.raw_input is None else update.raw_input,
        )
        if number not in self._calls and call.title:
            self.on_words(call_words(call.title, ()))
        if number in self._calls or len(self._calls) < _CALLS:
            self._calls[number] = call
        if update.status in {"completed", "failed"}:
            self._calls.pop(number, None)
            output = update.raw_output if update.raw_output is not None else _plain(update.content)
            self.transcript.add("call", call.kind, call.title, call.input, update.status, output)


def _plain(content: list[Any] | None) -> object:
    return [part.model_dump(mode="json", exclude_none=True, by_alias=True) for part in content or ()]


def _short(value: object) -> object:
    """Return a value with its text cut to the length of a line."""
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _LINE_CHARACTERS:
        return value
    half = _LINE_CHARACTERS // 2
    return f"{text[:half]}{_CUT}{text[-half:]}"
