"""Reads for how long a service wants to be left alone (RFC 9110, 10.2.3): seconds, or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from pipeline.reset_times import MOST

_SECONDS: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?")


def seconds_of(header: str, sent: str, *, now: datetime) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, at most a month; None where it cannot be read.

    Args:
        header: Its value.
        sent: The `Date` header beside it: a date is counted by the clock of who wrote it.
        now: The time, where there is none.
    """
    if _SECONDS.fullmatch(header.strip()):
        return min(float(header), MOST.total_seconds())
    moment = _date(header)
    if moment is None:
        return None
    return min(max((moment - (_date(sent) or now)).total_seconds(), 0.0), MOST.total_seconds())


def _date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
