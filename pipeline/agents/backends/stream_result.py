"""Reads a product's event stream, and builds the result of a dispatch from its facts.

An exit code proves nothing: products end with 0 after a refusal, a denial, or nothing at all.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pipeline.agents.backends.program import Exchange, how_it_ended
from pipeline.agents.backends.protocol import AgentJob, AgentResult, Ended, Fault, Usage

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.process import Completed


Event = TypeVar("Event")

_DENIALS: Final = 50
_WORDS: Final = 300
_NO_REPORT: Final = "There was no report; answer with the JSON object that was asked for, as your last words."
_FULL: Final = re.compile(r"context[ _](?:window|length)|prompt is too long", re.IGNORECASE)
TOO_LONG: Final = "The conversation is longer than the model can take; read less at a time."
COULD_NOT: Final = "It could not use what it wanted to:"


class Line(BaseModel):
    """The base of events and their parts; unknown keys are ignored, since products add some with every version."""

    model_config = ConfigDict(frozen=True, extra="ignore")


@dataclass(frozen=True)
class StreamFacts:
    """The facts in a product's event stream.

    Args:
        report: The report in the structured answer or in the last words, if any.
        text: The last words.
        fault: Why this is no answer.
        complaint: The same in one sentence; also without a fault, where asking again may help.
        usage: What it says that it consumed.
        steps: How many answers the model gave; None if it does not say.
        session: Its name of the conversation.
        denials: The calls that it refused.
        lost: Whether the conversation to go on with is not there, so that nothing was asked.
        not_before: When the limit of the account ends, where an event says so.
    """

    report: bytes | None = None
    text: str = ""
    fault: Fault | None = None
    complaint: str | None = None
    usage: Usage = field(default_factory=Usage)
    steps: int | None = None
    session: str | None = None
    denials: tuple[str, ...] = ()
    lost: bool = False
    not_before: datetime | None = None


def events(stdout: bytes, known: TypeAdapter[Event]) -> list[Event]:
    """Return the known events in a stream of JSON lines; the middle of a long stream may be missing.

    What an agent runs can write into the stream, too: a line that does not validate is none of it. A null counts as
    left out, and half of a surrogate pair as `?`: neither may cost what else the line says.
    """
    found: list[Event] = []
    for line in stdout.splitlines():
        try:
            found.append(known.validate_json(line))
        except ValidationError:
            with contextlib.suppress(ValueError, RecursionError):
                text = json.dumps(json.loads(line, object_pairs_hook=_without_nulls), ensure_ascii=False)
                found.append(known.validate_json(text.encode(errors="replace")))
    return found


def _without_nulls(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if value is not None}


def short(words: object) -> str:
    """Return a product's words on one line, shortened."""
    line = " ".join(str(words).split())
    return line if len(line) <= _WORDS else f"{line[:_WORDS]} ..."


def without_lost_session(job: AgentJob, facts: StreamFacts) -> AgentJob | None:
    """Return the job with a new conversation if the one to be continued is lost, else None."""
    if not facts.lost or job.session is None or job.session.id is None:
        return None
    return replace(job, session=replace(job.session, id=None))


def result_of(exchange: Exchange, ended: Completed, facts: StreamFacts) -> AgentResult:
    """Return the result of a dispatch: a killed process counts first, then the product's fault, then no report."""
    how, complaint = how_it_ended(ended, exchange.job.timeout_s)
    written, unreadable = exchange.report()
    report = facts.report if facts.report is not None else written
    result = replace(
        AgentResult.of(ended, how, report, complaint),
        usage=facts.usage,
        fault=facts.fault,
        denials=facts.denials[:_DENIALS],
        steps=facts.steps,
        session=facts.session,
        not_before=facts.not_before,
    )
    if how in {Ended.TIMED_OUT, Ended.SIGNAL}:
        return result
    if facts.fault is not None and _FULL.search(facts.complaint or ""):
        return replace(result, complaint=f"{TOO_LONG} {facts.complaint}", fault=None, session=None)
    if facts.complaint is not None:
        return replace(result, complaint=facts.complaint)
    if report is not None or complaint is not None:
        return result
    refused = short(f"{COULD_NOT} {facts.denials[-1]}") if facts.denials else ""
    complaint, fault = without_report(unreadable, refused, facts.text)
    return replace(result, complaint=complaint, fault=fault)


def without_report(unreadable: str | None, refused: str, text: str) -> tuple[str, Fault | None]:
    """Return what is wrong with an answer that has no report, and the fault.

    Args:
        unreadable: Why the file of the report cannot be read.
        refused: That the agent could not use what it wanted to, if anything was refused.
        text: The last words.
    """
    if unreadable is not None:
        return unreadable, None
    if refused:
        return f"{_NO_REPORT} {refused}", Fault.DENIED
    if not text.strip():
        return f"The turn ended without a word. {_NO_REPORT}", Fault.EMPTY
    return _NO_REPORT, None


_TRANSCRIPT_BYTES: Final = 3_000_000
_TEXT_CHARACTERS: Final = 20_000
_CUT: Final = " [... cut ...] "


@dataclass
class Transcript:
    """A transcript as JSON lines, each a list, so that no line looks like a report.

    Of a long one the middle is left out, and the place says so.
    """

    limit: int = _TRANSCRIPT_BYTES
    left_out: int = 0
    _head: list[bytes] = field(default_factory=list[bytes])
    _tail: deque[bytes] = field(default_factory=deque[bytes])
    _room: int = field(init=False)
    _kept: int = 0

    def __post_init__(self) -> None:
        self._room = self.limit // 2

    def add(self, *said: object, **facts: object) -> None:
        """Add one line; *facts* stand last in it, as an object."""
        told = [*map(_cut, said), *([{name: _cut(fact) for name, fact in facts.items()}] if facts else [])]
        line = json.dumps(told, ensure_ascii=False, default=str).encode(errors="replace") + b"\n"
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


def _cut(value: object) -> object:
    """Return a value with the middle of a long text left out."""
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _TEXT_CHARACTERS:
        return value
    half = _TEXT_CHARACTERS // 2
    return f"{text[:half]}{_CUT}{text[-half:]}"


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
