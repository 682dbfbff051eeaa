"""Shows runs, their files and the issues: each page has what a command prints, and its JSON document for a program.

Runs of other machines are looked up beside the pages: the hub of a fleet may take its time to answer.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import anyio
from anyio import to_thread
from pydantic import TypeAdapter, ValidationError
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from pipeline.app.at_hub import Elsewhere, runs_elsewhere
from pipeline.app.documents import DispatchLine, title_of
from pipeline.app.explanation import ExplainDocument, Mistake, explain_run, mistakes_of
from pipeline.app.issue_records import IssueDocument, IssueListDocument, claims_of, detail_of, record_of
from pipeline.app.journal_lines import log_line
from pipeline.app.live_view import LiveView, live_view
from pipeline.app.run_list import RunLine, as_json, list_runs
from pipeline.app.run_result import RecipeDocument, show_recipe_run
from pipeline.app.run_status import DiffDocument, LogDocument, ShowDocument, diff_run, log_document, show_run
from pipeline.characters import visible
from pipeline.config.sources import tracker_folder
from pipeline.errors import UserError
from pipeline.faces.console.frame import Frame, wants_json
from pipeline.faces.console.patches import files_of, tests_of
from pipeline.faces.console.picture import TALL, WIDE, drawn, way_of
from pipeline.matrix.routing.matrix import MATRIX, steps_of
from pipeline.matrix.routing.plain_words import routed_words
from pipeline.outcomes import ASKED, COMPLETED, FINAL, Reason
from pipeline.queue.orders import fleet_for
from pipeline.run.gates import WAYS_BACK, gate_of
from pipeline.run.recipe_run import load_run
from pipeline.run.records import TooLargeError, read_record
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster
from pipeline.run.store import WORKFLOW, key_of_run
from todo import FolderSource, Tracker, TrackerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from markupsafe import Markup
    from starlette.requests import Request

    from pipeline.repo import Repository
    from pipeline.vocabulary import Signal


_PAUSE_S: Final = 10.0
_PATIENCE_S: Final = 2.0
"""How long a page waits for the first answer of a hub, which may take its time."""


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


@dataclass(frozen=True)
class Look:
    """All that a run's page shows.

    Args:
        view: How it stands at this moment.
        document: What `show --json` prints of it.
        decisions: What `explain --json` prints; None of a recipe's own steps.
        pictures: Where it stands on its way, for a wide page and for a narrow one.
        ways: What can follow the step that it is at: signal, what the signal says, where it goes.
    """

    view: LiveView
    document: ShowDocument | RecipeDocument
    decisions: ExplainDocument | None = None
    pictures: tuple[Markup, ...] = ()
    ways: tuple[tuple[str, str, str], ...] = ()

    @cached_property
    def mistakes(self) -> tuple[Mistake, ...]:
        """Return what agents did wrong."""
        return tuple(mistakes_of(self.decisions)) if self.decisions is not None else ()


def look_at(folder: Path, here: Repository) -> Look:
    """Return what the page of a run shows.

    Raises:
        UserError: the run is damaged.
    """
    run, view = load_run(folder, driving=False), live_view(folder)
    if not isinstance(run, Run):
        return Look(view, show_recipe_run(folder, here))
    way = way_of(run)
    return Look(
        view,
        show_run(folder, here),
        explain_run(folder, here),
        (drawn(way, WIDE, "wide"), drawn(way, TALL, "tall")),
        _ways(run),
    )


def _ways(run: Run) -> tuple[tuple[str, str, str], ...]:
    at, gate = run.state.trunk.step, gate_of(run)
    if run.state.has_ended or run.state.beside:
        return ()
    return tuple(
        (row.signal.value, row.says + (f" ({row.given.value})" if row.given else ""), routed_words(row.action, at))
        for row in MATRIX
        if at in steps_of(row) and row.step is not None and _is_open(row.signal, gate)
    )


def _is_open(signal: Signal, gate: str | None) -> bool:
    """Return whether a signal can come: a gate is not sent back further than to what was there before it."""
    _, rejected, to = signal.value.partition("REJECTED_TO_")
    return gate is None or not rejected or to.lower() in WAYS_BACK[gate]


_LIMIT: Final = 2 * 1024 * 1024
"""Bytes of a file that is shown; who wants more has the file."""
_OF_DISPATCH: Final = {
    "report.raw": "What it answered, as it came",
    "prompt.md": "What it was asked",
    "result.json": "What came of it",
}
_KEPT: Final = TypeAdapter(tuple[dict[str, str], ...])
"""What the gate says of the changes that it refused, with the files that keep them."""


@dataclass(frozen=True)
class Text:
    """A file as it is shown: its name in the run folder, what it is, what is in it, and whether it is shown at once."""

    name: str
    words: str
    text: str
    matters: bool = True

    @property
    def is_markdown(self) -> bool:
        """Return whether it is laid out as Markdown."""
        return self.name.endswith(".md")


def _dispatches(document: object) -> tuple[DispatchLine, ...]:
    return document.dispatches if isinstance(document, ShowDocument) else ()


def _texts(folder: Path, asked: DispatchLine) -> Iterator[Text]:
    for name, words in _OF_DISPATCH.items():
        path = f"dispatches/{asked.dispatch}/{name}"
        if (text := _there(folder, path)) is not None:
            yield Text(path, words, text, matters=name == "report.raw")
    if asked.quarantine is None:
        return
    try:
        kept = _KEPT.validate_json(_there(folder, f"{asked.quarantine}/violations.json") or "")
    except ValidationError:  # cut off by a crash, or a stranger's
        return
    contents = {one.get("path"): one.get("content", "") for one in kept}
    for bad in asked.violations:
        name = contents.get(bad.path, "")
        if name.isdecimal() and (text := _there(folder, f"{asked.quarantine}/{name}")) is not None:
            yield Text(f"{asked.quarantine}/{name}", f"What it made of {bad.path}, which was refused", text)


def _there(folder: Path, name: str) -> str | None:
    try:
        return text_of(folder, name)
    except UserError:
        return None


def text_of(folder: Path, name: str) -> str:
    """Return a file of a run as text, with what is hidden in it visible.

    Raises:
        UserError: it is larger than what is shown, or is not there any more.
    """
    try:
        content = read_record(folder, name, _LIMIT)
    except TooLargeError:
        raise UserError(f"{name} is too large to be shown. It is in {folder}.", Reason.USAGE) from None
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror}.", Reason.ISSUE_NOT_FOUND) from None
    return visible(content.decode("utf-8", "replace"), keep="\n\t")


_SHOWN_AT_FIRST: Final = 50


def acts_of(view: LiveView) -> tuple[tuple[str, str], ...]:
    """Return what a person can do with a run that stands so, and the words for it; answers have a page."""
    if view.live:
        return (("stop", "Stop it"),)
    if view.outcome in COMPLETED:
        return (("land", "Put it onto its base"),)
    if is_over(view.status, view.reason):
        return ()
    go_on = () if view.reason in ASKED else (("resume", "Go on"),)
    return (*go_on, ("abandon", "Give it up"))


def state_seen(view: LiveView) -> str:
    """Return what a form says of how a run stood when it was looked at."""
    return f"{view.lines[-1].epoch if view.lines else 0} {view.status}"


def address_of(roster: Roster, folder: Path) -> str:
    """Return the address of a run's page."""
    return f"/runs/{quote(roster.spoken(folder).replace('/', '~'), safe='~@')}"


