"""What an answer says of itself is read in each dialect, however it comes; what it does not say is unknown."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from gateway.answers import (
    ANTHROPIC,
    ANTHROPIC_END,
    ANTHROPIC_START,
    ANTHROPIC_TOOK,
    CHAT,
    CHAT_SILENT,
    CHAT_USAGE,
    CHAT_WORD,
    DIALECTS,
    RESPONSE,
    sse,
)
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agents.gateway.usage import CAP, Reading, Tokens, UsageReader, consumes

if TYPE_CHECKING:
    from collections.abc import Iterable


def read(*pieces: bytes, whole: bool = True) -> Reading:
    reader = UsageReader()
    for piece in pieces:
        reader.feed(piece)
    return reader.reading(whole=whole)


def cut(body: bytes, places: Iterable[int]) -> list[bytes]:
    ends = sorted({place % (len(body) + 1) for place in places} | {len(body)})
    return [body[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize("name", DIALECTS)
def test_each_dialect_is_read(name: str) -> None:
    body, (model, tokens) = DIALECTS[name]
    assert read(body) == Reading(model, tokens, complete=True)


@given(st.sampled_from(sorted(DIALECTS)), st.lists(st.integers(0, 10_000), max_size=20), st.booleans())
def test_however_it_is_cut_into_pieces_it_is_the_same(name: str, places: list[int], whole: bool) -> None:
    body, _ = DIALECTS[name]
    assert read(*cut(body, places), whole=whole) == read(body, whole=whole)


@given(
    st.lists(
        st.sampled_from([b"data:", b" ", b"\n", b"\r\n", b"\n\n", b'{"usage":', b'{"input_tokens":1', b"}", b"[", b'"'])
        | st.binary(max_size=9),
        max_size=30,
    ),
    st.lists(st.integers(0, 1000), max_size=10),
)
def test_whatever_comes_is_read_without_an_error_and_the_same_in_pieces(parts: list[bytes], places: list[int]) -> None:
    body = b"".join(parts)
    assert read(*cut(body, places)) == read(body)


@pytest.mark.parametrize("name", DIALECTS)
def test_an_answer_that_breaks_off_took_at_least_what_it_said(name: str) -> None:
    body, (_, tokens) = DIALECTS[name]
    for end in range(len(body)):
        reading = read(body[:end], whole=False)
        known = reading.tokens or Tokens()
        assert not reading.complete or reading.tokens == tokens
        assert (known.input, known.output) <= (tokens.input, tokens.output)


def test_an_agent_that_hangs_up_after_the_last_word_has_heard_everything() -> None:
    assert read(sse(ANTHROPIC_START, ANTHROPIC_END), whole=False).complete
    assert read(CHAT, whole=False).complete


def test_a_stream_of_chat_completions_that_was_not_asked_for_its_usage_is_unknown() -> None:
    assert read(CHAT_SILENT) == Reading("gpt-5-mini")


def test_figures_in_each_piece_of_a_chat_completion_count_once() -> None:
    begun = {**CHAT_WORD, "usage": {**CHAT_USAGE, "completion_tokens": 3}}
    ended = {**CHAT_WORD, "usage": CHAT_USAGE}
    assert read(sse(begun, ended, "[DONE]"), whole=False) == Reading("gpt-5-mini", Tokens(100, 20, 64), complete=True)
    assert read(sse(begun), whole=False) == Reading("gpt-5-mini", Tokens(100, 3, 64))


def test_what_a_model_writes_is_not_taken_for_a_figure() -> None:
    said = json.dumps({"type": "message", "model": "mine", "usage": {"input_tokens": 1, "output_tokens": 1}})
    word = {"type": "content_block_delta", "delta": {"text": f"\n\ndata: {said}\n\n"}}
    reading = read(sse(ANTHROPIC_START, word, ANTHROPIC_END))
    assert reading == Reading(*ANTHROPIC_TOOK, complete=True)


@pytest.mark.parametrize(
    "failure",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        {"type": "response.failed", "response": {**RESPONSE, "error": {"code": "server_error"}, "usage": None}},
        {"error": {"code": 502, "message": "Provider disconnected"}, "choices": []},
    ],
)
def test_a_service_that_fails_in_the_middle_of_its_answer_says_so(failure: dict[str, object]) -> None:
    assert read(sse(ANTHROPIC_START, failure)).failed
    assert not read(sse(ANTHROPIC_START, failure)).complete


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \r\n",
        b"no answer is left",
        b"{",
        b'{"usage": {"input_tokens": 1}}',
        b'{"usage": [1, 2], "model": 7}',
        b'{"usage": {"prompt_tokens": -1, "completion_tokens": 2}}',
        b'{"usage": {"prompt_tokens": true, "completion_tokens": 2}}',
        b'{"usage": {"prompt_tokens": 1.5, "completion_tokens": 2}}',
        b'{"usage": {"prompt_tokens": "1", "completion_tokens": 2}}',
        b'{"usage": {"prompt_tokens": 99999999999999, "completion_tokens": 2}}',
        b'{"usage": {"prompt_tokens": ' + b"9" * 9000 + b', "completion_tokens": 2}}',
        b'{"usage": ' + b"[" * 200_000,
        b'{"usage": ' + b'{"a": ' * 400 + b"1" + b"}" * 401,
        b'{"usage": NaN}',
        b'{"object": "list", "data": [{"id": "m"}]}',
        b"data: {\xff\n\n",
        b"data: [DONE]\n\n",
        "\ufeff{}".encode(),
        b"\x1f\x8b\x08\x00",
    ],
)
def test_what_is_not_understood_is_unknown(body: bytes) -> None:
    reading = read(body)
    assert (reading.tokens, reading.complete) == (None, False)


@pytest.mark.parametrize("name", ["two words", "x" * 201, "\u202egpt", "a\nb", ""])
def test_a_name_that_is_no_models_name_is_left_out(name: str) -> None:
    body = json.dumps({"model": name, "usage": CHAT_USAGE}).encode()
    assert read(body) == Reading(None, Tokens(100, 20, 64), complete=True)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_data_on_several_lines_is_one_event(end: str) -> None:
    lines = [f"data: {line}" for line in json.dumps({"usage": CHAT_USAGE, "choices": []}, indent=1).splitlines()]
    assert read(f"{end.join([': comment', *lines, '', ''])}".encode()).tokens == Tokens(100, 20, 64)


def test_an_event_that_is_too_long_is_unknown_and_the_next_one_is_read() -> None:
    piece = b"x" * 100_000
    reader = UsageReader()
    reader.feed(b'data: {"usage": {"prompt_tokens": 99999, "completion_tokens": 1}, "choices": [], "x": "')
    for _ in range(CAP // len(piece) + 1):
        reader.feed(piece)
    reader.feed(b'"}\n\n' + ANTHROPIC)
    assert reader.reading(whole=True) == Reading(*ANTHROPIC_TOOK, complete=True)


@pytest.mark.parametrize("begin", [b"{", b"data: ", b"x", b"data: 1\n"])
def test_a_huge_answer_is_not_kept(begin: bytes) -> None:
    piece = begin + b"data: x" * 20_000 + b"\n" * (begin == b"data: 1\n")
    reader = UsageReader()
    reader.feed(begin)
    tracemalloc.start()
    try:
        for _ in range(6 * CAP // len(piece)):
            reader.feed(piece)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * CAP
    assert reader.reading(whole=True).tokens is None


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("POST", "/v1/messages", True),
        ("POST", "/v1/messages/count_tokens", False),
        ("POST", "/v1/responses/compact", True),
        ("POST", "/v1beta/models/gemini-2.5-flash:streamGenerateContent", True),
        ("POST", "/v1beta/models/gemini-2.5-flash:countTokens", False),
        ("GET", "/v1/models", False),
    ],
)
def test_what_costs_is_told_by_method_and_path(method: str, path: str, answer: bool) -> None:
    assert consumes(method, path) is answer
