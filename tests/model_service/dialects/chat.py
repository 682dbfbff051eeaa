"""OpenAI's chat completions, which most local servers speak too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from model_service.asked import Asked, Dialect, Message, Reply, Speaker, Stop, Tool
from model_service.documents import event, part, parts
from model_service.script import CACHED, INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from model_service.documents import Json

_STOPS: Final = {Stop.DONE: "stop", Stop.CALLS: "tool_calls", Stop.LENGTH: "length", Stop.REFUSED: "content_filter"}
_SPEAKERS: Final = {"user": Speaker.USER, "assistant": Speaker.MODEL, "tool": Speaker.TOOL}
_CODES: Final = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def openai_error(status: int, sentence: str) -> Json:
    """Return the body of an error of OpenAI's APIs."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": sentence, "type": kind, "param": None, "code": _CODES.get(status)}}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or "" for part in content or ())


def _read(body: Json, headers: Mapping[str, str]) -> Asked:
    messages = parts(body, "messages")
    functions = [part(tool, "function") for tool in parts(body, "tools") if tool["type"] == "function"]
    return Asked(
        model=body["model"],
        system="\n".join(_text(said["content"]) for said in messages if said["role"] not in _SPEAKERS),
        messages=tuple(
            Message(_SPEAKERS[said["role"]], _text(said.get("content")))
            for said in messages
            if said["role"] in _SPEAKERS
        ),
        tools=tuple(Tool(function["name"], part(function, "parameters")) for function in functions),
        schema=part(body, "response_format", "json_schema").get("schema"),
        stream=body.get("stream") is True,
        effort=body.get("reasoning_effort"),
        session=headers.get("x-session-affinity") or body.get("prompt_cache_key"),
        usage=part(body, "stream_options").get("include_usage") is True or body.get("stream") is not True,
    )


def _calls(reply: Reply) -> list[Json]:
    return [
        {
            "index": index,
            "id": f"call_{reply.number}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for index, call in enumerate(reply.calls)
    ]


def _usage(reply: Reply) -> Json:
    return {
        "prompt_tokens": INPUT,
        "completion_tokens": OUTPUT,
        "total_tokens": INPUT + OUTPUT,
        "prompt_tokens_details": {"cached_tokens": CACHED},
    }


def _envelope(reply: Reply, kind: str) -> Json:
    return {"id": f"chatcmpl-{reply.number}", "object": kind, "created": 1767323045, "model": reply.model}


def _whole(reply: Reply) -> Json:
    refused = reply.stop is Stop.REFUSED
    message: Json = {"role": "assistant", "content": None if refused else reply.text or None}
    message["refusal"] = reply.text if refused else None
    if reply.calls:
        message["tool_calls"] = [{key: call[key] for key in call if key != "index"} for call in _calls(reply)]
    choice = {"index": 0, "message": message, "finish_reason": _STOPS[reply.stop], "logprobs": None}
    return {**_envelope(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def _stream(reply: Reply) -> Iterator[bytes]:
    def chunk(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return event({**_envelope(reply, "chat.completion.chunk"), "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in reply.pieces:
        yield chunk({"refusal": piece} if reply.stop is Stop.REFUSED else {"content": piece})
    for call in _calls(reply):
        whole: Json = call["function"]
        yield chunk({"tool_calls": [{**call, "function": {"name": whole["name"], "arguments": ""}}]})
        middle = len(whole["arguments"]) // 2
        for half in (whole["arguments"][:middle], whole["arguments"][middle:]):
            yield chunk({"tool_calls": [{"index": call["index"], "function": {"arguments": half}}]})
    yield chunk({}, _STOPS[reply.stop])
    if reply.usage:
        yield event({**_envelope(reply, "chat.completion.chunk"), "choices": [], "usage": _usage(reply)})
    yield event("[DONE]")


CHAT: Final = Dialect("chat", _read, _whole, _stream, openai_error)
