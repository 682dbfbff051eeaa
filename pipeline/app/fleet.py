"""Makes the database of a fleet ready, and tells who works on its queue."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.app.at_hub import HubView, probe_hub, view_hub
from pipeline.app.doctor_document import Check
from pipeline.app.documents import Document
from pipeline.app.fleet_runs import hub_of
from pipeline.app.ordering import record_of
from pipeline.app.work import RepositoryWork
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.progress import counted
from pipeline.queue.orders import fleet_of, read
from pipeline.queue.postgres import STALLED_S, WorkerSeen, clock_of, machine_name, make_schema, workers_of
from pipeline.run.preconditions import known_base

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


class FleetDoctorDocument(Document):
    """What `fleet doctor` prints with `--json`; `ok` is false where a check has failed."""

    schema_: Literal["redfirst.fleet-doctor/1"] = Field(default="redfirst.fleet-doctor/1", alias="schema")
    ok: bool
    checks: tuple[Check, ...]


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
    url = hub_of(repository, environ)
    orders = [record_of(one).state for one in read(repository, environ)]
    work = RepositoryWork(repository, environ)
    return FleetDocument(
        repository=fleet.name,
        hub=url,
        orders=dict(sorted(Counter(orders).items())),
        workers=tuple(FleetWorker(**asdict(one), stalled=one.is_stalled) for one in workers_of(dsn)),
        slots=tuple(
            FleetSlot(kind=kind, most=most, free=work.shared.free(kind, most)) for kind, most in work.slots().items()
        ),
    )


def fleet_doctor(repository: Repository, environ: Mapping[str, str]) -> FleetDoctorDocument:
    """Return what keeps this machine from working in its fleet, and what of the fleet a person should look at.

    A ref is made at the hub and removed again: so it is known that this machine may push.

    Raises:
        UserError: there is no fleet in the configuration, or the repository is of none.
    """
    url, checks = hub_of(repository, environ), list[Check]()
    view: HubView | None = None
    try:
        view = view_hub(repository, url)
        probe_hub(repository, url)
        checks.append(Check(id="hub", status="ok", message=f"{url} answers, and takes what this machine pushes"))
        checks.append(_base(repository, view))
    except UserError as error:
        checks.append(_fails("hub", error))
    dsn = fleet_of(environ).postgres
    if dsn is not None:
        try:
            checks += [_clock(clock_of(dsn)), *_workers(repository, environ, workers_of(dsn), view)]
        except UserError as error:
            checks.append(_fails("postgres", error))
    return FleetDoctorDocument(ok=all(one.status != "fail" for one in checks), checks=tuple(checks))


def _fails(name: str, error: UserError) -> Check:
    return Check(id=name, status="fail", message=error.message, advice="; ".join(error.actions))


def _base(repository: Repository, view: HubView) -> Check:
    """Return whether other machines have what orders of this one begin on."""
    base = known_base(repository)
    here = repository.resolve(f"refs/heads/{base}")
    there = view.heads.get(base or "")
    if base is None or here is None or here == there:
        return Check(id="base", status="ok", message=f"{base} is at the hub as it is here")
    has_it = there is not None and repository.resolve(f"{there}^{{tree}}") is not None
    if there is not None and (not has_it or repository.is_ancestor(here, there)):
        return Check(id="base", status="ok", message=f"orders begin at {base} of the hub, {there[:12]}")
    message = f"{base} has commits here that the hub does not have: other machines begin without them"
    return Check(id="base", status="warn", message=message, advice=f"push {base} to the hub")


_CLOCK_S: Final = 60.0


def _clock(server: float) -> Check:
    """Return whether the clock here is that of the server."""
    off = time.time() - server
    if abs(off) < _CLOCK_S:
        return Check(id="postgres", status="ok", message="it answers, and its clock is that of this machine")
    message = f"the clock here is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} that of Postgres"
    return Check(id="postgres", status="warn", message=message, advice="set it: schedules and `not_before` follow it")


def _workers(
    repository: Repository, environ: Mapping[str, str], workers: list[WorkerSeen], view: HubView | None
) -> Iterator[Check]:
    """Yield who works, and which runs nobody drives as far as can be seen."""
    silent = [f"{one.pid} on {one.machine}" for one in workers if one.is_stalled]
    if silent:
        message = f"silent for more than {STALLED_S} s: {', '.join(silent)}. Their orders are free for others"
        yield Check(id="workers", status="warn", message=message, advice="end or mend these processes")
    elif not workers:
        yield Check(id="workers", status="warn", message="no worker is connected", advice="redfirst work")
    else:
        message = f"{counted(len(workers), 'worker')} connected to this server, of all hubs that meet there"
        yield Check(id="workers", status="ok", message=message)
    open_orders = {one.id for one in read(repository, environ) if one.is_open}
    machines = {one.machine for one in workers}
    left = [
        one.run
        for one in (view.claims.values() if view is not None else ())
        if one.state == "driving" and one.order not in open_orders and machine_name(one.host) not in machines
    ]
    if left:
        message = f"no worker is connected where these runs were driven last: {', '.join(left)}"
        yield Check(id="runs", status="warn", message=message, advice="if nobody drives them: redfirst fleet take RUN")


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
