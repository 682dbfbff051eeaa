"""Lets a person edit a draft on a page, as in an editor, and checks it when it is saved."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse, RedirectResponse

from pipeline.console.acts import Acts, fields_of, seen_of
from pipeline.console.frame import status_of, wants_json
from pipeline.console.pages import address_of
from pipeline.console.texts import field_text
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.runs.roster import seen_from
from pipeline.service.draft_edit import draft_to_edit, save_edit
from pipeline.service.live_view import live_view
from pipeline.service.packets import packet

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from pipeline.console.acts import Fields
    from pipeline.service.packets import Packet


class Edits(Acts):
    """What changes runs, and the plan and tasks of those that wait."""

    async def edit(self, request: Request) -> Response:
        """Show a draft in a form."""
        folder, name = await self._meant(request, request.query_params.get("file"))
        found, text = await self.read(draft_to_edit, seen_from(self.repository, folder), folder, name)
        return await self._form(request, folder, name, text, found, found.digest)

    async def save(self, request: Request) -> Response:
        """Save a draft if it can be used; else show the form again, with what was written and why it cannot."""
        fields = await fields_of(request)
        if (refused := self.foreign(request, fields)) is not None:
            return refused
        folder, name = await self._meant(request, fields.get("file"))
        text = fields.get("text", "")
        here = seen_from(self.repository, folder)
        try:
            await self.act_on(save_edit, here, folder, name, text, seen_of(fields))
        except UserError as error:
            if wants_json(request):
                return self.error(request, error)
            return await self._again(request, folder, fields, error)
        if wants_json(request):
            found = await self.read(packet, here, folder)
            return JSONResponse(found.model_dump(mode="json", by_alias=True))
        roster, _ = await self.read(self.folder_of, str(request.path_params["key"]))
        return RedirectResponse(f"{address_of(roster, folder)}/packet", 303)

    async def _meant(self, request: Request, name: str | None) -> tuple[Path, str]:
        _, folder = await self.read(self.folder_of, str(request.path_params["key"]))
        if not name:
            raise UserError("No file is named: plan.md, or task-1.md and so on.", Reason.USAGE)
        return folder, name

    async def _again(self, request: Request, folder: Path, fields: Fields, error: UserError) -> Response:
        """Show the form again: it counts for what was seen first, or where that has gone, for what is shown instead."""
        found: Packet | None = None
        with suppress(UserError):  # it was answered meanwhile: what was written is shown, and cannot be saved
            found = await self.read(packet, seen_from(self.repository, folder), folder)
        seen = found.digest if found is not None and error.reason is Reason.STALE else fields.get("seen", "")
        return await self._form(request, folder, fields["file"], fields.get("text", ""), found, seen, error)

    async def _form(
        self,
        request: Request,
        folder: Path,
        name: str,
        text: str,
        found: Packet | None,
        seen: str,
        error: UserError | None = None,
    ) -> Response:
        roster, _ = await self.read(self.folder_of, str(request.path_params["key"]))
        view = await self.read(live_view, folder)
        files = found.files if found is not None else ()
        facts: Any = (error.details if error is not None else None) or {}
        said: dict[str, Any] = {
            **self.of_run(roster, folder, view),
            "packet": found,
            "seen": seen,
            "file": name,
            "now": next((one.text for one in files if one.name == name and one.counts), None),
            "text": field_text(text),
            "error": error,
            "problems": [{**one, "file": PurePath(one["path"]).name} for one in facts.get("problems", ())],
            "stale": error is not None and error.reason is Reason.STALE,
        }
        return self.page(request, "edit.html", status=200 if error is None else status_of(error), **said)
