"""Does what a person asks for in a form of ours: what a command would do, to what they saw."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

import anyio
from anyio import CapacityLimiter, to_thread
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse

from pipeline.console.comments import feedback_of, words_of
from pipeline.console.frame import status_of, wants_json
from pipeline.console.guard import TOKEN
from pipeline.console.issues import Issues
from pipeline.console.pages import address_of, state_seen
from pipeline.console.patches import files_of, tests_of
from pipeline.errors import UserError
from pipeline.git import GitError
from pipeline.outcomes import Reason
from pipeline.runs.gates import WAYS_BACK
from pipeline.runs.roster import Roster, seen_from
from pipeline.service import detached
from pipeline.service.answer import Approval, Rejection, Reply, abandon, answerer, record
from pipeline.service.attend import attend
from pipeline.service.explanation import explain_run, mistakes_of
from pipeline.service.live_view import live_view
from pipeline.service.packets import QUESTION, packet
from pipeline.service.stopping import stop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import TypeVar

    from starlette.requests import Request
    from starlette.responses import Response

    from pipeline.git import Repository
    from pipeline.runs.gates import GateAnswer
    from pipeline.service.packets import Packet
    from pipeline.service.start import Act

    Fields = Mapping[str, str]
    T = TypeVar("T")

_BODY_LIMIT: Final = 2 * 1024 * 1024
_MOST_FIELDS: Final = 20_000
"""Of one form: each line of the texts and of the changes that a page shows has a place for a comment."""
_ATTEND_S: Final = 60.0
"""Seconds between two looks for gates that nobody answered in time."""


class Acts(Issues):
    """The pages, and what changes runs."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._acting = CapacityLimiter(1)
        self.acts: dict[str, Callable[[Path, Fields], object]] = {
            "approve": self._approve,
            "reject": self._reject,
            "answer": self._answer,
            "stop": self._stop,
            "resume": self._resume,
            "abandon": self._abandon,
            "land": self._land,
        }

    async def packet(self, request: Request) -> Response:
        """Show what a run waits for, and the form that answers it."""
        key = str(request.path_params["key"])
        roster, folder = await self.read(self.folder_of, key)
        gate = request.query_params.get("gate")
        await self.look(request)
        at = None if gate == QUESTION else gate
        view = await self.read(live_view, folder)
        of_run, seen = self.of_run(roster, folder, view), request.query_params.get("seen")
        try:
            found = await self.read(lambda: packet(seen_from(self.repository, folder), folder, at))
        except UserError:
            if seen is None or wants_json(request):
                raise
            return self.page(request, "moved.html", **of_run)  # what was seen there was answered
        if wants_json(request):
            return JSONResponse(found.model_dump(mode="json", by_alias=True))
        return await self._packet(request, folder, of_run, found, moved=seen not in {None, found.digest})

    async def _packet(
        self, request: Request, folder: Path, of_run: dict[str, Any], found: Packet, **said: Any
    ) -> Response:
        tests = tests_of(found.tasks)
        files, left_out = files_of(found.diff.files, found.diff.patch, tests) if found.diff is not None else ([], 0)
        approval, ways = answers_of(found.gate, found.answers)
        wrong = mistakes_of(await self.read(explain_run, folder, self.repository)) if found.gate == "commit" else ()
        return self.page(
            request,
            "packet.html",
            **of_run,
            packet=found,
            files=files,
            left_out=left_out,
            tests=tests,
            wrong=wrong,
            approval=approval,
            ways=ways,
            folder=str(folder),
            **said,
        )

    async def act(self, request: Request) -> Response:
        """Do what a form says, and go back to the run."""
        fields = await fields_of(request)
        if (refused := self.foreign(request, fields)) is not None:
            return refused
        key, what = str(request.path_params["key"]), request.url.path.rpartition("/")[2]
        roster, folder = await self.read(self.folder_of, key)
        address = address_of(roster, folder)
        try:
            done = await self.act_on(self.acts[what], folder, fields)
        except UserError as error:
            return await self._refused(request, folder, fields, error, address)
        if wants_json(request):
            said: Any = done
            return JSONResponse(said.model_dump(mode="json", by_alias=True) if said is not None else {"ok": True})
        return RedirectResponse(address, 303)

    async def _refused(
        self, request: Request, folder: Path, fields: Fields, error: UserError, address: str
    ) -> Response:
        """Return why nothing was done; what somebody wrote is shown again: where it can be sent, in the form."""
        here = seen_from(self.repository, folder)
        words = await self.read(words_of, here, folder, fields)
        if not words or wants_json(request):
            return self.error(request, error, back=address)
        found: Packet | None = None
        at = fields.get("gate")
        with suppress(UserError):  # it was answered meanwhile
            found = await self.read(packet, here, folder, None if at == QUESTION else at)
        if found is None:
            return self.error(request, error, back=address, words=words)
        of_run = (await self.named(request))[1]
        return await self._packet(request, folder, of_run, found, error=error, words=words, status=status_of(error))

    def foreign(self, request: Request, fields: Fields) -> Response | None:
        """Return the refusal of a form that is not of this session."""
        if self.access.is_token(request.state.session, fields.get(TOKEN)):
            return None
        return PlainTextResponse("This form is not of this session. Load the page again.\n", 403)

    async def act_on(self, call: Callable[..., T], *args: object) -> T:
        """Return what an act returns; one is done after the other."""
        return await to_thread.run_sync(partial(call, *args), limiter=self._acting)

    async def attend(self) -> None:
        """Do what is due where nobody answered in time, for ever: several who look do it once."""
        while True:
            with suppress(UserError, GitError, OSError):  # what cannot be looked at now is looked at the next time
                await self.act_on(lambda: attend(self.repository, datetime.now(UTC)))
            await anyio.sleep(_ATTEND_S)

    def _approve(self, folder: Path, fields: Fields) -> object:
        here = seen_from(self.repository, folder)
        answer = fields.get("answer", "")
        if feedback_of(here, folder, fields):
            raise UserError(
                "Nothing was answered: what you wrote goes along only when the run is sent back. Send it back, or take "
                "your words out and approve.",
                Reason.USAGE,
            )
        given = {"answer": answer} if answer.strip() else {}
        return self._driven(
            here, folder, Approval(answerer(here, "console"), fields.get("gate"), given, seen_of(fields))
        )

    def _reject(self, folder: Path, fields: Fields) -> object:
        here = seen_from(self.repository, folder)
        act = Rejection(
            answerer(here, "console"),
            feedback_of(here, folder, fields),
            fields.get("gate"),
            fields.get("to") or None,
            seen_of(fields),
            _proof_of(fields),
        )
        return self._driven(here, folder, act)

    def _answer(self, folder: Path, fields: Fields) -> object:
        here = seen_from(self.repository, folder)
        act = Reply(answerer(here, "console"), fields.get("answer", ""), fields.get("gate"), seen_of(fields))
        return self._driven(here, folder, act)

    def _land(self, folder: Path, fields: Fields) -> object:
        _require_state(folder, fields)
        return detached.land(Roster(self.repository).spoken(folder), self.repository.worktree)

    def _driven(self, here: Repository, folder: Path, act: Act) -> object:
        done = record(here, folder, act)
        if done.queued:
            detached.resume(folder)
        return done

    def _stop(self, folder: Path, fields: Fields) -> object:
        return stop(folder, now="now" in fields)

    def _resume(self, folder: Path, fields: Fields) -> object:
        _require_state(folder, fields)
        return detached.resume(folder)

    def _abandon(self, folder: Path, fields: Fields) -> None:
        _require_state(folder, fields)
        abandon(seen_from(self.repository, folder), folder, _unheard)


