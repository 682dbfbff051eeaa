"""Orders issues at the times of `[triggers.NAME]` with `source = "schedule"`; each time once, whoever asks.

A time is known in UTC: where a clock is set back, 2:30 comes twice, and is one time of a schedule. Where it is set
forward, the time that is left out falls on the next one there is. cronsim decides both as Debian's cron does.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from pipeline.app.run_config import trusted_config
from pipeline.app.triggers import obstacle
from pipeline.config.triggers import CatchUp, Source, TriggerTable
from pipeline.matrix.engine.journal import stamp
from pipeline.queue.deliveries import Delivered, Result, Why, deliveries_of
from pipeline.queue.lines import RunWords
from pipeline.queue.orders import OrderLog, Wanted
from pipeline.run.preconditions import base_branch
from pipeline.run.store import claims
from pipeline.run.tracker import as_user_errors, in_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.config.model import Config
    from pipeline.repo import Repository

MOST_AT_ONCE: Final = 10
"""So many times of one schedule are made up for."""
_TIMES: Final = "@"
"""What stands behind the name of a trigger whose times are kept: it may have been of another kind."""
_LONGEST: Final = timedelta(days=366)
_PUNCTUAL: Final = timedelta(minutes=2)
"""A worker that was there looks at a time before so much of it has passed."""


def times(trigger: TriggerTable, since: datetime, now: datetime) -> list[datetime]:
    """Return the last times of a schedule after *since* and until *now*, in UTC, oldest first."""
    from cronsim import CronSim  # noqa: PLC0415  (only a schedule needs it)

    found = [max(since, now - _LONGEST)]
    for each in CronSim(trigger.cron or "", found[0].astimezone(ZoneInfo(trigger.timezone))):
        time = each.astimezone(UTC)
        if time > now:
            break
        if time > found[-1]:  # of an hour that comes twice the first one counts
            found.append(time)
    return found[1:][-MOST_AT_ONCE:]


def order_what_is_due(
    repository: Repository, environ: Mapping[str, str], config: Config, log: OrderLog, now: datetime
) -> None:
    """Place the orders of all schedules whose time has come.

    A schedule that nobody has looked at begins now.

    Args:
        repository: Seen from where the worker stands.
        environ: Its environment.
        config: As it counts for the worker.
        log: The orders.
        now: The time.

    Raises:
        UserError: the repository is not trusted, or something of it is broken.
    """
    triggers = {name: one for name, one in config.triggers.items() if one.source is Source.SCHEDULE}
    if not triggers:
        return
    with deliveries_of(repository, environ).hold() as kept:
        for name, trigger in triggers.items():
            newest = kept.newest(name + _TIMES)
            if newest is None:
                kept.add(_record(name, now, now, "ignored", "nothing"), now)
                continue
            due = times(trigger, datetime.fromisoformat(newest.id), now)
            if not due:
                continue
            trusted_config(repository, environ)
            recent = [time for time in due if now - time <= _PUNCTUAL]
            chosen = {CatchUp.ALL: due, CatchUp.LAST: due[-1:], CatchUp.NONE: recent}[trigger.catch_up]
            if not chosen:
                kept.add(_record(name, due[-1], now, "ignored", "missed"), now)
            for time in chosen:
                why = "off" if not trigger.enabled else "paused" if kept.is_paused(name, log.orders.values()) else ""
                first = None if why else _order(repository, config, name, log, time)
                result, why = ("ordered", "") if first else ("ignored", why or "nothing")
                kept.add(_record(name, time, now, result, why, first), now)


def _slot(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="minutes")


def _record(name: str, time: datetime, now: datetime, result: Result, why: Why, order: str | None = None) -> Delivered:
    return Delivered(name + _TIMES, _slot(time), "", stamp(now), result, why, order=order)


def _order(repository: Repository, config: Config, name: str, log: OrderLog, time: datetime) -> str | None:
    """Order so many issues that are ready; return the first order, None where there is none to be placed."""
    trigger, key = config.triggers[name], f"{name}@{_slot(time)}"
    words = RunWords(base=config.base, approve=trigger.gates, recipe=trigger.recipe)
    placed: list[str] = []
    with log.locked():
        there = {one.placed.key: one.id for one in log.orders.values()}
        issues = _ready(repository, config, log)
        for each in [key, *(f"{key}#{number}" for number in range(2, trigger.ready + 1))]:
            if each in there:
                placed.append(there[each])
            elif (issue := next(issues, None)) is not None:
                wanted = Wanted(via=name, issue=issue, key=each, options=words, cause=(key,))
                placed.append(log.place(wanted)[0].id)
    return next(iter(placed), None)


def _ready(repository: Repository, config: Config, log: OrderLog) -> Iterator[str]:
    """Yield the issues of the base that a trigger may order now."""
    issues = in_tree(repository, repository.tree_of(base_branch(repository, "ISSUE", config.base)))
    with as_user_errors(issues):
        found = [issue.id for issue in issues.ready()]
    held = claims(repository)
    yield from (one for one in found if one not in held and not obstacle(log, one, config.triggers))
