"""Answers of models as the services send them, in each dialect, whole and as a stream, and what they took."""

from __future__ import annotations

import json
from typing import Any, Final

from pipeline.agents.gateway.usage import Tokens

Event = dict[str, Any]


def sse(*events: Event | str, named: bool = False, end: str = "\n") -> bytes:
    """Return a stream of events; a text is sent as it is."""
    lines: list[str] = []
    for event in events:
        if named and isinstance(event, dict):
            lines.append(f"event: {event['type']}")
        lines += [f"data: {event if isinstance(event, str) else json.dumps(event)}", ""]
    return (end.join(lines) + end).encode()


ANTHROPIC_START: Final[Event] = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [],
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 200,
            "cache_read_input_tokens": 3000,
            "output_tokens": 1,
            "service_tier": "standard",
        },
    },
}
ANTHROPIC_WORD: Final[Event] = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": 'a "usage" of "model"s, {"usage": {"input_tokens": 7}}'},
}
ANTHROPIC_END: Final[Event] = {
    "type": "message_delta",
    "delta": {"stop_reason": "end_turn"},
    "usage": {"output_tokens": 55},
}
ANTHROPIC: Final = sse(
    ANTHROPIC_START, {"type": "ping"}, ANTHROPIC_WORD, ANTHROPIC_END, {"type": "message_stop"}, named=True
)
ANTHROPIC_WHOLE: Final = json.dumps(
    {
        "type": "message",
        "model": "claude-sonnet-4-5-20250929",
        "content": [{"type": "text", "text": "hello"}],
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 200,
            "cache_read_input_tokens": 3000,
            "output_tokens": 55,
        },
    }
).encode()
ANTHROPIC_TOOK: Final = ("claude-sonnet-4-5-20250929", Tokens(3210, 55, 3000, 200))

CHAT_WORD: Final[Event] = {
    "object": "chat.completion.chunk",
    "model": "gpt-5-mini",
    "choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": None}],
    "usage": None,
}
CHAT_USAGE: Final[Event] = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 64},
}
CHAT: Final = sse(
    CHAT_WORD,
    {"object": "chat.completion.chunk", "model": "gpt-5-mini", "choices": [], "usage": CHAT_USAGE},
    "[DONE]",
)
CHAT_SILENT: Final = sse(CHAT_WORD, "[DONE]")
CHAT_WHOLE: Final = json.dumps(
    {
        "object": "chat.completion",
        "model": "gpt-5-mini",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": CHAT_USAGE,
    },
    indent=1,
).encode()
CHAT_TOOK: Final = ("gpt-5-mini", Tokens(100, 20, 64, 0))

RESPONSE: Final[Event] = {
    "object": "response",
    "model": "gpt-5-codex",
    "error": None,
    "output": [],
    "usage": {
        "input_tokens": 500,
        "input_tokens_details": {"cached_tokens": 384},
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 540,
    },
}
RESPONSES: Final = sse(
    {"type": "response.created", "response": {**RESPONSE, "usage": None}},
    {"type": "response.output_text.delta", "delta": "hello"},
    {"type": "response.completed", "response": RESPONSE},
    named=True,
)
RESPONSES_WHOLE: Final = json.dumps(RESPONSE).encode()
RESPONSES_TOOK: Final = ("gpt-5-codex", Tokens(500, 40, 384, 0))

GOOGLE_FIRST: Final[Event] = {
    "candidates": [{"content": {"parts": [{"text": "hel"}]}}],
    "usageMetadata": {"promptTokenCount": 80, "totalTokenCount": 82, "candidatesTokenCount": 2},
    "modelVersion": "gemini-2.5-flash",
}
GOOGLE_LAST: Final[Event] = {
    "candidates": [{"content": {"parts": [{"text": "lo"}]}, "finishReason": "STOP"}],
    "usageMetadata": {
        "promptTokenCount": 80,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 7,
        "cachedContentTokenCount": 32,
        "toolUsePromptTokenCount": 3,
        "totalTokenCount": 95,
    },
    "modelVersion": "gemini-2.5-flash",
}
GOOGLE: Final = sse(GOOGLE_FIRST, GOOGLE_LAST, end="\r\n")
GOOGLE_LIST: Final = json.dumps([GOOGLE_FIRST, GOOGLE_LAST]).encode()
GOOGLE_WHOLE: Final = json.dumps(GOOGLE_LAST).encode()
GOOGLE_TOOK: Final = ("gemini-2.5-flash", Tokens(83, 12, 32, 0))

DIALECTS: Final[dict[str, tuple[bytes, tuple[str, Tokens]]]] = {
    "anthropic": (ANTHROPIC, ANTHROPIC_TOOK),
    "anthropic-whole": (ANTHROPIC_WHOLE, ANTHROPIC_TOOK),
    "chat": (CHAT, CHAT_TOOK),
    "chat-whole": (CHAT_WHOLE, CHAT_TOOK),
    "responses": (RESPONSES, RESPONSES_TOOK),
    "responses-whole": (RESPONSES_WHOLE, RESPONSES_TOOK),
    "google": (GOOGLE, GOOGLE_TOOK),
    "google-list": (GOOGLE_LIST, GOOGLE_TOOK),
    "google-whole": (GOOGLE_WHOLE, GOOGLE_TOOK),
}
"""Each answer with the model and the tokens that it names."""
