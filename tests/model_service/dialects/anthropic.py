"""Anthropic's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from model_service.asked import Asked, Dialect, Message, Reply, Speaker, Stop, Tool
from model_service.documents import event, given_object, part, parts
from model_service.script import CACHED, INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from model_service.documents import Json

_REMINDER: Final = "<system-reminder>"
"""What a product puts behind the results of calls by itself."""
_STOPS: Final = {Stop.DONE: "end_turn", Stop.CALLS: "tool_use", Stop.LENGTH: "max_tokens", Stop.REFUSED: "refusal"}
_ERRORS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text") or _text(block.get("content") or "") for block in content)


def _said(message: Json) -> list[Message]:
    """Return the results of calls in a message apart from what the user says behind them."""
    if message["role"] == "assistant":
        return [Message(Speaker.MODEL, _text(message["content"]))]
    blocks: Any = message["content"]
    if isinstance(blocks, str) or not any(block["type"] == "tool_result" for block in blocks):
        return [Message(Speaker.USER, _text(blocks))]
    *results, last = blocks
    if last["type"] == "text" and not last["text"].startswith(_REMINDER):
        return [Message(Speaker.TOOL, _text(results)), Message(Speaker.USER, last["text"])]
    return [Message(Speaker.TOOL, _text(blocks))]


def _read(body: Json, headers: Mapping[str, str]) -> Asked:
    wanted = part(body, "output_config", "format") or part(body, "output_format")
    inner = [_text(message["content"]) for message in parts(body, "messages") if message["role"] == "system"]
    spoken = [message for message in parts(body, "messages") if message["role"] != "system"]
    return Asked(
        model=body["model"],
        system="\n".join([_text(body.get("system") or ""), *inner]),
        messages=tuple(said for message in spoken for said in _said(message)),
        tools=tuple(Tool(tool["name"], part(tool, "input_schema")) for tool in parts(body, "tools")),
        schema=wanted.get("schema"),
        stream=body.get("stream") is True,
        effort=part(body, "output_config").get("effort") or part(body, "thinking").get("type"),
        session=headers.get("x-claude-code-session-id"),
    )


def _usage(reply: Reply) -> Json:
    return {
        "input_tokens": INPUT - CACHED,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": CACHED,
        "output_tokens": OUTPUT,
    }


def _envelope(reply: Reply) -> Json:
    return {"id": f"msg_{reply.number:024d}", "type": "message", "role": "assistant", "model": reply.model}


def _id(reply: Reply, index: int) -> str:
    return f"toolu_{reply.number:016d}{index:08d}"


def _whole(reply: Reply) -> Json:
    content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": _id(reply, index), "name": call.name, "input": given_object(call.arguments)}
        for index, call in enumerate(reply.calls)
    ]
    ends: Json = {"stop_reason": _STOPS[reply.stop], "stop_sequence": None}
    return {**_envelope(reply), "content": content, **ends, "usage": _usage(reply)}


def _stream(reply: Reply) -> Iterator[bytes]:
    def say(kind: str, **more: Any) -> bytes:
        return event({"type": kind, **more}, kind)

    def block(index: int, start: Json, deltas: Iterator[Json]) -> Iterator[bytes]:
        yield say("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield say("content_block_delta", index=index, delta=delta)
        yield say("content_block_stop", index=index)

    opened: Json = {"content": [], "stop_reason": None, "stop_sequence": None}
    yield say("message_start", message={**_envelope(reply), **opened, "usage": {**_usage(reply), "output_tokens": 1}})
    if reply.text:
        deltas = ({"type": "text_delta", "text": piece} for piece in reply.pieces)
        yield from block(0, {"type": "text", "text": ""}, deltas)
    for index, call in enumerate(reply.calls):
        start: Json = {"type": "tool_use", "id": _id(reply, index), "name": call.name, "input": {}}
        half = len(call.arguments) // 2
        parts = (call.arguments[:half], call.arguments[half:])
        deltas = ({"type": "input_json_delta", "partial_json": part} for part in parts)
        yield from block(index + bool(reply.text), start, deltas)
    ends = {"stop_reason": _STOPS[reply.stop], "stop_sequence": None}
    yield say("message_delta", delta=ends, usage=_usage(reply))
    yield say("message_stop")


def _error(status: int, sentence: str) -> Json:
    return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": sentence}}


ANTHROPIC: Final = Dialect("anthropic", _read, _whole, _stream, _error)
