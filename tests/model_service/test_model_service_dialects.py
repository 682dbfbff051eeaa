"""Every turn in every dialect, whole and streamed, as a client reads it from the wire."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import pytest
from model_service.asking import DIALECTS, WORKSPACE, answered, ask, history, post, prompt
from model_service.script import (
    Cut,
    Empty,
    Fail,
    Garbage,
    Huge,
    Refuse,
    Report,
    Say,
    Tokens,
    Truncate,
    Use,
    call,
    conversation,
    run,
    write,
)
from model_service.service import ModelService

if TYPE_CHECKING:
    from model_service.documents import Json
    from model_service.script import Turn

ENDS: Final = {
    "anthropic": {"done": "end_turn", "calls": "tool_use", "cut": "max_tokens", "refused": "refusal"},
    "responses": {"done": "completed", "calls": "completed", "cut": "incomplete", "refused": "refusal"},
    "chat": {"done": "stop", "calls": "tool_calls", "cut": "length", "refused": "content_filter"},
    "google": {"done": "STOP", "calls": "STOP", "cut": "MAX_TOKENS", "refused": "SAFETY"},
}
SCHEMA: Final[Json] = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}

pytestmark = pytest.mark.parametrize("dialect", DIALECTS)
streaming = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def service(*turns: Turn, secret: str | None = None) -> ModelService:
    return ModelService([conversation(*turns, kind="implement")], secret=secret)


@streaming
def test_a_text(dialect: str, stream: bool) -> None:
    with service(Say("Schön, that is done.", Tokens(input=900, output=70, cached=400))) as model:
        got = answered(dialect, ask(model, dialect, history(prompt(), 0), stream=stream), stream=stream)
    assert got.text == "Schön, that is done."
    assert (got.calls, got.ends, got.tokens) == ((), ENDS[dialect]["done"], (900, 70, 400))
    assert model.problems == []


@streaming
def test_several_calls_after_a_word(dialect: str, stream: bool) -> None:
    content = 'x = "ä"\n\n'
    with service(Use(write("a/b.py", content), run("pytest -q"), text="I write.")) as model:
        got = answered(dialect, ask(model, dialect, history(prompt(), 0), stream=stream), stream=stream)
    assert got.text == "I write."
    assert got.calls == (("write", {"path": "a/b.py", "content": content}), ("run", {"command": "pytest -q"}))
    assert got.ends == ENDS[dialect]["calls"]


@streaming
def test_a_call_that_nobody_offered(dialect: str, stream: bool) -> None:
    with service(Use(call("delete_everything", {"path": "/"}))) as model:
        got = answered(dialect, ask(model, dialect, history(prompt(), 0), stream=stream), stream=stream)
    assert got.calls == (("delete_everything", {"path": "/"}),)
    assert model.problems == []


@streaming
def test_a_report_without_a_schema_is_the_last_line(dialect: str, stream: bool) -> None:
    with service(Report({"result": "COMPLETE"})) as model:
        got = answered(dialect, ask(model, dialect, history(prompt(), 0), stream=stream), stream=stream)
    assert json.loads(got.text.splitlines()[-1]) == {"result": "COMPLETE"}
    assert len(got.text.splitlines()) == 2


@streaming
def test_a_report_for_a_schema_is_all_of_the_text(dialect: str, stream: bool) -> None:
    with service(Report({"result": "COMPLETE"})) as model:
        raw = ask(model, dialect, history(prompt(), 0), stream=stream, schema=SCHEMA)
        got = answered(dialect, raw, stream=stream)
    assert json.loads(got.text) == {"result": "COMPLETE"}


@streaming
def test_refused_truncated_and_empty_answers_say_so(dialect: str, stream: bool) -> None:
    with service(Refuse("No."), Truncate('{"res'), Empty(), Huge(characters=100_000)) as model:
        refused, cut, empty, huge = (
            answered(dialect, ask(model, dialect, history(prompt(), rounds), stream=stream), stream=stream)
            for rounds in range(4)
        )
    assert (refused.text, refused.ends) == ("No.", ENDS[dialect]["refused"])
    assert (cut.text, cut.ends) == ('{"res', ENDS[dialect]["cut"])
    assert (empty.text, empty.calls, empty.ends) == ("", (), ENDS[dialect]["done"])
    assert huge.text == "x" * 100_000


@streaming
def test_an_answer_that_is_cut_ends_before_its_framing_says(dialect: str, stream: bool) -> None:
    with service(Cut(after_bytes=150, times=1), Say("then this")) as model:
        got = ask(model, dialect, history(prompt(), 0), stream=stream)
        again = ask(model, dialect, history(prompt(), 0), stream=stream)
    assert (got.status, got.whole, len(got.body)) == (200, False, 150)
    assert answered(dialect, again, stream=stream).text == "then this"


@streaming
def test_garbage_is_no_json(dialect: str, stream: bool) -> None:
    with service(Garbage()) as model:
        got = ask(model, dialect, history(prompt(), 0), stream=stream)
    assert (got.status, got.whole) == (200, True)
    with pytest.raises(ValueError, match="Expecting"):
        _ = got.events if stream else got.document


def test_an_error_is_the_one_of_the_dialect(dialect: str) -> None:
    with service(Fail(429, headers={"retry-after": "7"}, times=1), Fail(529, body="<html>", times=1)) as model:
        limited, overloaded = (ask(model, dialect, history(prompt(), 0), stream=True) for _ in range(2))
    assert (limited.status, limited.headers["retry-after"]) == (429, "7")
    assert "429" in limited.document["error"]["message"]
    assert (overloaded.status, overloaded.body) == (529, b"<html>")
    assert [request.status for request in model.requests] == [429, 529]


def test_a_request_without_the_credential_is_turned_away(dialect: str) -> None:
    with service(Say("Welcome."), Say("And welcome."), secret="open-sesame") as model:
        refused = ask(model, dialect, history(prompt(), 0), headers={"authorization": "Bearer placeholder"})
        bearer = ask(model, dialect, history(prompt(), 0), headers={"authorization": "Bearer open-sesame"})
        keyed = ask(model, dialect, history(prompt(), 1), headers={"x-api-key": "open-sesame"})
    assert [refused.status, bearer.status, keyed.status] == [401, 200, 200]
    assert refused.document["error"]["message"]
    assert (model.requests[0].asked, model.requests[0].conversation, model.problems) == (None, None, [])


def test_what_a_request_says_is_kept(dialect: str) -> None:
    with service(Say("ok")) as model:
        ask(model, dialect, history(prompt(), 0), stream=True, headers={"X-Trace": "7"})
    (request,) = model.requests
    assert (request.dialect, request.conversation, request.turn, request.status) == (dialect, 0, 0, 200)
    assert (request.tools, request.headers["x-trace"]) == (("write", "run"), "7")
    assert request.asked is not None
    assert (request.asked.model, request.asked.stream, request.asked.prompt.workspace) == ("scripted", True, WORKSPACE)
    assert json.loads(request.line())["kind"] == "implement"


def test_what_clients_ask_beside_answers(dialect: str) -> None:
    """Counting tokens, the list of models, whether anybody is there; a path of no API is a problem."""
    counts = {"anthropic": "/v1/messages/count_tokens", "google": "/v1beta/models/scripted:countTokens"}
    with service(Say("ok")) as model:
        if dialect in counts:
            assert 100 in post(model, counts[dialect], {"messages": [], "contents": []}).document.values()
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(model.url).port or 0, timeout=30)
        statuses: list[int] = []
        for method, path in (("HEAD", "/"), ("GET", "/v1/models"), ("GET", "/v1/nothing")):
            connection.request(method, path)
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
        connection.close()
    assert statuses == [200, 200, 404]
    assert len(model.problems) == 1
