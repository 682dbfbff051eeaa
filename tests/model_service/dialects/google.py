"""Google's generateContent. The model's name is in the path; `_model` and `_stream` come from there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from model_service.asked import Asked, Dialect, Message, Reply, Speaker, Stop, Tool
from model_service.documents import event, given_object, part, parts
from model_service.script import CACHED, INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from model_service.documents import Json

_STOPS: Final = {Stop.DONE: "STOP", Stop.CALLS: "STOP", Stop.LENGTH: "MAX_TOKENS", Stop.REFUSED: "SAFETY"}
_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def _text(content: Json) -> str:
    said = parts(content, "parts")
    return "\n".join(piece.get("text") or json.dumps(part(piece, "functionResponse", "response")) for piece in said)


def _message(content: Json) -> Message:
    if content.get("role") == "model":
        return Message(Speaker.MODEL, _text(content))
    results = any("functionResponse" in piece for piece in parts(content, "parts"))
    return Message(Speaker.TOOL if results else Speaker.USER, _text(content))


def _parameters(function: Json) -> Json:
    # The service takes names in both spellings, and Google's own SDK writes this one in the other.
    schema = part(function, "parametersJsonSchema") or part(function, "parameters_json_schema")
    return schema or part(function, "parameters")


def _read(body: Json, headers: Mapping[str, str]) -> Asked:
    config = part(body, "generationConfig")
    declared = [function for tool in parts(body, "tools") for function in parts(tool, "functionDeclarations")]
    thinking = part(config, "thinkingConfig")
    level = thinking.get("thinkingLevel") or thinking.get("thinkingBudget")
    return Asked(
        model=body["_model"],
        system=_text(part(body, "systemInstruction")),
        messages=tuple(_message(content) for content in parts(body, "contents")),
        tools=tuple(Tool(function["name"], _parameters(function)) for function in declared),
        schema=config.get("responseJsonSchema") or config.get("responseSchema"),
        stream=body["_stream"],
        effort=None if level is None else str(level),
    )


def _candidate(reply: Reply, pieces: list[Json], finish: str | None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": pieces}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage: Json = {
        "promptTokenCount": INPUT,
        "cachedContentTokenCount": CACHED,
        "candidatesTokenCount": OUTPUT if finish else 1,
        "totalTokenCount": INPUT + (OUTPUT if finish else 1),
    }
    name = {"responseId": f"answer-{reply.number}", "modelVersion": reply.model}
    return {"candidates": [candidate], "usageMetadata": usage, **name}


def _calls(reply: Reply) -> list[Json]:
    return [
        {
            "functionCall": {
                "id": f"call-{reply.number}-{index}",
                "name": call.name,
                "args": given_object(call.arguments),
            }
        }
        for index, call in enumerate(reply.calls)
    ]


def _whole(reply: Reply) -> Json:
    said: list[Json] = [{"text": reply.text}] if reply.text else []
    return _candidate(reply, said + _calls(reply), _STOPS[reply.stop])


def _stream(reply: Reply) -> Iterator[bytes]:
    for piece in reply.pieces:
        yield event(_candidate(reply, [{"text": piece}], None))
    yield event(_candidate(reply, _calls(reply), _STOPS[reply.stop]))


def _error(status: int, sentence: str) -> Json:
    return {"error": {"code": status, "message": sentence, "status": _STATUSES.get(status, "INTERNAL")}}


GOOGLE: Final = Dialect("google", _read, _whole, _stream, _error)
