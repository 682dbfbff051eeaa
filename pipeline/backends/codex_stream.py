"""Reads Codex's stream of events (`codex exec --json`), and from stderr the refused tool calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.backends.protocol import Fault, Usage
from pipeline.backends.stream_result import Line, StreamFacts, events, short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.backends.report_schemas import Form

_DENIED: Final = re.compile(r"ERROR codex_core::tools::router: error=(.+)")
_REJECTED: Final = re.compile(r'Rejected\("(.+)"\)')
_LOST: Final = b"no rollout found for thread"
_FAULTS: Final = (
    (re.compile(r"status:? 40[123]\b"), Fault.UNAUTHORIZED),
    (re.compile(r"max_output_tokens"), Fault.TRUNCATED),
    (re.compile(r"content_filter|invalid_prompt|cyber_policy"), Fault.REFUSED),
)
"""Faults by the message of a failed turn; any other failure is the service's."""

_Count = Annotated[int, Field(ge=0)]


class _Started(Line):
    type: Literal["thread.started"]
    thread_id: str


class _Said(Line):
    type: Literal["agent_message"]
    text: str


class _Item(Line):
    type: Literal["item.completed"]
    item: _Said


class _Tokens(Line):
    input_tokens: _Count
    output_tokens: _Count


class _Completed(Line):
    type: Literal["turn.completed"]
    usage: _Tokens | None = None


class _Error(Line):
    message: str


class _Failed(Line):
    type: Literal["turn.failed"]
    error: _Error


class _Trouble(Line):
    type: Literal["error"]
    message: str


_Event = _Started | _Item | _Completed | _Failed | _Trouble
_EVENT: Final[TypeAdapter[_Event]] = TypeAdapter(_Event)


def read_stream(
    stdout: bytes, stderr: bytes, report: Form, *, model: str | None, resumed: bool, keeps: bool
) -> StreamFacts:
    """Return the facts in the stream.

    Args:
        stdout: The stream.
        stderr: Its log.
        report: What the product was told about the report.
        model: The model that was asked: the stream does not say.
        resumed: Whether an earlier conversation was gone on with.
        keeps: Whether this one can be gone on with.
    """
    said = events(stdout, _EVENT)
    thread = next((event.thread_id for event in said if isinstance(event, _Started)), None)
    end = next((event for event in reversed(said) if isinstance(event, _Completed | _Failed)), None)
    text = next((event.item.text for event in reversed(said) if isinstance(event, _Item)), "")
    fault, complaint = _fault(end, said)
    return StreamFacts(
        report=report.said(text) if complaint is None else None,
        text=text,
        fault=fault,
        complaint=complaint,
        usage=_usage(end, model, resumed=resumed),
        session=thread if keeps else None,
        denials=tuple(_denials(stderr)),
        lost=resumed and thread is None and _LOST in stderr,
    )


def _fault(end: _Completed | _Failed | None, said: Sequence[_Event]) -> tuple[Fault | None, str | None]:
    match end:
        case _Completed():
            return None, None
        case _Failed():
            return _of(end.error.message), f"The turn failed: {short(end.error.message)}"
        case None:
            pass
    # Stopped in the middle: it says so where it was waiting for the model service.
    last = said[-1] if said else None
    if isinstance(last, _Trouble):
        return _of(last.message), f"The model service did not answer: {short(last.message)}"
    return None, None


def _of(message: str) -> Fault:
    return next((fault for pattern, fault in _FAULTS if pattern.search(message)), Fault.UNAVAILABLE)


def _usage(end: _Completed | _Failed | None, model: str | None, *, resumed: bool) -> Usage:
    # It counts the whole conversation: in one that goes on, what was counted before would be counted again.
    if resumed or not isinstance(end, _Completed) or end.usage is None:
        return Usage(model=model)
    return Usage(input_tokens=end.usage.input_tokens, output_tokens=end.usage.output_tokens, model=model)


def _denials(stderr: bytes) -> Iterator[str]:
    for found in _DENIED.finditer(stderr.decode(errors="replace")):
        rejected = _REJECTED.search(found[1])
        yield short(rejected[1] if rejected is not None else found[1])
