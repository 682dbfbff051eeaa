"""Defines what the events of orders say in `data`."""

from __future__ import annotations

from pipeline.events.run_data import Data, Stopped


class OrderPlaced(Data):
    """An issue is to be run, or a run to be gone on with, by whichever worker there is."""

    NAME = "order.placed"

    do: str
    issue: str | None
    run: str | None
    via: str
    cause: tuple[str, ...]
    depth: int
    priority: int


class OrderStarted(Data):
    """A worker has started a driver for an order; `log` is the file with what it says."""

    NAME = "order.started"

    log: str


class OrderEnded(Stopped):
    """An order is over: its run has ended, waits for a person, or could not begin."""

    NAME = "order.ended"

    run: str | None
    note: str


class OrderDropped(Data):
    """An order is not to be done any more."""

    NAME = "order.dropped"

    why: str
