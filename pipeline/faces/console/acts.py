"""Does what a person asks for in a form of ours, to what they saw: answers, edits of drafts, changes of the queue."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import parse_qs

import anyio
from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response

from pipeline.app import drivers, ordering
from pipeline.app.answer import Approval, Rejection, Reply, abandon, answerer, draft_to_edit, record, save_edit
from pipeline.app.attend import attend
from pipeline.app.drivers import stop
from pipeline.app.explanation import explain_run, mistakes_of
from pipeline.app.gate_packets import QUESTION, Packet, packet
from pipeline.app.live_view import live_view
from pipeline.app.ordering import queue_document
from pipeline.app.run_list import RunLine, list_runs
from pipeline.errors import UserError
from pipeline.faces.console.frame import status_of, wants_json
from pipeline.faces.console.guard import TOKEN
from pipeline.faces.console.pages import GATES, Pages, address_of, state_seen
from pipeline.faces.console.patches import PatchFile, files_of, tests_of
from pipeline.faces.console.texts import clipped, field_text
from pipeline.outcomes import ASKED, Outcome, Reason
from pipeline.queue import orders
from pipeline.queue.order_lines import RunWords
from pipeline.repo import GitError, Repository
from pipeline.run.gates import WAYS_BACK, GateAnswer
from pipeline.run.recipe_run import load_run
from pipeline.run.runs_of_repository import Roster, seen_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from starlette.requests import Request

    from pipeline.app.start import Act
    from pipeline.queue.orders import Order

    Fields = Mapping[str, str]
    T = TypeVar("T")


_TEXT: Final = re.compile(r"comment (?P<file>.+) (?P<line>\d{1,9})")
"""The name of a field with a comment on a line of a text: the file, and the line's number."""
_CHANGE: Final = re.compile(r"comment (?P<file>\d{1,9})(?P<place>[+-]\d{1,9})")
"""The same of the changes: which of the files, and the line as `PatchLine.place` names it."""
_LONGEST: Final = 500


def words_of(here: Repository, folder: Path, fields: Mapping[str, str]) -> str:
    """Return all that somebody wrote in a form, so that it can be shown again; nothing where they wrote nothing."""
    return "\n\n".join(filter(None, [fields.get("answer", "").strip(), feedback_of(here, folder, fields)]))


def feedback_of(here: Repository, folder: Path, fields: Mapping[str, str]) -> str:
    """Return what somebody wrote, and below it their comments with the lines that these are on."""
    said = {name: text.strip() for name, text in fields.items() if name.startswith("comment ") and text.strip()}
    parts = [fields.get("feedback", "").strip(), *_on_texts(folder, said), *_on_changes(here, folder, said, fields)]
    return "\n\n".join(filter(None, parts))


def _on_texts(folder: Path, said: Mapping[str, str]) -> Iterator[str]:
    places = [(found, said[name]) for name in said if (found := _TEXT.fullmatch(name))]
    if not places:
        return
    run = load_run(folder, driving=False)
    for found, comment in places:
        if found["file"] not in run.artifacts:
            continue
        lines = (run.folder / found["file"]).read_text(encoding="utf-8", errors="replace").split("\n")
        number = int(found["line"])
        line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        yield f"{found['file']}, line {number}: {comment}\n\n> {clipped(line, _LONGEST)}"


def _on_changes(here: Repository, folder: Path, said: Mapping[str, str], fields: Mapping[str, str]) -> Iterator[str]:
    places = [(found, said[name]) for name in said if (found := _CHANGE.fullmatch(name))]
    files = _changes(here, folder, fields.get("gate")) if places else []
    for found, comment in places:
        number = int(found["file"])
        if number >= len(files):
            continue
        lines = {line.place: line for _, hunk in files[number].hunks for line in hunk}
        line = lines.get(found["place"])
        if line is not None:
            where = f"{files[number].path}, line {line.said}"
            yield f"{where}: {comment}\n\n> {clipped(line.sign + line.text, _LONGEST)}"


def _changes(here: Repository, folder: Path, gate: str | None) -> list[PatchFile]:
    with suppress(UserError):  # it was answered meanwhile: nothing is sent back
        diff = packet(here, folder, gate).diff
        return files_of(diff.files, diff.patch, ())[0] if diff is not None else []
    return []


_BODY_LIMIT: Final = 2 * 1024 * 1024
_MOST_FIELDS: Final = 20_000
"""Of one form: each line of the texts and of the changes that a page shows has a place for a comment."""
_ATTEND_S: Final = 60.0
"""Seconds between two looks for gates that nobody answered in time."""


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


_CHANGES: Final[tuple[Literal["drop", "hold", "release"], ...]] = ("drop", "hold", "release")
_SHOWN_CLOSED: Final = 20
_TO_WHAT_WAS_SEEN: Final = frozenset({"resume", "abandon", "land"})
"""Acts that are not done to a run that stands otherwise than the page showed; answers name what they were given to."""


