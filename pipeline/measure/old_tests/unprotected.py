"""Describes the tests that a run does not protect because they failed before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.evidence.compare import failing
from pipeline.evidence.observation import Ended

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pipeline.evidence.observation import Observation
    from pipeline.measure.measuring import MeasurementContext

_NAMED: Final = 3


def limit_of(ctx: MeasurementContext) -> float | None:
    """Return the time limit of a single test in seconds, None if there is none."""
    return ctx.config.toolchains.settings_of(ctx.toolchain.name).test_timeout_s


def not_protected(before: Observation, limit_s: float | None, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return a line for each kind of test that failed before and so is not protected.

    Args:
        before: The run of the tests as they were.
        limit_s: How many seconds one test may take, None without a limit.
        without: Ids that are spoken of elsewhere.
    """
    found = [entry for entry in failing(before) if entry not in without]
    files = [error.path for error in before.collection_errors if error.path in found]
    late = [entry for entry in found if entry in before.records and _is(before, entry, Ended.TIMED_OUT)]
    failed = [entry for entry in found if entry in before.records and entry not in late]
    in_time = "in time" if limit_s is None else f"within {limit_s:g} s"
    return (
        *_line(failed, "test", "failed before already and {is_} not counted"),
        *_line(late, "test", f"did not end {in_time} before already and {{is_}} not counted"),
        *_line(files, "file", "could not be collected before already, and what is in {it} is not counted"),
    )


def _is(before: Observation, entry: str, ended: Ended) -> bool:
    return before.records[entry].outcome is ended


def _line(entries: Sequence[str], what: str, said: str) -> tuple[str, ...]:
    if not entries:
        return ()
    one = len(entries) == 1
    words = said.format(is_="is" if one else "are", it="it" if one else "them")
    return (f"{len(entries)} {what}{'' if one else 's'} {words}: {named(entries)}",)


def named(entries: Sequence[str], most: int = _NAMED) -> str:
    """Return the first *most* of *entries* in words, and the number of the others."""
    more = len(entries) - most
    return ", ".join(entries[:most]) + (f" and {more} more" if more > 0 else "")
