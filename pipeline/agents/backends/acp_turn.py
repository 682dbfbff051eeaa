"""Collects an agent's messages, tool calls and cost during one turn, in its transcript."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from acp import schema
from pydantic import ValidationError

from pipeline.agents.backends.stream_result import Transcript, call_words

if TYPE_CHECKING:
    from collections.abc import Callable

_MESSAGE_CHARACTERS: Final = 2_000_000
_CALLS: Final = 10_000
_NOISE_BYTES: Final = 300


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
            update = schema.SessionNotification.model_validate(params).update
        except ValidationError:
            self.transcript.add("update", params)
            return
        match update:
            case schema.AgentMessageChunk(content=schema.TextContentBlock(text=text), message_id=number):
                self._say(f"message {number}", text)
            case schema.AgentThoughtChunk(content=schema.TextContentBlock(text=text)):
                self._say("thought", text)
            case schema.ToolCallStart() | schema.ToolCallProgress():
                self.pause()
                self._call(update)
            case schema.UsageUpdate(cost=schema.Cost(amount=amount, currency="USD")) if (
                math.isfinite(amount) and amount >= 0
            ):
                self.cost_usd = amount  # what is no number would stand for no limit, as a budget counts
            case schema.UsageUpdate():
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

    def _call(self, update: schema.ToolCallStart | schema.ToolCallProgress) -> None:
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
