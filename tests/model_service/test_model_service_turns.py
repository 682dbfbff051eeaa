"""Which turn answers a request: again after a failure, onward in a conversation that goes on, loud where none fits."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import TYPE_CHECKING

import pytest
from model_service.asking import Said, answered, ask, history, post, prompt
from model_service.script import Empty, Fail, Hang, Report, Say, Truncate, Use, conversation, edit, read, run
from model_service.service import ModelService

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model_service.documents import Json


def text(service: ModelService, said: Sequence[Said], *, session: str | None = None) -> str:
    headers = {"x-session-affinity": session} if session else None
    return answered("chat", ask(service, "chat", said, headers=headers), stream=False).text


def test_the_history_says_which_turn() -> None:
    script = [conversation(Use(run("one")), Use(run("two"), run("three")), Say("end"))]
    with ModelService(script) as model:
        calls = [answered("chat", ask(model, "chat", history(prompt(), n)), stream=False).calls for n in (0, 0, 1, 1)]
        assert text(model, history(prompt(), 2)) == "end"
    assert [[arguments["command"] for _, arguments in some] for some in calls] == [
        ["one"],
        ["one"],
        ["two", "three"],
        ["two", "three"],
    ]
    assert [request.turn for request in model.work] == [0, 0, 1, 1, 2]
    assert (model.problems, model.unused) == ([], ())


def test_a_failure_comes_as_often_as_it_says_and_then_its_turn_is_played() -> None:
    script = [conversation(Use(run("one")), Fail(500, times=2), Say("end"), Fail(401))]
    with ModelService(script) as model:
        statuses = [ask(model, "chat", history(prompt(), n)).status for n in (0, 1, 1, 1, 2, 2, 2)]
    assert statuses == [200, 500, 500, 200, 401, 401, 401]


def test_conversations_are_played_in_order_each_once() -> None:
    script = [
        conversation(Say("first of 1"), task="1"),
        conversation(Say("of 2"), task="2"),
        conversation(Say("second of 1"), task="1"),
    ]
    with ModelService(script) as model:
        said = [text(model, [Said("user", prompt(task=task, reask=note))]) for task, note in ("1 ", "1x", "2 ")]
        assert said == ["first of 1", "second of 1", "of 2"]
        assert ask(model, "chat", [Said("user", prompt(task="1", reask="y"))]).status == 400
    (problem,) = model.problems
    assert "no unused conversation" in problem
    assert "task 1" in problem


def test_what_a_conversation_is_for() -> None:
    script = [
        conversation(Say("judged"), kind="judge", question="not_testable", role="check"),
        conversation(Say("asked again"), reask=True),
        conversation(Say("any words"), text="the colour of the sea"),
    ]
    judged = "You are @check.\n\n# This request: judge-not-testable\n\nDecide whether task 3 may (issue A, attempt 2)."
    with ModelService(script) as model:
        assert text(model, [Said("user", judged)]) == "judged"
        assert text(model, [Said("user", prompt(reask="no report"))]) == "asked again"
        assert text(model, [Said("user", "Tell me the colour of the sea.")]) == "any words"


def test_a_conversation_that_goes_on_takes_the_next_entry() -> None:
    """A bad answer is asked again: in the same conversation, as here, or in a fresh one; the script is the same."""
    script = [conversation(Use(run("one")), Say("bad"), role="make"), conversation(Use(run("two")), Say("good"))]
    first = history(prompt(), 1)
    again = [*first, Said("model", "bad"), Said("user", "Your last answer to this request did not count: no report.")]
    with ModelService(script) as model:
        ask(model, "chat", history(prompt(), 0))
        assert text(model, first) == "bad"
        ask(model, "chat", again)
        assert text(model, [*again, Said("model", ""), Said("tool", "done")]) == "good"
    assert [(request.conversation, request.turn) for request in model.work] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert model.problems == []


def test_an_answer_of_the_products_own_before_the_second_request_changes_nothing() -> None:
    """Claude Code adds one to the history when a conversation that ended with a tool call is resumed."""
    script = [conversation(Report({"result": "?"})), conversation(Use(run("two")), Say("good"))]
    resumed = [
        *history(prompt(), 1),
        Said("model", "No response requested."),
        Said("user", "Your last answer to this request did not count: ?"),
    ]
    with ModelService(script) as model:
        text(model, history(prompt(), 0))
        ask(model, "chat", resumed)
    assert [(request.conversation, request.turn) for request in model.work] == [(0, 0), (1, 0)]


def test_a_nudge_that_is_added_to_the_prompt_is_no_new_conversation() -> None:
    """Claude Code does that after an empty answer, and when the conversation is resumed after that."""
    asked_again = "Your last answer to this request did not count: it was empty."
    with ModelService([conversation(Empty()), conversation(Use(run("two")), Say("good"))]) as model:
        said = [text(model, [Said("user", f"{prompt()}{more}")]) for more in ("", "\n[Go on, visibly.]")]
        ask(model, "chat", [Said("user", f"{prompt()}\n{asked_again}")])
        ask(model, "chat", [Said("user", f"{prompt()}\n{asked_again}")])
    assert said == ["", ""]
    assert [(request.conversation, request.turn) for request in model.work] == [(0, 0), (0, 0), (1, 0), (1, 0)]


def test_the_next_request_in_a_conversation_of_several_is_one_of_its_own() -> None:
    script = [conversation(Say("planned"), kind="plan"), conversation(Say("made"), kind="implement")]
    with ModelService(script) as model:
        text(model, [Said("user", prompt("plan"))])
        later = [Said("user", prompt("plan")), Said("model", "planned"), Said("user", prompt("implement"))]
        assert text(model, later) == "made"


def test_a_dispatch_that_was_lost_is_begun_again() -> None:
    with ModelService([conversation(Use(run("one")), Say("end"))]) as model:
        for session in ("before", "after"):
            ask(model, "chat", history(prompt(), 0), headers={"x-session-affinity": session})
        assert text(model, history(prompt(), 1), session="after") == "end"
    assert [request.turn for request in model.work] == [0, 0, 1]


def test_a_second_dispatch_in_the_same_words_is_another_one_but_a_retry_is_not() -> None:
    with ModelService([conversation(Say("first")), conversation(Say("second"))]) as model:
        said = [text(model, history(prompt(), 0), session=session) for session in ("a", "a", "b")]
    assert said == ["first", "first", "second"]


def test_a_service_that_was_started_in_between_goes_on_where_the_history_is() -> None:
    with ModelService([conversation(Use(run("one")), Say("end"))]) as model:
        assert text(model, history(prompt(), 1)) == "end"


def test_the_last_word_after_a_report_by_tool_and_what_a_product_says_by_itself() -> None:
    with ModelService([conversation(Truncate(), kind="plan"), conversation(Report({}))]) as model:
        assert text(model, history(prompt(), 0))
        assert text(model, history(prompt(), 1)) == "Done."
        nudged = [Said("user", prompt("plan")), Said("model", "{"), Said("user", "Go on, without an apology.")]
        assert answered("chat", ask(model, "chat", nudged), stream=False).ends == "length"
    assert model.problems == []


def test_a_script_that_ends_too_early_is_a_problem() -> None:
    with ModelService([conversation(Use(run("one")))]) as model:
        ask(model, "chat", history(prompt(), 0))
        assert ask(model, "chat", history(prompt(), 1)).status == 400
    assert "no turn after 1 rounds" in model.problems[0]


def test_what_products_ask_beside_the_work_is_no_part_of_it() -> None:
    title: Json = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    with ModelService([conversation(Say("work"))]) as model:
        beside = [Said("system", "You are a title generator."), Said("user", prompt())]
        assert answered("chat", ask(model, "chat", beside, tools=()), stream=False).text
        got = answered("chat", ask(model, "chat", beside, tools=(), schema=title), stream=False)
        assert json.loads(got.text) == {"title": "work"}
        assert model.unused == (0,)
    assert [request.beside for request in model.requests] == [True, True]


@pytest.mark.parametrize("act", [read("a"), edit("a", "b", "c")])
def test_an_act_without_a_tool_is_a_problem(act: object) -> None:
    with ModelService([conversation(Use(act))]) as model:  # pyright: ignore[reportArgumentType]
        assert ask(model, "chat", history(prompt(), 0), tools=("write",)).status == 400
    assert "offers no tool" in model.problems[0]


def test_a_hang_ends_with_its_client_or_with_the_service() -> None:
    with ThreadPoolExecutor(1) as pool:
        with ModelService([conversation(Hang(times=1), Hang(begun=True))]) as model:
            with pytest.raises(TimeoutError):
                ask_briefly(model)
            waiting = pool.submit(ask, model, "chat", history(prompt(), 0), stream=True)
            model.wait_for(lambda requests: len(requests) == 2)
        # a cut in the midst of a chunk is an error of the client's, one between two is the end
        assert isinstance(waiting.exception(30), OSError | HTTPException | None)
    assert [request.status for request in model.requests] == [0, 0]


def ask_briefly(model: ModelService) -> None:
    body = {"model": "scripted", "messages": [{"role": "user", "content": prompt()}], "tools": []}
    post(model, "/v1/chat/completions", body, seconds=0.2)


def test_waiting_for_a_request_that_never_comes_ends() -> None:
    with ModelService([]) as model, pytest.raises(TimeoutError):
        model.wait_for(bool, 0.05)
