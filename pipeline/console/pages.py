"""Shows runs: each page has what a command prints, and its JSON document for a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.responses import JSONResponse, RedirectResponse, Response

from pipeline.console.files import Files
from pipeline.console.frame import wants_json
from pipeline.console.looks import look_at
from pipeline.console.patches import files_of, tests_of
from pipeline.outcomes import FINAL, Outcome, Reason
from pipeline.runs.roster import Roster
from pipeline.runs.store import WORKFLOW, key_of_run
from pipeline.service.documents import title_of
from pipeline.service.journal_lines import log_line
from pipeline.service.live_view import live_view
from pipeline.service.patches import diff_run
from pipeline.service.run_list import as_json, list_runs
from pipeline.service.run_status import ShowDocument, log_document

if TYPE_CHECKING:
    from starlette.requests import Request

    from pipeline.service.live_view import LiveView
    from pipeline.service.patches import DiffDocument
    from pipeline.service.run_list import RunLine
    from pipeline.service.run_status import LogDocument

_SHOWN_AT_FIRST: Final = 50
ASKED: Final = frozenset({Reason.APPROVAL, Reason.INPUT})
"""Why a run waits for a person's word."""
_GOOD: Final = frozenset({Outcome.COMPLETED, Outcome.COMPLETED_WITH_BLOCKERS})


class Pages(Files):
    """The runs, as they are."""

    async def runs(self, request: Request) -> Response:
        """Show all runs: those that wait for a person first."""
        await self.look(request)
        document = await self.read(list_runs, self.repository)
        if wants_json(request):
            return JSONResponse(as_json(document))
        groups: dict[str, list[tuple[str, Any]]] = {"waits": [], "works": [], "rests": [], "over": []}
        addresses = await self.read(self.addresses)
        for line in document.runs:
            groups[group_of(line)].append((addresses.get((line.worktree, line.name), ""), line))
        everything = "all" in request.query_params
        cut = len(groups["over"]) - _SHOWN_AT_FIRST
        if not everything and cut > 0:
            del groups["over"][_SHOWN_AT_FIRST:]
        shown = [(line.worktree, line.name) for lines in groups.values() for _, line in lines]
        titles = await self.read(lambda: {one: title_of(Path(one[0]) / WORKFLOW / one[1]) for one in shown})
        cut = 0 if everything else max(cut, 0)
        return self.page(request, "runs.html", groups=groups, runs=document.runs, titles=titles, cut=cut)

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

    async def named(self, request: Request) -> tuple[Path, dict[str, Any]]:
        """Return the folder of the run that a request names, and what every page of it shows."""
        roster, folder = await self.read(self.folder_of, str(request.path_params["key"]))
        return folder, self.of_run(roster, folder, await self.read(live_view, folder))

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
            return JSONResponse(look.json)
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
        key = str(request.path_params["key"])
        task = request.query_params.get("task")
        roster, folder = await self.read(self.folder_of, key)
        document: DiffDocument = await self.read(
            diff_run, self.repository, roster.spoken(folder), task=task, stat=False
        )
        if wants_json(request):
            return JSONResponse(document.model_dump(mode="json", by_alias=True))
        look = await self.read(look_at, folder, self.repository)
        view = look.view
        tasks = look.document.tasks if isinstance(look.document, ShowDocument) else ()
        tests = tests_of(tasks)
        files, left_out = files_of(document.files, document.patch or "", tests)
        of_run = self.of_run(roster, folder, view)
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
        key = str(request.path_params["key"])
        roster, folder = await self.read(self.folder_of, key)
        document: LogDocument = await self.read(log_document, folder)
        if wants_json(request):
            return JSONResponse(document.model_dump(mode="json", by_alias=True))
        view = await self.read(live_view, folder)
        lines = [log_line(line) for line in document.lines]  # pyright: ignore[reportArgumentType]
        of_run = self.of_run(roster, folder, view)
        return self.page(request, "log.html", **of_run, lines=lines)


def acts_of(view: LiveView) -> tuple[tuple[str, str], ...]:
    """Return what a person can do with a run that stands so, and the words for it; answers have a page."""
    if view.live:
        return (("stop", "Stop it"),)
    if view.outcome in _GOOD:
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
