"""Reads out of a product's words when the limit of its account ends.

What the products say (Claude Code 2.1, Codex 0.169, Gemini CLI 0.61, and the services behind them):

    You've hit your session limit · resets 3:30pm (Europe/Berlin)
    You've hit your weekly limit · resets Dec 3, 3pm (Europe/Berlin)
    Claude AI usage limit reached|1764342000
    You've hit your usage limit. ... or try again at 3:04 PM.
    You've hit your usage limit. ... or try again at Dec 3rd, 2026 3:04 PM.
    Please try again in 1.898s
    You have exhausted your capacity on this model. Your quota will reset after 2h14m5s.
    Access resets at 3:04 PM GMT+1.

What cannot be read is no word: then the service is asked again as after any other failure.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from pipeline.reset_times import after, ahead

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART: Final = (
    r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)"
)
_ENDS: Final = r"\b(?:resets?|again|retry|available)"
_DURATION: Final = re.compile(
    rf"{_ENDS}\s+(?:in|after)\s+({_PART}(?:[\s,]*(?:and\s+)?{_PART})*)(?![a-z0-9])", re.IGNORECASE
)
_EACH: Final = re.compile(_PART, re.IGNORECASE)
_EPOCH: Final = re.compile(r"limit reached\|(\d{10})(?!\d)")
_ISO: Final = re.compile(
    rf"{_ENDS}\s+(?:at\s+|on\s+)?"
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)?",
    re.IGNORECASE,
)
_CLOCK: Final = re.compile(
    rf"{_ENDS}\s+(?:at\s+|on\s+)?"
    r"(?:(?P<month>[a-z]{3})[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?(?:,|\s+at)?\s+)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::(?P<second>\d\d))?)?\s*(?P<half>[ap]\.?m\b\.?)?"
    r"(?:\s*\((?P<zone>[\w+\-]{1,40}(?:/[\w+\-]{1,40}){0,2})\)"
    r"|\s+(?P<short>UTC|GMT|Z|(?-i:[A-Z]{2,5}))?(?P<offset>[+-]\d{1,2}(?::?\d\d)?)?(?![\w:]))?",
    re.IGNORECASE,
)
_MINUTE: Final = timedelta(minutes=1)
_HALF_A_YEAR: Final = timedelta(days=182)
_NOON: Final = 12


def reset_in(text: str, now: datetime, zone: tzinfo = UTC) -> datetime | None:
    """Return when a limit ends by a product's words; None where they do not say, or it is over.

    Args:
        text: The words.
        now: The time.
        zone: Where the product's clock is, if it does not say.
    """
    try:
        found = _moment(text, now, zone)
    except (ValueError, OverflowError):  # the 31st of February
        return None
    return None if found is None else ahead(found, now)


def _moment(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    if (said := _DURATION.search(text)) is not None:
        return after(sum(float(many) * _UNITS[_unit(unit)] for many, unit in _EACH.findall(said[1])), now)
    if (said := _EPOCH.search(text)) is not None:
        return datetime.fromtimestamp(int(said[1]), UTC)
    if (said := _ISO.search(text)) is not None:
        there = _offset(said[3]) if said[3] and said[3][0] in "+-" else UTC if said[3] else zone
        return datetime.fromisoformat(f"{said[1]}T{said[2]}").replace(tzinfo=there)
    said = _CLOCK.search(text)
    return None if said is None else _by_clock(said, now, zone)


def _unit(word: str) -> str:
    small = word.lower()
    return "ms" if small == "ms" or small.startswith("milli") else small[0]


def _by_clock(said: re.Match[str], now: datetime, zone: tzinfo) -> datetime | None:
    """Return the next time that a clock shows what is said, in whole minutes: one that is not over is not past."""
    there = _zone(said, zone)
    hour = _hour(said)
    if there is None or hour is None:
        return None
    local = now.astimezone(there)

    def on(day: date) -> datetime:
        minute, second = int(said["minute"] or 0), int(said["second"] or 0)
        return datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=there)

    if said["month"] is None:
        today = on(local.date())
        return today if today > now - _MINUTE else on(local.date() + timedelta(days=1))
    month = _MONTHS.index(said["month"].lower()) + 1
    if said["year"] is not None:
        return on(date(int(said["year"]), month, int(said["day"])))
    this_year = on(date(local.year, month, int(said["day"])))
    return this_year if this_year > now - _HALF_A_YEAR else on(date(local.year + 1, month, int(said["day"])))


def _hour(said: re.Match[str]) -> int | None:
    """Return the hour of the day; None for a bare number, which is no time."""
    hour, half = int(said["hour"]), (said["half"] or "").lower()[:1]
    if not half:
        return hour if said["minute"] is not None else None
    return hour % _NOON + (_NOON if half == "p" else 0) if 1 <= hour <= _NOON else None


def _zone(said: re.Match[str], zone: tzinfo) -> tzinfo | None:
    """Return the zone that is said; None for one that nobody knows here."""
    if said["offset"] is not None:
        return _offset(said["offset"])
    name = said["zone"] or said["short"]
    if name is None:
        return zone
    return UTC if name.upper() in {"UTC", "GMT", "Z"} else zone_named(name)


def zone_named(name: str) -> tzinfo | None:
    """Return the zone of a name such as Europe/Berlin; None where none is known by it."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _offset(said: str) -> tzinfo:
    sign, digits = -1 if said[0] == "-" else 1, said[1:].replace(":", "")
    hours, minutes = (digits, "0") if len(digits) <= 2 else (digits[:-2], digits[-2:])  # noqa: PLR2004  (HH, HHMM)
    return timezone(sign * timedelta(hours=int(hours), minutes=int(minutes)))
