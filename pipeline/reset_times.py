"""Says when the limit of an account ends: in records in whole seconds of UTC, and to people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

MOST: Final = timedelta(days=31)
"""No limit of an account is longer than a month: what says more is asked again after that."""

_MINUTE: Final = timedelta(minutes=1)
"""Products tell the time in minutes: one that is not over is not past."""


def after(seconds: float, now: datetime) -> datetime:
    """Return the first whole second of UTC that is so many seconds from now, or later; at most a month."""
    moment = now.astimezone(UTC) + timedelta(seconds=min(max(seconds, 0.0), MOST.total_seconds()))
    return moment if not moment.microsecond else moment.replace(microsecond=0) + timedelta(seconds=1)


def ahead(moment: datetime, now: datetime) -> datetime | None:
    """Return a moment that was said for the end of a limit, at most a month off; None where it is over."""
    return None if moment <= now - _MINUTE else min(moment, after(MOST.total_seconds(), now)).astimezone(UTC)


def as_text(moment: datetime) -> str:
    """Return a moment as records have it: `2026-11-28T15:00:00Z`."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def as_moment(text: str) -> datetime:
    """Return the moment of a record.

    Raises:
        ValueError: it is none, in a stranger's record.
    """
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def moment_words(text: str) -> str:
    """Return the moment of a record for people: `2026-11-28 15:00:00 UTC`; what is none as it is."""
    try:
        return f"{as_moment(text):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError):
        return text
