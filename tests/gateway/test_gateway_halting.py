"""A service in trouble is noticed, and a dispatch that can only wait for it is stopped; a passing failure is not."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from gateway.answers import ANTHROPIC_START, ANTHROPIC_WHOLE, sse
from gateway.box import SECRET, box, provider
from gateway.upstream import Answer, upstream
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.agents.gateway.failing_service import PATIENCE, Ending, Patience, Trouble, Watch
from pipeline.agents.gateway.proxy import seconds_of
from pipeline.reset_times import MOST

if TYPE_CHECKING:
    from pathlib import Path

GOOD = Answer((ANTHROPIC_WHOLE,))
TWICE = Patience(requests=2, seconds=0.0)
NEVER = Patience(requests=10**6, seconds=10**6)


def failing(status: int, *headers: tuple[str, str]) -> Answer:
    return Answer((b'{"error": {"message": "no"}}',), status, headers)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "acme ({url}) answered 401: it refuses the credential in THE_KEY."),
        (403, "acme ({url}) answered 403: it refuses the credential in THE_KEY."),
        (402, "acme ({url}) answered 402: the account has nothing left to pay with."),
    ],
)
async def test_a_refused_credential_halts_at_once(log: Path, status: int, words: str) -> None:
    service = Answer((SECRET.encode(),), status, [("x-why", SECRET)])
    async with upstream(service) as model, box(provider(model.url), log, name="acme", patience=NEVER) as agent:
        reply = await agent.post()
        with anyio.fail_after(60):
            halt = await agent.gateway.halted()
        again = await agent.post()
    assert reply.status == status
    assert (halt.trouble, halt.status) == (Trouble.UNAUTHORIZED, status)
    assert halt.why == words.format(url=model.url)
    assert SECRET not in str(halt)
    assert (again.status, again.error["code"], len(model.requests)) == (403, "halted", 1)


@pytest.mark.anyio
async def test_a_service_that_wants_a_credential_where_none_is_configured(log: Path) -> None:
    async with (
        upstream(failing(401)) as model,
        box(provider(model.url, credential_env=None), log, credential=None) as agent,
    ):
        await agent.post()
    assert agent.gateway.halt is not None
    assert agent.gateway.halt.why.endswith(
        "answered 401: it wants a credential, and the configuration names none (credential_env)."
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "trouble", "words"),
    [
        (failing(429), Trouble.RATE_LIMITED, "answered 429: the account has asked too much for now."),
        (failing(500), Trouble.UNAVAILABLE, "answered 500: it is down or overloaded."),
        (failing(529), Trouble.UNAVAILABLE, "answered 529: it is down or overloaded."),
        (failing(404), Trouble.NOT_FOUND, "answered 404: it does not know the model, or has nothing at this address."),
        (Answer((b"data: 1\n\n",), cut=True), Trouble.UNAVAILABLE, "broke off or sent no proper answer."),
        (Answer((), raw=b"no HTTP\r\n\r\n"), Trouble.UNAVAILABLE, "broke off or sent no proper answer."),
        (
            Answer((sse(ANTHROPIC_START, {"type": "error", "error": {"type": "overloaded_error"}}),)),
            Trouble.UNAVAILABLE,
            "broke off its answer with an error.",
        ),
    ],
)
@pytest.mark.slow
async def test_a_failure_that_lasts_halts_and_one_that_passes_does_not(
    log: Path, answer: Answer, trouble: Trouble, words: str
) -> None:
    async with (
        upstream(answer, GOOD, answer, answer) as model,
        box(provider(model.url), log, name="acme", patience=TWICE) as agent,
    ):
        await agent.post()
        assert agent.gateway.failing is not None
        await agent.post()
        assert agent.gateway.failing is None
        await agent.post()
        assert agent.gateway.halt is None
        await agent.post()
        with anyio.fail_after(60):
            halt = await agent.gateway.halted()
    assert halt.trouble is trouble
    assert f"acme ({model.url})" in halt.why
    assert halt.why.endswith(words)


@pytest.mark.anyio
async def test_a_service_that_nobody_reaches(log: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port: int = closed.getsockname()[1]
    async with box(provider(f"http://127.0.0.1:{port}"), log, patience=TWICE) as agent:
        replies = [await agent.post() for _ in range(2)]
        with anyio.fail_after(60):
            halt = await agent.gateway.halted()
    assert [reply.status for reply in replies] == [502, 502]
    assert (halt.trouble, halt.status) == (Trouble.UNAVAILABLE, None)
    assert halt.why == f"No answer from http://127.0.0.1:{port}: The model service cannot be reached."


@pytest.mark.anyio
async def test_a_service_that_asks_to_be_left_alone_for_longer_than_an_agent_should_wait(log: Path) -> None:
    hour = failing(429, ("retry-after", "3600"))
    async with upstream(failing(429, ("retry-after", "1")), hour) as model, box(provider(model.url), log) as agent:
        await agent.post()
        assert agent.gateway.halt is None
        await agent.post()
    assert agent.gateway.halt is not None
    assert (agent.gateway.halt.trouble, agent.gateway.halt.retry_after_s) == (Trouble.RATE_LIMITED, 3600)


@pytest.mark.anyio
async def test_what_the_agent_did_wrong_says_nothing_of_the_service(log: Path) -> None:
    service = (failing(400), failing(413), failing(422))
    async with upstream(*service) as model, box(provider(model.url), log, patience=TWICE) as agent:
        for _ in service:
            await agent.post()
        for _ in range(3):
            await agent.post("/v1/files")
    assert (agent.gateway.halt, agent.gateway.failing) == (None, None)


@pytest.mark.anyio
async def test_only_what_asks_a_model_tells_of_the_service(log: Path) -> None:
    async with upstream(failing(401)) as model, box(provider(model.url), log, patience=TWICE) as agent:
        await agent.raw(b"GET /v1/models/x HTTP/1.1\r\nHost: x\r\n\r\n")
    assert agent.gateway.halt is None


@pytest.mark.anyio
async def test_an_agent_that_hangs_up_says_nothing_of_the_service(log: Path) -> None:
    async with (
        upstream(Answer((b"a", anyio.Event()))) as model,
        box(provider(model.url), log, patience=Patience(1, 0.0)) as agent,
    ):
        async with await agent.connect() as stream:
            await stream.send(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            with anyio.fail_after(60):
                await model.asked.wait()
                assert await stream.receive()
        with anyio.fail_after(60):
            await model.left.wait()
            while not agent.written():
                await anyio.lowlevel.checkpoint()
    assert (agent.gateway.halt, agent.gateway.failing) == (None, None)


# --- the rule alone, with a clock of the test's own ---------------------------------------------------------------

DOWN = Ending(status=503)
FINE = Ending(status=200, whole=True)


def watch(*endings: tuple[float, Ending]) -> Watch:
    seen = Watch("acme")
    for now, ending in endings:
        seen.see(ending, now)
    return seen


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from([DOWN, FINE, Ending(status=429), Ending()])), max_size=40))
def test_nothing_halts_before_its_patience_is_over(steps: list[tuple[float, Ending]]) -> None:
    now, run, since = 0.0, 0, 0.0
    seen = Watch("acme")
    for step, ending in steps:
        now += step
        seen.see(ending, now)
        if ending is FINE:
            run = 0
        elif ending.status is not None:  # what says nothing, changes nothing
            since, run = (now if run == 0 else since), run + 1
            exhausted = run >= PATIENCE.requests and now - since >= PATIENCE.seconds
            assert (seen.halt is not None) is exhausted
            if exhausted:
                return
        assert seen.halt is None


def test_the_first_reason_to_halt_stays() -> None:
    halted = watch((0.0, Ending(status=401)), (1.0, Ending(status=402)))
    assert halted.halt is not None
    assert halted.halt.status == 401


# --- how long a service wants to be left alone


NOW = datetime(2026, 11, 28, 23, 59, 30, 500_000, tzinfo=UTC)
MONTH_S = MOST.total_seconds()
MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("3", 3.0),
        (" 7200 ", 7200.0),
        ("1.5", 1.5),
        ("99999999999", MONTH_S),
        ("Sun, 29 Nov 2026 00:00:00 GMT", 29.5),
        ("Sat, 28 Nov 2026 23:00:00 GMT", 0.0),
        ("Sun, 29 Nov 2026 01:00:00 +0100", 29.5),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MONTH_S),
        *((word, None) for word in ("", "soon", "-3", "1e9", "NaN", "inf", "0x10", "Sun, 99 Nov 2026")),
    ],
)  # fmt: skip
def test_seconds_and_dates_are_read_and_nonsense_is_not(header: str, seconds: float | None) -> None:
    assert seconds_of(header, "", now=NOW) == seconds


@given(MOMENTS, st.integers(0, 86_400), MOMENTS)
def test_a_date_is_counted_by_the_clock_of_who_wrote_it(sent: datetime, wait_s: int, now: datetime) -> None:
    sent = sent.replace(microsecond=0)
    until = format_datetime(sent + timedelta(seconds=wait_s), usegmt=True)
    assert seconds_of(until, format_datetime(sent, usegmt=True), now=now) == wait_s


@given(st.text(), st.text(), MOMENTS)
@example("Mon, 1 Jan 0001 00:00:00 +2359", "", NOW)
@example("Mon, 1 Jan 2026 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 -2359", NOW)
def test_whatever_is_said_is_within_a_month(header: str, sent: str, now: datetime) -> None:
    seconds = seconds_of(header, sent, now=now)
    assert seconds is None or 0 <= seconds <= MONTH_S


@pytest.mark.anyio
@pytest.mark.parametrize("status", [429, 503])
async def test_a_date_far_off_halts_at_once_and_says_when_the_limit_ends(tmp_path: Path, status: int) -> None:
    now = datetime.now(UTC)
    until = (now + timedelta(hours=2)).replace(microsecond=0)
    service = Answer((b"{}",), status, [("retry-after", format_datetime(until, usegmt=True))])
    async with upstream(service) as model, box(provider(model.url), tmp_path / "model.jsonl") as agent:
        reply = await agent.post()
        with anyio.fail_after(60):
            halt = await agent.gateway.halted()
    assert (reply.status, halt.status) == (status, status)
    assert halt.not_before is not None
    assert abs(halt.not_before - until) <= timedelta(seconds=2)