class Acts(Pages):
    """The pages, and all that changes something: runs, drafts of those that wait, the queue."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._acting = CapacityLimiter(1)
        self.acts: dict[str, Callable[[Repository, Path, Fields], object]] = {
            "approve": self._approve,
            "reject": self._reject,
            "answer": self._answer,
            "stop": lambda _, folder, fields: stop(folder, now="now" in fields),
            "resume": lambda _, folder, __: drivers.resume(folder),
            "abandon": self._abandon,
            "land": self._land,
        }

    async def packet(self, request: Request) -> Response:
        """Show what a run waits for, and the form that answers it."""
        gate, seen = request.query_params.get("gate"), request.query_params.get("seen")
        await self.look(request)
        at = None if gate == QUESTION else gate
        folder, of_run = await self.named(request)
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
            wrong=tuple(wrong),
            approval=approval,
            ways=ways,
            folder=str(folder),
            **said,
        )

    async def act(self, request: Request) -> Response:
        """Do what a form says, and go back to the run."""
        fields = await self._fields(request)
        key, what = str(request.path_params["key"]), request.url.path.rpartition("/")[2]
        roster, folder = await self.read(self.folder_of, key)
        address = address_of(roster, folder)
        try:
            done = await self.act_on(self._do, what, folder, fields)
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

    async def _fields(self, request: Request) -> Fields:
        """Return the fields of a form, which has to be of this session.

        Raises:
            HTTPException: it is not.
        """
        fields = await fields_of(request)
        if not self.access.is_token(request.state.session, fields.get(TOKEN)):
            raise HTTPException(403, "This form is not of this session. Load the page again.\n")
        return fields

    async def act_on(self, call: Callable[..., T], *args: object) -> T:
        """Return what an act returns; one is done after the other."""
        return await to_thread.run_sync(partial(call, *args), limiter=self._acting)

    async def attend(self) -> None:
        """Do what is due where nobody answered in time, for ever: several who look do it once."""
        while True:
            with suppress(UserError, GitError, OSError):  # what cannot be looked at now is looked at the next time
                await self.act_on(lambda: attend(self.repository, datetime.now(UTC)))
            await anyio.sleep(_ATTEND_S)

    def _do(self, what: str, folder: Path, fields: Fields) -> object:
        if what in _TO_WHAT_WAS_SEEN and seen_of(fields) != state_seen(live_view(folder)):
            raise UserError(f"{folder.name} stands otherwise than you saw: nothing was done. Look again.", Reason.STALE)
        return self.acts[what](seen_from(self.repository, folder), folder, fields)

    def _approve(self, here: Repository, folder: Path, fields: Fields) -> object:
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

    def _reject(self, here: Repository, folder: Path, fields: Fields) -> object:
        act = Rejection(
            answerer(here, "console"),
            feedback_of(here, folder, fields),
            fields.get("gate"),
            fields.get("to") or None,
            seen_of(fields),
            _proof_of(fields),
        )
        return self._driven(here, folder, act)

    def _answer(self, here: Repository, folder: Path, fields: Fields) -> object:
        act = Reply(answerer(here, "console"), fields.get("answer", ""), fields.get("gate"), seen_of(fields))
        return self._driven(here, folder, act)

    def _abandon(self, here: Repository, folder: Path, _fields: Fields) -> None:
        abandon(here, folder, lambda _: None)

    def _land(self, _here: Repository, folder: Path, _fields: Fields) -> object:
        return drivers.land(Roster(self.repository).spoken(folder), self.repository.worktree)

    def _driven(self, here: Repository, folder: Path, act: Act) -> object:
        done = record(here, folder, act)
        if done.queued:
            drivers.resume(folder)
        return done

    async def edit(self, request: Request) -> Response:
        """Show a draft in a form."""
        folder, name = await self._meant(request, request.query_params.get("file"))
        found, text = await self.read(draft_to_edit, seen_from(self.repository, folder), folder, name)
        return await self._form(request, name, text, found, found.digest)

    async def save(self, request: Request) -> Response:
        """Save a draft if it can be used; else show the form again, with what was written and why it cannot."""
        fields = await self._fields(request)
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
        return await self._form(request, fields["file"], fields.get("text", ""), found, seen, error)

    async def _form(
        self,
        request: Request,
        name: str,
        text: str,
        found: Packet | None,
        seen: str,
        error: UserError | None = None,
    ) -> Response:
        files = found.files if found is not None else ()
        facts: Any = (error.details if error is not None else None) or {}
        said: dict[str, Any] = {
            **(await self.named(request))[1],
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
        waits = [one for one in closed if _waits(lines.get((one.run or "").rpartition("/")[2]))]
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
        fields = await self._fields(request)
        try:
            found = await self.act_on(self._change, fields)
        except UserError as error:
            return self.error(request, error, back="/queue")
        if wants_json(request):
            return JSONResponse(queue_document(found).model_dump(mode="json", by_alias=True))
        return RedirectResponse("/queue?worker=starting" if "work" in fields else "/queue", 303)

    def _change(self, fields: Mapping[str, str]) -> Sequence[Order]:
        if "work" in fields:
            drivers.work(self.repository.worktree)
            return orders.read(self.repository, os.environ)
        names, what = fields.get("names", "").replace(",", " ").split(), fields.get("do", "add")
        if not names:
            raise UserError("No issue is named. Write its id, as GAL-39; several with spaces between.", Reason.USAGE)
        if what in _CHANGES:
            return orders.change(self.repository, os.environ, names, what)
        words = RunWords(approve=tuple(gate for gate in GATES if f"gate-{gate}" in fields))
        return ordering.order(self.repository, os.environ, names, words, via="console")


def _waits(line: RunLine | None) -> bool:
    """Return whether a run waits for a person's word."""
    return line is not None and not line.live and line.outcome is Outcome.PARKED and line.reason in ASKED
