"""Tells in words what a line of a product's event stream says, while the agent works: its words and its calls."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  (pydantic reads it at run time)
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from pipeline.backends.stream_result import Line, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.backends.protocol import AgentJob

_REPORT: Final = "StructuredOutput"
"""The tool by which Claude Code's model answers: its words are the report, which is told where it is judged."""


class _Text(Line):
    type: Literal["text", "agent_message"]
    text: str


class _Call(Line):
    type: Literal["tool_use"]
    name: str
    input: Mapping[str, Any] = {}


class _Command(Line):
    type: Literal["command_execution"]
    command: str


class _Other(Line):
    type: str


_Part = Annotated[_Text | _Call | _Command | _Other, Field(union_mode="left_to_right")]


class _Message(Line):
    content: tuple[_Part, ...]


class _ClaudeSaid(Line):
    type: Literal["assistant"]
    message: _Message


class _CodexBegan(Line):
    type: Literal["item.started"]
    item: _Command


class _CodexSaid(Line):
    type: Literal["item.completed"]
    item: _Text


_EVENT: Final[TypeAdapter[_ClaudeSaid | _CodexBegan | _CodexSaid]] = TypeAdapter(_ClaudeSaid | _CodexBegan | _CodexSaid)


def stream_words(line: bytes) -> str:
    """Return what a line of Claude Code's or Codex's stream says in words; nothing where it is no such line."""
    try:
        event = _EVENT.validate_json(line)
    except ValidationError:
        return ""
    parts = event.message.content if isinstance(event, _ClaudeSaid) else (event.item,)
    return "\n".join(_words(parts))


def lines_to_words(job: AgentJob) -> Callable[[bytes], None]:
    """Return what passes the lines of a stream on to who hears the job's agent, in words."""

    def on_line(line: bytes) -> None:
        if words := stream_words(line):
            job.on_words(words)

    return on_line


def call_words(name: str, arguments: Iterable[object]) -> str:
    """Return a call of a tool on one line."""
    return short(f"> {name} {' '.join(map(str, arguments))}")


def _words(parts: Iterable[_Text | _Call | _Command | _Other]) -> Iterable[str]:
    for part in parts:
        match part:
            case _Text():
                yield part.text
            case _Call() if part.name != _REPORT:
                yield call_words(part.name, part.input.values())
            case _Command():
                yield short(f"> {part.command}")
            case _:
                pass
