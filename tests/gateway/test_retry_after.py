"""How long a service wants to be left alone: seconds, or a date by its own clock; nonsense is no word at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import anyio
import pytest
from gateway.box import box, provider
from gateway.upstream import Answer, upstream
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.agents.gateway.proxy import seconds_of
from pipeline.reset_times import MOST

if TYPE_CHECKING:
    from pathlib import Path

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
