"""Raw requests to the service, as the tests of the service send them: one small request per dialect."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model_service.documents import Json
    from model_service.service import ModelService

DIALECTS: Final = ("anthropic", "responses", "chat", "google")

WORKSPACE: Final = "/project"

_TEXT: Final[Json] = {"type": "string"}
TOOLS: Final[dict[str, Json]] = {
    "write": {"type": "object", "properties": {"path": _TEXT, "content": _TEXT}, "required": ["path", "content"]},
    "run": {"type": "object", "properties": {"command": _TEXT}, "required": ["command"]},
}


def prompt(kind: str = "implement", *, task: str = "1", reask: str = "") -> str:
    """Return a prompt in redfirst's words."""
    told = f"Your last answer to this request did not count: {reask}" if reask else ""
    request = f"Implement task {task} (issue GAL-1, attempt 1).\n\n{told}\n\nWorkspace: `{WORKSPACE}`\n"
    return f"You are @make. You implement one task.\n\n# This request: {kind}\n\n{request}"


@dataclass(frozen=True)
class Got:
    """What came back; `whole` is whether the body was, as its framing says."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool = True

    @property
    def document(self) -> Json:
        """Return the body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Json]:
        """Return the data of the server-sent events."""
        lines = [line.removeprefix("data: ") for line in self.body.decode().splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


def post(
    service: ModelService, path: str, body: Json, headers: dict[str, str] | None = None, *, seconds: float = 30
) -> Got:
    """Send a request and return what came back before the connection or the answer ended."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(service.url).port or 0, timeout=seconds)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        known = {name.lower(): value for name, value in response.getheaders()}
        try:
            return Got(response.status, known, response.read())
        except http.client.IncompleteRead as short:
            return Got(response.status, known, short.partial, whole=False)
    finally:
        connection.close()


@dataclass(frozen=True)
class Said:
    """One message of a history that a test builds."""

    speaker: str
    text: str


def history(opening: str, rounds: int) -> list[Said]:
    """Return a conversation in which the model has used tools so many times."""
    return [Said("user", opening), *[Said(who, "done") for _ in range(rounds) for who in ("model", "tool")]]


def ask(
    service: ModelService,
    dialect: str,
    said: Sequence[Said],
    *,
    stream: bool = False,
    tools: Sequence[str] = ("write", "run"),
    schema: Json | None = None,
    headers: dict[str, str] | None = None,
) -> Got:
    """Ask in a dialect."""
    path, body = _BODIES[dialect](said, tools, schema)
    if dialect == "google":
        path += "streamGenerateContent?alt=sse" if stream else "generateContent"
    else:
        body["stream"] = stream
    return post(service, path, body, headers)


def _anthropic(said: Sequence[Said], tools: Sequence[str], schema: Json | None) -> tuple[str, Json]:
    def content(one: Said) -> Any:
        if one.speaker != "tool":
            return one.text
        return [{"type": "tool_result", "tool_use_id": "t", "content": one.text}]

    body: Json = {
        "model": "scripted",
        "messages": [
            {"role": "assistant" if one.speaker == "model" else "user", "content": content(one)} for one in said
        ],
        "tools": [{"name": name, "input_schema": TOOLS[name]} for name in tools],
    }
    if schema:
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return "/v1/messages", body


def _responses(said: Sequence[Said], tools: Sequence[str], schema: Json | None) -> tuple[str, Json]:
    def item(one: Said) -> Json:
        if one.speaker == "tool":
            return {"type": "function_call_output", "call_id": "c", "output": one.text}
        return {"role": "assistant" if one.speaker == "model" else "user", "content": one.text}

    body: Json = {
        "model": "scripted",
        "input": [item(one) for one in said],
        "tools": [{"type": "function", "name": name, "parameters": TOOLS[name]} for name in tools],
    }
    if schema:
        body["text"] = {"format": {"type": "json_schema", "name": "report", "schema": schema}}
    return "/v1/responses", body


def _chat(said: Sequence[Said], tools: Sequence[str], schema: Json | None) -> tuple[str, Json]:
    roles = {"model": "assistant"}
    functions = [{"name": name, "parameters": TOOLS[name]} for name in tools]
    body: Json = {
        "model": "scripted",
        "messages": [{"role": roles.get(one.speaker, one.speaker), "content": one.text} for one in said],
        "tools": [{"type": "function", "function": function} for function in functions],
        "stream_options": {"include_usage": True},
    }
    if schema:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "report", "schema": schema}}
    return "/v1/chat/completions", body


def _google(said: Sequence[Said], tools: Sequence[str], schema: Json | None) -> tuple[str, Json]:
    def content(one: Said) -> Json:
        if one.speaker == "tool":
            return {"role": "user", "parts": [{"functionResponse": {"name": "t", "response": {"output": one.text}}}]}
        return {"role": one.speaker, "parts": [{"text": one.text}]}

    declared = [{"name": name, "parametersJsonSchema": TOOLS[name]} for name in tools]
    body: Json = {"contents": [content(one) for one in said], "tools": [{"functionDeclarations": declared}]}
    if schema:
        body["generationConfig"] = {"responseJsonSchema": schema}
    return "/v1beta/models/scripted:", body


_BODIES: Final = {"anthropic": _anthropic, "responses": _responses, "chat": _chat, "google": _google}


@dataclass(frozen=True)
class Answered:
    """An answer in words that belong to no dialect, put together from the document or from the events."""

    text: str
    calls: tuple[tuple[str, Json], ...]
    ends: str
    tokens: tuple[int, int, int]
    """Input with all that came from a cache, output, what came from a cache."""


def answered(dialect: str, got: Got, *, stream: bool) -> Answered:
    """Return what an answer says."""
    assert got.status == 200, got.body
    return _READERS[dialect](got.events if stream else [got.document], stream)


def _read_anthropic(documents: list[Json], stream: bool) -> Answered:
    if not stream:
        (whole,) = documents
        usage = whole["usage"]
        texts = [block["text"] for block in whole["content"] if block["type"] == "text"]
        calls = tuple((block["name"], block["input"]) for block in whole["content"] if block["type"] == "tool_use")
        return Answered("".join(texts), calls, whole["stop_reason"], _anthropic_tokens(usage))
    blocks: dict[int, Json] = {}
    end: Json = {}
    for event in documents:
        match event["type"]:
            case "content_block_start":
                blocks[event["index"]] = {**event["content_block"], "json": ""}
            case "content_block_delta":
                delta = event["delta"]
                block = blocks[event["index"]]
                if delta["type"] == "text_delta":
                    block["text"] += delta["text"]
                else:
                    block["json"] += delta["partial_json"]
            case "message_delta":
                end = event
            case _:
                pass
    text = "".join(block["text"] for block in blocks.values() if block["type"] == "text")
    uses = [block for block in blocks.values() if block["type"] == "tool_use"]
    calls = tuple((block["name"], cast("Json", json.loads(block["json"]))) for block in uses)
    return Answered(text, calls, end["delta"]["stop_reason"], _anthropic_tokens(end["usage"]))


def _anthropic_tokens(usage: Json) -> tuple[int, int, int]:
    cached = usage["cache_read_input_tokens"]
    return usage["input_tokens"] + cached, usage["output_tokens"], cached


def _read_responses(documents: list[Json], stream: bool) -> Answered:
    whole: Json = documents[-1]["response"] if stream else documents[0]
    said = [part for item in whole["output"] if item["type"] == "message" for part in item["content"]]
    text = "".join(part.get("text") or part.get("refusal") for part in said)
    if stream:
        deltas = [event["delta"] for event in documents if event["type"].endswith(("text.delta", "refusal.delta"))]
        assert "".join(deltas) == text
        arguments = [event["delta"] for event in documents if event["type"].endswith("arguments.delta")]
        given = [item["arguments"] for item in whole["output"] if item["type"] == "function_call"]
        assert "".join(arguments) == "".join(given)
    uses = [item for item in whole["output"] if item["type"] == "function_call"]
    calls = tuple((item["name"], cast("Json", json.loads(item["arguments"]))) for item in uses)
    refused = any(part["type"] == "refusal" for part in said)
    usage = whole["usage"]
    tokens = (usage["input_tokens"], usage["output_tokens"], usage["input_tokens_details"]["cached_tokens"])
    return Answered(text, calls, "refusal" if refused else whole["status"], tokens)


def _read_chat(documents: list[Json], stream: bool) -> Answered:
    key = "delta" if stream else "message"
    text, ends, calls = "", "", dict[int, list[str]]()
    for document in documents:
        for choice in document["choices"]:
            piece = choice[key]
            text += piece.get("content") or piece.get("refusal") or ""
            ends = choice["finish_reason"] or ends
            for index, call in enumerate(piece.get("tool_calls") or ()):
                names = calls.setdefault(call.get("index", index), [call["function"].get("name") or "", ""])
                names[1] += call["function"]["arguments"]
    usage = documents[-1]["usage"]
    tokens = (usage["prompt_tokens"], usage["completion_tokens"], usage["prompt_tokens_details"]["cached_tokens"])
    return Answered(text, tuple((name, json.loads(given)) for name, given in calls.values()), ends, tokens)


def _read_google(documents: list[Json], stream: bool) -> Answered:
    pieces = [part for document in documents for part in document["candidates"][0]["content"]["parts"]]
    text = "".join(part.get("text", "") for part in pieces)
    calls = [part["functionCall"] for part in pieces if "functionCall" in part]
    usage = documents[-1]["usageMetadata"]
    tokens = (usage["promptTokenCount"], usage["candidatesTokenCount"], usage["cachedContentTokenCount"])
    ends = documents[-1]["candidates"][0]["finishReason"]
    return Answered(text, tuple((call["name"], call["args"]) for call in calls), ends, tokens)


_READERS: Final = {
    "anthropic": _read_anthropic,
    "responses": _read_responses,
    "chat": _read_chat,
    "google": _read_google,
}
