"""Keeps what the hub of a fleet has of runs of other machines, beside the pages: a hub may take its time to answer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from pipeline.app.at_hub import Elsewhere, runs_elsewhere
from pipeline.errors import UserError
from pipeline.queue.orders import fleet_for

if TYPE_CHECKING:
    from pipeline.repo import Repository

_PAUSE_S: Final = 10.0
_PATIENCE_S: Final = 2.0
"""How long a page waits for the first answer."""


class OtherMachines:
    """The runs of other machines, as they were at the last look; nobody looks where nobody asks.

    Args:
        repository: Seen from where the console was started.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._asked, self._answered = anyio.Event(), anyio.Event()
        self._runs: tuple[Elsewhere, ...] = ()
        self._says = ""

    async def runs(self) -> tuple[tuple[Elsewhere, ...], str]:
        """Return the runs, and why they may be old; nothing where there is no hub."""
        self._asked.set()
        with anyio.move_on_after(_PATIENCE_S):
            await self._answered.wait()
        return self._runs, self._says

    async def look(self) -> None:
        """Look at the hub as long as somebody asks."""
        while True:
            await self._asked.wait()
            self._asked = anyio.Event()
            await to_thread.run_sync(self._read, abandon_on_cancel=True)
            self._answered.set()
            await anyio.sleep(_PAUSE_S)

    def _read(self) -> None:
        try:
            url = fleet_for(self._repository, os.environ).hub
            self._runs = tuple(runs_elsewhere(self._repository, url)) if url is not None else ()
            self._says = ""
        except UserError as error:
            self._says = error.message
