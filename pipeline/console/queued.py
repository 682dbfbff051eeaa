"""Shows the queue: what is ordered, what became of it, and the forms that change it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal

from starlette.responses import JSONResponse, RedirectResponse

from pipeline.console.acts import fields_of
from pipeline.console.edits import Edits
from pipeline.console.frame import wants_json
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue import orders
from pipeline.queue.lines import RunWords
from pipeline.service import detached, ordering
from pipeline.service.queue_document import queue_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from pipeline.queue.order import Order

_CHANGES: Final[tuple[Literal["drop", "hold", "release"], ...]] = ("drop", "hold", "release")
_GATES: Final = ("plan", "split", "commit")
_SHOWN_CLOSED: Final = 20


class Queued(Edits):
    """Runs, and what is to be run."""

    async def queue(self, request: Request) -> Response:
        """Show the orders: those that are open, and the last ones that are over."""
        await self.look(request)
        document = queue_document(await self.read(orders.read, self.repository, os.environ))
        if wants_json(request):
            return JSONResponse(document.model_dump(mode="json", by_alias=True))
        addresses = {name: address for (_, name), address in (await self.read(self.addresses)).items()}
        still = [one for one in document.orders if one.closed_at is None]
        closed = [one for one in document.orders if one.closed_at is not None][-_SHOWN_CLOSED:]
        return self.page(
            request, "queue.html", tab="/queue", still=still, closed=closed[::-1], addresses=addresses, gates=_GATES
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
        return RedirectResponse("/queue", 303)

    def _change(self, fields: Mapping[str, str]) -> Sequence[Order]:
        if "work" in fields:
            detached.work(self.repository.worktree)
            return orders.read(self.repository, os.environ)
        names, what = fields.get("names", "").replace(",", " ").split(), fields.get("do", "add")
        if not names:
            raise UserError("No issue is named. Write its id, as GAL-39; several with spaces between.", Reason.USAGE)
        if what in _CHANGES:
            return orders.change(self.repository, os.environ, names, what)
        words = RunWords(approve=tuple(gate for gate in _GATES if f"gate-{gate}" in fields))
        return ordering.order(self.repository, os.environ, names, words, via="console")
