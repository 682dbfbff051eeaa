"""Shows the queue: what is ordered, what became of it, and the forms that change it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal

from starlette.responses import JSONResponse, RedirectResponse

from pipeline.console.acts import fields_of
from pipeline.console.edits import Edits
from pipeline.console.frame import wants_json
from pipeline.console.issues import GATES
from pipeline.console.pages import ASKED
from pipeline.errors import UserError
from pipeline.outcomes import Outcome, Reason
from pipeline.queue import orders
from pipeline.queue.lines import RunWords
from pipeline.service import detached, ordering
from pipeline.service.ordering import queue_document
from pipeline.service.run_list import list_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from pipeline.queue.orders import Order
    from pipeline.service.run_list import RunLine

_CHANGES: Final[tuple[Literal["drop", "hold", "release"], ...]] = ("drop", "hold", "release")
_SHOWN_CLOSED: Final = 20


class Queued(Edits):
    """Runs, and what is to be run."""

    async def queue(self, request: Request) -> Response:
        """Show the orders: those that are open, and the last ones that are over."""
        await self.look(request)
        placed = await self.read(orders.read, self.repository, os.environ)
        runs = (await self.read(list_runs, self.repository)).runs
        document = queue_document(placed, runs)
        if wants_json(request):
            return JSONResponse(document.model_dump(mode="json", by_alias=True))
        addresses = {name: address for (_, name), address in (await self.read(self.addresses)).items()}
        lines = {line.name: line for line in runs}
        closed = [one for one in document.orders if one.closed_at is not None]
        waits = [one for one in closed if _waits(lines.get(_name_of(one.run)))]
        return self.page(
            request,
            "queue.html",
            tab="/queue",
            still=[one for one in document.orders if one.closed_at is None],
            waits=waits,
            closed=[one for one in closed if one not in waits][-_SHOWN_CLOSED:][::-1],
            asks={one.id: one.placed.options.approve for one in placed},
            lines=lines,
            at_work={line.issue: name for name, line in lines.items() if line.live},
            addresses=addresses,
            gates=GATES,
            begun="worker" in request.query_params,
        )

    async def change_queue(self, request: Request) -> Response:
        """Order issues, or change orders."""
        fields = await fields_of(request)
        if (refused := self.foreign(request, fields)) is not None:
            return refused
        try:
            found = await self.act_on(self._change, fields)
        except UserError as error:
            return self.error(request, error, back="/queue")
        if wants_json(request):
            return JSONResponse(queue_document(found).model_dump(mode="json", by_alias=True))
        return RedirectResponse("/queue?worker=starting" if "work" in fields else "/queue", 303)

    def _change(self, fields: Mapping[str, str]) -> Sequence[Order]:
        if "work" in fields:
            detached.work(self.repository.worktree)
            return orders.read(self.repository, os.environ)
        names, what = fields.get("names", "").replace(",", " ").split(), fields.get("do", "add")
        if not names:
            raise UserError("No issue is named. Write its id, as GAL-39; several with spaces between.", Reason.USAGE)
        if what in _CHANGES:
            return orders.change(self.repository, os.environ, names, what)
        words = RunWords(approve=tuple(gate for gate in GATES if f"gate-{gate}" in fields))
        return ordering.order(self.repository, os.environ, names, words, via="console")


def _name_of(run: str | None) -> str:
    """Return the name of a run that an order came to."""
    return (run or "").rpartition("/")[2]


def _waits(line: RunLine | None) -> bool:
    """Return whether a run waits for a person's word."""
    return line is not None and not line.live and line.outcome is Outcome.PARKED and line.reason in ASKED
