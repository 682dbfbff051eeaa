"""When a limit ends, by the products' own words: their forms, zones, the day behind midnight, and nonsense."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.agents.backends.claude import read_stream
from pipeline.agents.backends.report_schemas import Form
from pipeline.agents.backends.reset_words import reset_in
from pipeline.reset_times import MOST

if TYPE_CHECKING:
    from datetime import tzinfo

NOW = datetime(2026, 11, 28, 13, 30, 20, tzinfo=UTC)
BERLIN, TOKYO = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Tokyo")
CLAUDE = "The model service refused the request: You've hit your"
CODEX = (
    "The turn failed: You've hit your usage limit. Upgrade to Plus (https://chatgpt.com/explore/plus), or try again at"
)
FORM = Form({"type": "object"}, wrapped=False)
MONTH = NOW + MOST + timedelta(seconds=1)


def at(day: int, hour: int, minute: int = 0, second: int = 0, *, month: int = 11) -> datetime:
    return datetime(2026, month, day, hour, minute, second, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (f"{CLAUDE} limit · resets 3pm (Europe/Berlin)", at(28, 14)),
        (f"{CLAUDE} session limit · resets 3:31pm (Europe/Berlin)", at(28, 14, 31)),
        (f"{CLAUDE} session limit · resets 2pm (Europe/Berlin)", at(29, 13)),
        (f"{CLAUDE} session limit · resets 12am (UTC)", at(29, 0)),
        (f"{CLAUDE} session limit · resets 12:45pm (America/New_York)", at(28, 17, 45)),
        (f"{CLAUDE} weekly limit · resets Dec 3, 3pm (Europe/Berlin)", at(3, 14, month=12)),
        (f"{CLAUDE} weekly limit · resets Nov 27, 3pm (UTC)", None),
        ("Claude AI usage limit reached|1796050000", datetime.fromtimestamp(1796050000, UTC)),
        (f"{CODEX} 3:04 PM.", at(28, 15, 4)),
        (f"{CODEX} 1:04 PM.", at(29, 13, 4)),
        (f"{CODEX} Dec 3rd, 2026 3:04 PM.", at(3, 15, 4, month=12)),
        ("Rate limit reached for m on tokens per min. Please try again in 1.898s.", at(28, 13, 30, 22)),
        ("You have exhausted your capacity on this model. Your quota will reset after 2h14m5s.", at(28, 15, 44, 25)),
        ("Access resets at 3:04\u202fPM GMT+1.", at(28, 14, 4)),
        ("resets in 2h 14m", at(28, 15, 44, 20)),
        ("It resets at 6:00 PM.", at(28, 18)),
        ("It resets at 6pm and not before", at(28, 18)),
        ("try again at 6:00 PM CET", at(28, 17)),
        ("try again in 3 days and 4 hours", at(1, 17, 30, 20, month=12)),
        ("resets at 2026-11-28T15:00:00Z", at(28, 15)),
        ("available at 2026-11-28 15:00 +0200", None),
        ("resets 13:30 (UTC)", at(28, 13, 30)),
        ("resets in 4000 weeks", MONTH),
        ("resets Jan 3, 2027, 3pm (UTC)", MONTH),
        *(
            (words, None)
            for words in (
                "", "try again later", "Try again at 25:00", "Try again at 9", "resets 13pm", "resets Feb 31, 3pm",
                "resets 3pm (Nowhere/Land)", "resets 3pm (Europe)", "resets Xyz 3, 3pm", "try again in 5 apples",
                "resets in 99h99", "limit reached|1", "It was 3pm",
            )
        ),
    ],
)  # fmt: skip
def test_what_products_say(words: str, ends: datetime | None) -> None:
    found = reset_in(words, NOW)
    assert found == ends if ends is not MONTH or found is None else abs(found - MONTH) <= timedelta(seconds=1)


@pytest.mark.parametrize(("zone", "ends"), [(UTC, at(28, 15)), (BERLIN, at(28, 14)), (TOKYO, at(29, 6))])
def test_a_clock_without_a_zone_is_that_of_the_product(zone: tzinfo, ends: datetime) -> None:
    assert reset_in("or try again at 3:00 PM.", NOW, zone) == ends


MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


SENTENCES = st.from_regex(r"(resets|try again) (in|at|after|on)? ?[0-9a-zA-Z:, .()/+|-]{0,30}", fullmatch=True)


@pytest.mark.broad
@given(st.text() | SENTENCES, MOMENTS)
@example("resets at 9999-12-31T23:59:59-2359", NOW)
@example("resets at 0001-01-01T00:00:00+2359", NOW)
@example("resets Dec 31, 9999, 11pm (America/New_York)", NOW)
@example("try again in 999999999.999999999 weeks 999999999 weeks", NOW)
@example("resets 3pm GMT+99", NOW)
def test_whatever_is_said_is_nothing_or_a_moment_of_the_next_month(words: str, now: datetime) -> None:
    found = reset_in(words, now)
    assert found is None or now - timedelta(minutes=1) <= found <= now + MOST + timedelta(seconds=1)


def limited(status: str, ends: object) -> bytes:
    event = {"type": "rate_limit_event", "rate_limit_info": {"status": status, "resetsAt": ends, "rateLimitType": "x"}}
    said = {"type": "assistant", "message": {"id": "m"}, "error": "rate_limit"}
    words = "You've hit your session limit · resets 3pm (UTC)"
    last = {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 429, "result": words}
    return b"\n".join(json.dumps(each).encode() for each in (event, said, last))


@pytest.mark.parametrize(
    ("status", "ends", "moment"),
    [("rejected", 1796050000, 1796050000), ("allowed_warning", 1796050000, None), ("rejected", 1e300, None)],
)
def test_claude_code_says_the_second_in_an_event_of_its_stream(status: str, ends: object, moment: int | None) -> None:
    facts = read_stream(limited(status, ends), FORM, keeps=False)
    assert facts.not_before == (None if moment is None else datetime.fromtimestamp(moment, UTC))
    assert facts.fault == "unavailable"
    assert facts.complaint is not None
    assert reset_in(facts.complaint, NOW) == at(28, 15)