def is_over(status: str, reason: Reason | None) -> bool:
    """Return whether a run that stands so can never go on, or is nobody's concern any more."""
    return reason == Reason.ABANDONED or status in {*FINAL, "gone", "damaged"}


def group_of(line: RunLine) -> str:
    """Return where a run stands among the runs."""
    if line.gate_place:
        return "waits"
    if line.live:
        return "works"
    return "over" if is_over(line.status, line.reason) else "rests"


GATES: Final = ("plan", "split", "commit")
"""Where an issue that is queued on a page can wait for a person."""


class Pages(Frame):
    """The runs, their files, and the tracker, as they are."""

    @cached_property
    def others(self) -> OtherMachines:
        """Return what is known of other machines."""
        return OtherMachines(self.repository)

    async def named(self, request: Request) -> tuple[Path, dict[str, Any]]:
        """Return the folder of the run that a request names, and what every page of it shows."""
        roster, folder = await self.read(self.folder_of, str(request.path_params["key"]))
        return folder, self.of_run(roster, folder, await self.read(live_view, folder))

    async def file(self, request: Request) -> Response:
        """Show a file of a run; who does not ask for a page gets it as plain text."""
        folder, of_run = await self.named(request)
        name = str(request.path_params["name"])
        document = (await self.read(look_at, folder, self.repository)).document
        outcomes = (step.outcome for step in getattr(document, "steps", ()))
        asked = (f"dispatches/{one.dispatch}/{each}" for one in _dispatches(document) for each in _OF_DISPATCH)
        if name not in {*getattr(document, "artifacts", ()), *outcomes, *asked}:
            raise UserError(f"{folder.name} has no file {name!r}.", Reason.ISSUE_NOT_FOUND)
        text = await self.read(text_of, folder, name)
        if "raw" in request.query_params or "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse(text)
        return self.page(request, "files.html", **of_run, leaf=name, texts=[Text(name, "", text)])

    async def dispatch(self, request: Request) -> Response:
        """Show what an agent was asked, what it answered, and what was refused of it."""
        folder, of_run = await self.named(request)
        name = str(request.path_params["name"])
        document = (await self.read(look_at, folder, self.repository)).document
        asked = next((one for one in _dispatches(document) if one.dispatch == name), None)
        if asked is None:
            raise UserError(f"{folder.name} has no dispatch {name!r}.", Reason.ISSUE_NOT_FOUND)
        texts = await self.read(lambda: list(_texts(folder, asked)))
        return self.page(request, "files.html", **of_run, leaf=name, asked=asked, texts=texts)

    async def runs(self, request: Request) -> Response:
        """Show all runs: those that wait for a person first."""
        await self.look(request)
        document = await self.read(list_runs, self.repository)
        if wants_json(request):
            return JSONResponse(as_json(document))
        groups: dict[str, list[tuple[str, Any]]] = {"waits": [], "works": [], "rests": [], "over": []}
        addresses = await self.read(self.addresses)
        elsewhere, hub_says = await self.others.runs()
        gone_on = {f"{one.line.worktree}/{one.line.name}" for one in elsewhere}
        for line in document.runs:
            if not gone_on or key_of_run(Path(line.worktree) / WORKFLOW / line.name) not in gone_on:
                groups[group_of(line)].append((addresses.get((line.worktree, line.name), ""), line))
        hosts = {(one.line.worktree, one.line.name): one.host or "another machine" for one in elsewhere}
        for one in elsewhere:
            groups[group_of(one.line)].append(("", one.line))
        everything = "all" in request.query_params
        cut = len(groups["over"]) - _SHOWN_AT_FIRST
        if not everything and cut > 0:
            del groups["over"][_SHOWN_AT_FIRST:]
        shown = [(line.worktree, line.name) for lines in groups.values() for _, line in lines]
        titles = await self.read(lambda: {one: title_of(Path(one[0]) / WORKFLOW / one[1]) for one in shown})
        cut = 0 if everything else max(cut, 0)
        runs = [*document.runs, *elsewhere]
        return self.page(
            request, "runs.html", groups=groups, runs=runs, titles=titles, cut=cut, hosts=hosts, hub_says=hub_says
        )

    def addresses(self) -> dict[tuple[str, str], str]:
        """Return the address of each run, by its worktree and name."""
        roster = Roster(self.repository)
        return {(str(one.worktree.path), one.name): address_of(roster, one.folder) for one in roster.runs}

    def folder_of(self, key: str) -> tuple[Roster, Path]:
        """Return the folder of the run that an address names.

        Raises:
            UserError: there is no such run.
        """
        roster = Roster(self.repository)
        return roster, roster.find(key.replace("~", "/")).folder

    async def run(self, request: Request) -> Response:
        """Show one run."""
        key = str(request.path_params["key"])
        roster, folder = await self.read(self.folder_of, key)
        address = await self.read(address_of, roster, folder)
        if request.url.path != address and f"/runs/{quote(key)}" != address:
            return RedirectResponse(address, 303)
        await self.look(request)
        look = await self.read(look_at, folder, self.repository)
        if wants_json(request):
            return JSONResponse(look.document.model_dump(mode="json", by_alias=True))
        name = "run.html" if isinstance(look.document, ShowDocument) else "recipe.html"
        over = is_over(look.view.status, look.view.reason)
        of_run = self.of_run(roster, folder, look.view)
        return self.page(request, name, **of_run, look=look, run=look.document, over=over)

    def of_run(self, roster: Roster, folder: Path, view: LiveView) -> dict[str, Any]:
        """Return what every page of a run shows of it."""
        return {
            "address": address_of(roster, folder),
            "name": roster.spoken(folder),
            "stream": key_of_run(folder),
            "view": view,
            "has_packet": view.reason in ASKED,
            "acts": () if self.read_only else acts_of(view),
            "state_seen": state_seen(view),
        }

    async def diff(self, request: Request) -> Response:
        """Show the work of a run, with RED and GREEN beside each test."""
        task = request.query_params.get("task")
        folder, of_run = await self.named(request)
        document: DiffDocument = await self.read(diff_run, self.repository, of_run["name"], task=task, stat=False)
        if wants_json(request):
            return JSONResponse(document.model_dump(mode="json", by_alias=True))
        look = await self.read(look_at, folder, self.repository)
        tasks = look.document.tasks if isinstance(look.document, ShowDocument) else ()
        tests = tests_of(tasks)
        files, left_out = files_of(document.files, document.patch or "", tests)
        return self.page(
            request,
            "diff.html",
            **of_run,
            look=look,
            files=files,
            left_out=left_out,
            tests=tests,
            tasks=tasks,
            task=task,
        )

    async def log(self, request: Request) -> Response:
        """Show the journal of a run."""
        folder, of_run = await self.named(request)
        document: LogDocument = await self.read(log_document, folder)
        if wants_json(request):
            return JSONResponse(document.model_dump(mode="json", by_alias=True))
        lines = [log_line(line) for line in document.lines]  # pyright: ignore[reportArgumentType]
        return self.page(request, "log.html", **of_run, lines=lines)

    async def issues(self, request: Request) -> Response:
        """Show the issues by their state, and which run has one."""
        issues, claims = await self.read(self._issues)
        folder = tracker_folder(self.repository.worktree)
        records = [record_of(issue, folder, claims) for issue in issues]
        if wants_json(request):
            return JSONResponse(asdict(IssueListDocument(issues=tuple(records))))
        addresses = {name: address for (_, name), address in (await self.read(self.addresses)).items()}
        done = {one.id for one in records if one.status == "Done"}
        columns = {
            status: [one for one in records if one.status == status] for status in ("Todo", "In Progress", "Done")
        }
        return self.page(request, "issues.html", tab="/issues", columns=columns, addresses=addresses, done=done)

    async def issue(self, request: Request) -> Response:
        """Show one issue with its runs."""
        wanted, folder = str(request.path_params["id"]), tracker_folder(self.repository.worktree)
        issues, claims = await self.read(self._issues)
        found = next((one for one in issues if one.id.lower() == wanted.lower()), None)
        if found is None:
            raise UserError(
                f"There is no issue {wanted} in {folder}/ of {self.repository.worktree.name}.",
                Reason.ISSUE_NOT_FOUND,
                actions=("redfirst issue list",),
            )
        record = detail_of(found, folder, claims)
        if wants_json(request):
            return JSONResponse(asdict(IssueDocument(issue=record)))
        addresses = await self.read(self.addresses)
        document = await self.read(list_runs, self.repository)
        runs = [(addresses.get((one.worktree, one.name), ""), one) for one in document.runs if one.issue == record.id]
        status = {one.id: one.status.value for one in issues}
        waits = [one for one in record.depends_on if status.get(one) != "Done"]
        return self.page(
            request, "issue.html", tab="/issues", issue=record, runs=runs, known=status, waits=waits, gates=GATES
        )

    def _issues(self) -> tuple[list[Any], Mapping[str, Any]]:
        top = self.repository.worktree
        folder = top / tracker_folder(top)
        if not folder.is_dir():
            return [], {}
        try:
            return list(Tracker(FolderSource(folder)).issues()), claims_of(top)
        except TrackerError as error:
            raise UserError(str(error), Reason.TRACKER_INVALID, actions=("redfirst issue lint",)) from error
