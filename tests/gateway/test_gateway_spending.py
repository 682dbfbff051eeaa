"""What models take is seen as it passes, summed, priced, written down, and held to what the dispatch may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from gateway.answers import ANTHROPIC, ANTHROPIC_TOOK, ANTHROPIC_WHOLE, CHAT, CHAT_SILENT, DIALECTS
from gateway.box import SECRET, Box, box, provider
from gateway.upstream import Answer, upstream

from pipeline.agents.gateway.failing_service import Trouble
from pipeline.agents.gateway.spending import Allowance, Spent
from pipeline.agents.gateway.usage import Tokens
from pipeline.config.providers import PATHS_OF, Api, PriceTable

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.box import Reply

pytestmark = pytest.mark.anyio

EVENTS = [("content-type", "text/event-stream")]
CLAUDE, TOOK = ANTHROPIC_TOOK
PRICES = {"claude-sonnet-4-5": PriceTable(input=3, output=15, cache_read=0.3, cache_write=3.75)}
COST = (10 * 3 + 3000 * 0.3 + 200 * 3.75 + 55 * 15) / 1e6


def streamed(body: bytes) -> Answer:
    return Answer((body[:40], body[40:41], body[41:]), headers=EVENTS)


@pytest.mark.parametrize("name", DIALECTS)
async def test_each_dialect_passes_unchanged_and_is_counted(log: Path, name: str) -> None:
    body, (model_name, tokens) = DIALECTS[name]
    async with upstream(streamed(body)) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert (reply.status, reply.body, reply.whole) == (200, body, True)
    assert agent.gateway.use.spent == Spent(answers=1, by_model={model_name: tokens}, unpriced=(model_name,))


async def test_answers_add_up_by_model(log: Path) -> None:
    answers = (streamed(ANTHROPIC), streamed(CHAT), Answer((ANTHROPIC_WHOLE,)))
    async with upstream(*answers) as model, box(provider(model.url), log, prices=PRICES) as agent:
        for _ in answers:
            await agent.post()
    spent = agent.gateway.use.spent
    assert spent.by_model == {CLAUDE: TOOK + TOOK, "gpt-5-mini": Tokens(100, 20, 64)}
    assert spent.tokens == Tokens(6520, 130, 6064, 400)
    assert spent.priced_usd == pytest.approx(2 * COST)
    assert (spent.unpriced, spent.cost_usd) == (("gpt-5-mini",), None)


async def test_what_costs_nothing_to_ask_is_no_answer_of_a_model(log: Path) -> None:
    service = Answer((b'{"input_tokens": 14}',)), Answer((b'{"data": []}',)), Answer((ANTHROPIC_WHOLE,), 500)
    paths = PATHS_OF[Api.ANTHROPIC]
    async with upstream(*service) as model, box(provider(model.url, paths=paths), log) as agent:
        await agent.post("/v1/messages/count_tokens")
        await agent.raw(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        await agent.post()
    assert agent.gateway.use.requests == 3
    assert agent.gateway.use.spent == Spent()
    assert not [line for line in agent.lines() if "tokens" in line]


async def test_the_log_says_what_each_answer_took(log: Path) -> None:
    async with (
        upstream(streamed(ANTHROPIC), streamed(CHAT_SILENT), Answer(status=500)) as model,
        box(provider(model.url), log, prices=PRICES) as agent,
    ):
        for _ in range(3):
            await agent.post()
    known, silent, failed = agent.lines()
    assert (known["model"], known["cost_usd"]) == (CLAUDE, pytest.approx(COST))
    assert known["tokens"] == {"input": 3210, "output": 55, "cache_read": 3000, "cache_write": 200}
    assert (silent["model"], silent["tokens"], silent["cost_usd"]) == ("gpt-5-mini", None, None)
    assert "tokens" not in failed


@pytest.mark.parametrize("kept", [ANTHROPIC.index(b"event: ping"), ANTHROPIC.index(b"event: message_delta")])
async def test_an_answer_that_breaks_off_counts_with_what_it_said(log: Path, kept: int) -> None:
    async with upstream(Answer((ANTHROPIC[:kept],), cut=True)) as model, box(provider(model.url), log) as agent:
        reply = await agent.post()
    assert not reply.whole
    taken = Tokens(3210, 1, 3000, 200)
    assert agent.gateway.use.spent == Spent(answers=1, by_model={CLAUDE: taken}, unpriced=(CLAUDE,), cut=1)


async def used_up(agent: Box, answers: int) -> Reply:
    for _ in range(answers):
        assert (await agent.post()).status == 200
    assert agent.gateway.halt is None
    return await agent.post()


@pytest.mark.parametrize(
    ("allowance", "answers", "trouble", "words"),
    [
        (Allowance(tokens=6530), 2, Trouble.BUDGET, "6530 of 6530 tokens"),
        (Allowance(tokens=1), 1, Trouble.BUDGET, "3265 of 1 tokens"),
        (Allowance(tokens=0), 0, Trouble.BUDGET, "0 of 0 tokens"),
        (Allowance(cost_usd=COST * 1.5), 2, Trouble.BUDGET, "0.0050 of 0.0038 USD"),
        (Allowance(answers=3), 3, Trouble.STEPS, "3 of 3 answers of the model"),
        (Allowance(tokens=10**9, cost_usd=9.0, answers=1), 1, Trouble.STEPS, "1 of 1 answers"),
    ],
)
async def test_what_is_used_up_refuses_the_next_request_and_halts(
    log: Path, allowance: Allowance, answers: int, trouble: Trouble, words: str
) -> None:
    service = [streamed(ANTHROPIC) for _ in range(4)]
    async with upstream(*service) as model, box(provider(model.url), log, prices=PRICES, allowance=allowance) as agent:
        reply = await used_up(agent, answers)
        with anyio.fail_after(60):
            halt = await agent.gateway.halted()
        again = await agent.post()
    assert (reply.status, reply.error["code"], reply.headers["x-should-retry"]) == (402, trouble.value, "false")
    assert words in reply.error["message"]
    assert (halt, halt.trouble) == (agent.gateway.halt, trouble)
    assert words in halt.why
    assert (again.status, len(model.requests)) == (402, answers)


async def test_what_runs_side_by_side_comes_to_its_end(log: Path) -> None:
    gate = anyio.Event()
    slow = Answer((ANTHROPIC[:40], gate, ANTHROPIC[40:]), headers=EVENTS)
    replies: list[Reply] = []
    async with (
        upstream(slow, streamed(ANTHROPIC)) as model,
        box(provider(model.url), log, allowance=Allowance(tokens=1)) as agent,
        anyio.create_task_group() as group,
    ):

        async def ask() -> None:
            replies.append(await agent.post())

        group.start_soon(ask)
        with anyio.fail_after(60):
            await model.asked.wait()
        assert (await agent.post()).status == 200
        assert (await agent.post()).status == 402
        assert agent.gateway.halt is None
        gate.set()
        with anyio.fail_after(60):
            assert (await agent.gateway.halted()).trouble is Trouble.BUDGET
    assert [(reply.status, reply.whole) for reply in replies] == [(200, True)]
    assert agent.gateway.use.spent.answers == 2


async def test_money_cannot_be_kept_to_without_a_price_and_that_is_said(log: Path) -> None:
    service = [streamed(ANTHROPIC) for _ in range(3)]
    allowance = Allowance(cost_usd=0.000001)
    async with upstream(*service) as model, box(provider(model.url), log, allowance=allowance) as agent:
        assert [(await agent.post()).status for _ in range(3)] == [200, 200, 200]
    assert agent.gateway.halt is None
    assert (agent.gateway.use.spent.unpriced, agent.gateway.use.spent.cost_usd) == ((CLAUDE,), None)


async def test_the_model_in_the_answer_cannot_show_the_credential(log: Path) -> None:

    echo = ANTHROPIC_WHOLE.replace(CLAUDE.encode(), SECRET.encode())
    async with upstream(Answer((echo,))) as model, box(provider(model.url), log) as agent:
        await agent.post()
    (name,) = agent.gateway.use.spent.by_model
    assert name == "*" * len(SECRET)
    assert SECRET not in agent.written()
