"""OpenAI's responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from model_service.asked import Asked, Dialect, Message, Reply, Speaker, Stop, Tool
from model_service.dialects.chat import openai_error
from model_service.documents import event, part, parts
from model_service.script import CACHED, INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from model_service.asked import Call
    from model_service.documents import Json

_BY_MODEL: Final = {"reasoning", "function_call", "custom_tool_call", "local_shell_call"}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or part.get("refusal") or "" for part in content)


def _message(item: Json) -> Message | None:
    kind: str = item.get("type") or "message"
    if kind in _BY_MODEL or item.get("role") == "assistant":
        return Message(Speaker.MODEL, _text(item.get("content") or ""))
    if kind.endswith("_output"):
        return Message(Speaker.TOOL, _text(item["output"]))
    if item.get("role") == "user":
        return Message(Speaker.USER, _text(item["content"]))
    return None


def _system(item: Json) -> str:
    return _text(item.get("content") or "") if item.get("role") in {"system", "developer"} else ""


def _tools(tools: list[Json]) -> Iterator[Tool]:
    for tool in tools:
        yield from _tools(parts(tool, "tools"))
        if tool["type"] == "function":
            yield Tool(tool["name"], part(tool, "parameters"))
        elif tool["type"] == "custom":
            yield Tool(tool["name"], free=True)
        elif tool["type"] not in {"namespace", "additional_tools"}:
            yield Tool(tool.get("name") or tool["type"])


def _read(body: Json, headers: Mapping[str, str]) -> Asked:
    given = body["input"]
    items: list[Json] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = (_message(item) for item in items)
    return Asked(
        model=body["model"],
        system="\n".join([body.get("instructions") or "", *map(_system, items)]),
        messages=tuple(message for message in messages if message),
        tools=tuple(_tools(parts(body, "tools") + [item for item in items if item.get("type") == "additional_tools"])),
        schema=part(body, "text", "format").get("schema"),
        stream=body.get("stream") is True,
        effort=part(body, "reasoning").get("effort"),
        session=headers.get("session-id") or headers.get("session_id") or body.get("prompt_cache_key"),
    )


def _call(call: Call, name: str, *, done: bool) -> Json:
    given = call.arguments if done else ""
    status: Json = {"status": "completed" if done else "in_progress", "call_id": f"call_{name}", "name": call.name}
    if call.free:
        return {"type": "custom_tool_call", "id": f"ctc_{name}", "input": given, **status}
    return {"type": "function_call", "id": f"fc_{name}", "arguments": given, **status}


def _said(reply: Reply) -> Json:
    part: Json = {"type": "output_text", "text": reply.text, "annotations": []}
    refusal: Json = {"type": "refusal", "refusal": reply.text}
    content = [refusal if reply.stop is Stop.REFUSED else part]
    status = "incomplete" if reply.stop is Stop.LENGTH else "completed"
    return {"type": "message", "id": f"msg_{reply.number}", "role": "assistant", "status": status, "content": content}


def _output(reply: Reply) -> list[Json]:
    said = [_said(reply)] if reply.text else []
    return said + [_call(call, f"{reply.number}_{index}", done=True) for index, call in enumerate(reply.calls)]


def _envelope(reply: Reply, status: str) -> Json:
    return {
        "id": f"resp_{reply.number}",
        "object": "response",
        "created_at": 1767323045,
        "status": status,
        "model": reply.model,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }


def _whole(reply: Reply) -> Json:
    cut = reply.stop is Stop.LENGTH
    return {
        **_envelope(reply, "incomplete" if cut else "completed"),
        "output": _output(reply),
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "usage": {
            "input_tokens": INPUT,
            "input_tokens_details": {"cached_tokens": CACHED},
            "output_tokens": OUTPUT,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": INPUT + OUTPUT,
        },
    }


def _stream(reply: Reply) -> Iterator[bytes]:
    for number, (kind, more) in enumerate(_events(reply)):
        yield event({"type": kind, "sequence_number": number, **more}, kind)


def _events(reply: Reply) -> Iterator[tuple[str, Json]]:
    begun = _envelope(reply, "in_progress")
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    if reply.text:
        yield from _text_events(reply)
    for index, call in enumerate(reply.calls):
        yield from _call_events(call, f"{reply.number}_{index}", index + bool(reply.text))
    last = "response.incomplete" if reply.stop is Stop.LENGTH else "response.completed"
    yield last, {"response": _whole(reply)}


def _text_events(reply: Reply) -> Iterator[tuple[str, Json]]:
    done = _said(reply)
    at: Json = {"item_id": done["id"], "output_index": 0, "content_index": 0}
    refused = reply.stop is Stop.REFUSED
    word, key = ("refusal", "refusal") if refused else ("output_text", "text")
    empty: Json = {**done["content"][0], key: ""}
    yield "response.output_item.added", {"output_index": 0, "item": {**done, "status": "in_progress", "content": []}}
    yield "response.content_part.added", {**at, "part": empty}
    for piece in reply.pieces:
        yield f"response.{word}.delta", {**at, "delta": piece}
    yield f"response.{word}.done", {**at, key: reply.text}
    yield "response.content_part.done", {**at, "part": done["content"][0]}
    yield "response.output_item.done", {"output_index": 0, "item": done}


def _call_events(call: Call, name: str, index: int) -> Iterator[tuple[str, Json]]:
    done = _call(call, name, done=True)
    at: Json = {"item_id": done["id"], "output_index": index}
    word, key = ("custom_tool_call_input", "input") if call.free else ("function_call_arguments", "arguments")
    yield "response.output_item.added", {"output_index": index, "item": _call(call, name, done=False)}
    middle = len(call.arguments) // 2
    for half in (call.arguments[:middle], call.arguments[middle:]):
        yield f"response.{word}.delta", {**at, "delta": half}
    yield f"response.{word}.done", {**at, key: call.arguments}
    yield "response.output_item.done", {"output_index": index, "item": done}


RESPONSES: Final = Dialect("responses", _read, _whole, _stream, openai_error)
