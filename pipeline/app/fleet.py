"""Makes the database of a fleet ready, and tells who works on its queue."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pipeline.app.documents import Document
from pipeline.app.ordering import record_of
from pipeline.app.work import RepositoryWork
from pipeline.config.fleet import fleet_of
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue.orders import read
from pipeline.queue.postgres import STALLED_S, make_schema, workers_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.config.tables import Fleet
    from pipeline.repo import Repository


class FleetInitDocument(Document):
    """What `fleet init` prints with `--json`: the tables that it made."""

    schema_: Literal["redfirst.fleet-init/1"] = Field(default="redfirst.fleet-init/1", alias="schema")
    ok: Literal[True] = True
    repository: str
    made: tuple[str, ...]


class FleetWorker(Document):
    """A worker that is connected. It is stalled, and has no orders any more, if it has been silent for 30 seconds."""

    machine: str
    pid: int
    address: str | None
    silent_s: float | None
    stalled: bool


class FleetSlot(Document):
    """How many slots there are of a kind, and how many are free. `jobs` are those of this machine."""

    kind: str
    most: int
    free: int


class FleetDocument(Document):
    """What `fleet status` prints with `--json`; orders are counted by their state."""

    schema_: Literal["redfirst.fleet/1"] = Field(default="redfirst.fleet/1", alias="schema")
    ok: Literal[True] = True
    repository: str
    hub: str
    orders: dict[str, int]
    workers: tuple[FleetWorker, ...]
    slots: tuple[FleetSlot, ...]


def begin_fleet(environ: Mapping[str, str]) -> FleetInitDocument:
    """Make the tables that are missing.

    Raises:
        UserError: there is no fleet in the configuration, or its server does not take them.
    """
    fleet, dsn = _server_of(environ)
    return FleetInitDocument(repository=fleet.name, made=make_schema(dsn))


def fleet_status(repository: Repository, environ: Mapping[str, str]) -> FleetDocument:
    """Return how the fleet stands, as seen from a repository.

    Raises:
        UserError: there is no fleet in the configuration, or its server cannot be asked.
    """
    fleet, dsn = _server_of(environ)
    if not repository.has_remote(fleet.hub or ""):
        raise UserError(
            f"No remote of this repository is the hub {fleet.hub}, so its orders lie on this machine alone.",
            Reason.CONFIG,
            actions=(f"git remote add hub {shlex.quote(fleet.hub or '')}",),
        )
    orders = [record_of(one).state for one in read(repository, environ)]
    work = RepositoryWork(repository, environ)
    return FleetDocument(
        repository=fleet.name,
        hub=fleet.hub or "",
        orders=dict(sorted(Counter(orders).items())),
        workers=tuple(
            FleetWorker(
                machine=one.machine,
                pid=one.pid,
                address=one.address,
                silent_s=one.silent_s,
                stalled=(one.silent_s or 0) > STALLED_S,
            )
            for one in workers_of(dsn)
        ),
        slots=tuple(
            FleetSlot(kind=kind, most=most, free=work.shared.free(kind, most)) for kind, most in work.slots().items()
        ),
    )


def _server_of(environ: Mapping[str, str]) -> tuple[Fleet, str]:
    fleet = fleet_of(environ)
    if fleet.postgres is None:
        raise UserError(
            "Your configuration names no fleet: this machine works alone. Say where the others meet:",
            Reason.CONFIG,
            actions=(
                "redfirst config set --user fleet.hub URL",
                "redfirst config set --user fleet.postgres 'host=HOST dbname=redfirst user=USER'",
            ),
        )
    return fleet, fleet.postgres