def _unheard(_: str) -> None:
    """Take what a command would say; the run's page shows it."""


def answers_of(gate: str, told: Sequence[GateAnswer]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what approving does at a gate, and where it can be sent back to, with what that does."""
    does = {word: [one.does for one in told if one.command.split()[1] == word] for word in ("approve", "reject")}
    return next(iter(does["approve"]), ""), tuple(zip(WAYS_BACK.get(gate, ()), does["reject"], strict=False))


def seen_of(fields: Fields) -> str:
    """Return what a form says was seen.

    Raises:
        UserError: it says nothing.
    """
    seen = fields.get("seen", "")
    if not seen:
        raise UserError("The form does not say what was seen. Load the page again.", Reason.STALE)
    return seen


def _proof_of(fields: Fields) -> tuple[str, str] | None:
    """Return the path and the text of a test that somebody gives with a rejection; a browser ends lines as forms do."""
    text = fields.get("proof", "").replace("\r\n", "\n")
    return (fields.get("proof_path", "").strip() or "test_proof.py", text) if text.strip() else None


def _require_state(folder: Path, fields: Fields) -> None:
    if seen_of(fields) != state_seen(live_view(folder)):
        raise UserError(f"{folder.name} stands otherwise than you saw: nothing was done. Look again.", Reason.STALE)


async def fields_of(request: Request) -> Fields:
    """Return the fields of a form.

    Raises:
        UserError: it is larger than any of ours.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _BODY_LIMIT:
            raise UserError("That is more than a form may send.", Reason.USAGE)
    found = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    return {name: values[-1].replace("\r\n", "\n") for name, values in found.items()}
