"""The tables `[triggers.NAME]`: who may order runs from outside, and when. No I/O, but for the zones of the system."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from pipeline.config.providers import Variable
from pipeline.config.tables import Gate, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

EVERYBODY: Final = "*"
"""In the place of a sender: each one."""
_OTHERS: Final = frozenset({"cli", "console", "landing", "sweep", "gc", "mcp"})
"""By whom else orders are."""
_FIELDS: Final = 5
_RATE: Final = r"^[1-9][0-9]{0,3}/[mhd]$"
_RECIPE: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"


class Source(StrEnum):
    """Where deliveries come from: GitHub, any sender of Standard Webhooks, a clock, or an agent of another program."""

    GITHUB = "github"
    GENERIC = "generic"
    SCHEDULE = "schedule"
    AGENT = "agent"


class CatchUp(StrEnum):
    """What a worker makes up for that was not there: no time of a schedule, the last one, or the last ten."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


def _name(text: str) -> str:
    if text in _OTHERS:
        raise PydanticCustomError("trigger", "is what redfirst calls orders of its own; give the trigger another name")
    return text


def _cron(text: str) -> str:
    from cronsim import CronSim, CronSimError  # noqa: PLC0415  (only a schedule needs it)

    if len(text.split()) != _FIELDS:
        raise PydanticCustomError("cron", 'must have five fields, such as "30 2 * * 1-5"')
    try:
        next(CronSim(text, datetime(2026, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise PydanticCustomError("cron", "is no time of cron ({why})", {"why": str(error)}) from None
    except (StopIteration, OverflowError):
        raise PydanticCustomError("cron", "must have a time in the next 50 years") from None
    return text


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PydanticCustomError("zone", "must be a time zone of this machine, such as Europe/Berlin") from None
    return text


Cron = Annotated[str, AfterValidator(_cron)]
TriggerName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]+([_-][a-z0-9]+)*$", max_length=40), AfterValidator(_name)
]


class TriggerTable(Table):
    """`[triggers.NAME]`: an event or a time at which orders are placed. `fault_of` says what one lacks."""

    source: Annotated[Source | None, Field(description="Who delivers, or a schedule")] = None
    enabled: Annotated[bool, Field(description="Whether it orders; deliveries are recorded all the same")] = True
    on: Annotated[
        str | None,
        Field(
            pattern=r"^[A-Za-z0-9_.-]{1,100}(:.{1,100})?$",
            description="The event, and behind a colon a label: issues.labeled:redfirst",
        ),
    ] = None
    senders: Annotated[tuple[str, ...], Field(description='Accounts that may order; "*" is everybody')] = ()
    own_login: Annotated[str | None, Field(description="Your tools' own account: what it sends is ignored")] = None
    secret_env: Annotated[Variable | None, Field(description="The variable that holds the secret of signatures")] = None
    rate: Annotated[str, Field(pattern=_RATE, description="So many orders in a minute, an hour or a day")] = "10/h"
    gates: Annotated[tuple[Gate, ...], Field(description="Approval points of its runs: plan, split, commit")] = ()
    recipe: Annotated[str | None, Field(pattern=_RECIPE, description="The recipe of its runs")] = None
    cron: Annotated[Cron | None, Field(description="The times of a schedule, as cron has them")] = None
    timezone: Annotated[str, AfterValidator(_zone), Field(description="The zone of these times")] = "UTC"
    catch_up: Annotated[CatchUp, Field(description="Times to make up for that passed without a worker")] = CatchUp.LAST
    ready: Annotated[int, Field(ge=1, le=100, description="So many issues that are ready are ordered each time")] = 1


_DELIVERED: Final = ("on", "senders", "own_login", "secret_env", "rate")
_TIMED: Final = ("cron", "timezone", "catch_up", "ready")
_NEEDS: Final[Mapping[Source, tuple[str, ...]]] = {
    Source.GITHUB: ("on", "senders", "secret_env"),
    Source.GENERIC: ("on", "secret_env"),
    Source.SCHEDULE: ("cron",),
    Source.AGENT: (),
}


def fault_of(table: TriggerTable) -> tuple[str, str] | None:
    """Return the key that a trigger lacks or has in vain, and what to do about it; None where it is whole.

    It is looked at when all layers are together: one may only switch off what another one defines.
    """
    if table.source is None:
        return "source", f"is missing. Accepted: {', '.join(Source)}."
    lacks = next((key for key in _NEEDS[table.source] if not getattr(table, key)), None)
    if lacks is not None:
        return lacks, f'is missing, and source = "{table.source}" needs it.'
    without = _DELIVERED if table.source is Source.SCHEDULE else _TIMED
    vain = next((key for key in without if key in table.model_fields_set), None)
    return None if vain is None else (vain, f'has no effect with source = "{table.source}". Take it out.')
