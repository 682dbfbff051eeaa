"""Answers what triggers there are, how they stand, and what keeps one from ordering an issue; lets one go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.app.doctor_document import Check
from pipeline.app.run_config import read_config
from pipeline.config.layers import Flags
from pipeline.config.triggers import Source, TriggerTable
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import utc_now
from pipeline.outcomes import Reason
from pipeline.queue.deliveries import MOST_FAILURES, Why, deliveries_of
from pipeline.queue.orders import OrderLog, log_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pipeline.config.load import Loaded
    from pipeline.repo import Repository

MOST_ATTEMPTS: Final = 3
"""So often triggers order one issue."""


class TriggerRecord(Frozen):
    """A trigger. `missing` is the variable of its secret where that is not set; `orders` counts those it placed."""

    name: str
    source: Source
    enabled: bool
    paused: bool
    missing: str | None
    orders: int


class TriggersDocument(Frozen):
    """What `trigger list` and `trigger resume` print with `--json`."""

    schema_: Literal["redfirst.triggers/1"] = Field(default="redfirst.triggers/1", alias="schema")
    ok: Literal[True] = True
    triggers: tuple[TriggerRecord, ...]


def read_triggers(repository: Repository, environ: Mapping[str, str]) -> Mapping[str, TriggerTable]:
    """Return the triggers by their names, trusted or not.

    Raises:
        UserError: the configuration is broken.
    """
    return read_config(repository, repository.resolve("HEAD") or "", Flags(), environ).config.triggers


def named_trigger(triggers: Mapping[str, TriggerTable], name: str) -> TriggerTable:
    """Return the trigger of a name.

    Raises:
        UserError: there is none.
    """
    if name not in triggers:
        raise UserError(
            f"There is no [triggers.{name}] in the configuration. Triggers: {', '.join(triggers) or 'none'}.",
            Reason.USAGE,
            actions=("redfirst trigger list",),
        )
    return triggers[name]


def obstacle(log: OrderLog, issue: str, triggers: Collection[str]) -> Why:
    """Return why no trigger may order an issue now; empty where one may."""
    of_it = [one for one in log.orders.values() if one.placed.issue == issue]
    if any(one.is_open for one in of_it):
        return "open"
    return "attempts" if sum(one.placed.via in triggers for one in of_it) >= MOST_ATTEMPTS else ""


def list_triggers(
    repository: Repository, environ: Mapping[str, str], triggers: Mapping[str, TriggerTable]
) -> TriggersDocument:
    """Return how triggers stand.

    Raises:
        UserError: orders or deliveries cannot be read.
    """
    log = log_of(repository, environ)
    log.read_on()
    placed = [one.placed.via for one in log.orders.values() if one.placed.via in triggers]
    paused: set[str] = set()
    if placed:  # who only looks makes nothing
        with deliveries_of(repository, environ).hold() as kept:
            paused = {name for name in triggers if kept.is_paused(name, log.orders.values())}
    return TriggersDocument(
        triggers=tuple(
            TriggerRecord(
                name=name,
                source=one.source or Source.AGENT,
                enabled=one.enabled,
                paused=name in paused,
                missing=one.secret_env if one.secret_env is not None and not environ.get(one.secret_env) else None,
                orders=placed.count(name),
            )
            for name, one in triggers.items()
        )
    )


def resume_trigger(repository: Repository, environ: Mapping[str, str], name: str) -> TriggersDocument:
    """Let a trigger go on that failures have paused.

    Raises:
        UserError: there is none of that name, or deliveries cannot be written.
    """
    found = named_trigger(read_triggers(repository, environ), name)
    with deliveries_of(repository, environ).hold() as kept:
        kept.resume(name, utc_now())
    return list_triggers(repository, environ, {name: found})


def check_triggers(repository: Repository, environ: Mapping[str, str], loaded: Loaded) -> list[Check]:
    """Return what keeps triggers from ordering anything; nothing where there are none."""
    try:
        found = list_triggers(repository, environ, loaded.config.triggers).triggers
    except UserError as error:
        return [Check(id="triggers", status="warn", message=error.message)]
    said = [f"{one.name} is paused: its last {MOST_FAILURES} orders failed" for one in found if one.paused]
    mend = [f"redfirst trigger resume {one.name}" for one in found if one.paused]
    said += [f"{one.missing} is not set, the secret of {one.name}" for one in found if one.missing]
    if said:
        return [Check(id="triggers", status="warn", message="; ".join(said), advice="; ".join(mend))]
    return [Check(id="triggers", status="ok", message=", ".join(one.name for one in found))] if found else []
