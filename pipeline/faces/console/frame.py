"""Makes pages and errors from templates; one reader of files works at a time, beside the server's loop."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from jinja2 import Environment, FileSystemLoader
from starlette.responses import HTMLResponse, JSONResponse, Response

from pipeline.app.documents import TaskShown, finding_text
from pipeline.faces.console.patches import TestFacts, tests_of
from pipeline.faces.console.texts import field_text, linked, markdown_lines, plain_lines, printed, shown
from pipeline.outcomes import Reason
from pipeline.progress import counted, duration
from pipeline.reset_times import moment_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from pipeline.errors import UserError
    from pipeline.faces.console.guard import Access
    from pipeline.faces.console.live import Hub
    from pipeline.repo import Repository

    T = TypeVar("T")

HERE: Final = Path(__file__).parent
_STATUS: Final = {
    Reason.STALE: 409,
    Reason.LOCKED: 409,
    Reason.CLAIMED_ELSEWHERE: 409,
    Reason.ISSUE_NOT_FOUND: 404,
    Reason.RECIPE_NOT_FOUND: 404,
}
"""The status of an answer by why it is none; others are 400."""
_NOT_FOUND: Final = 404
_TABS: Final = (("/", "Runs"), ("/issues", "Issues"), ("/queue", "Queue"))


def wants_json(request: Request) -> bool:
    """Return whether a program asks, which wants the documents of the command line."""
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


class Frame:
    """What the pages are made from; everything that reads files does so one after the other, beside the server's loop.

    Args:
        repository: Seen from where the console was started.
        access: Whose forms have which token.
        hub: What hands on events.
        read_only: Whether nothing can be changed here.
    """

    def __init__(self, repository: Repository, access: Access, hub: Hub, *, read_only: bool) -> None:
        self.repository, self.access, self.hub, self.read_only = repository, access, hub, read_only
        self._one = CapacityLimiter(1)
        self._templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            finalize=printed,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters: dict[str, Any] = self._templates.filters
        filters.update(shown=shown, markdown=markdown_lines, plain=plain_lines, linked=linked, finding=finding_text)
        filters.update(field_text=field_text, tests=_tests)
        filters.update(duration=duration, counted=counted, ago=ago, since=since, moment=moment_words)

    async def look(self, request: Request) -> None:
        """Read what has happened until now: a page of this request shows it, and is told what comes after it."""
        await self.hub.look()
        request.state.since = self.hub.last

    async def read(self, call: Callable[..., T], *args: object, **more: object) -> T:
        """Return what a function that reads files returns."""
        return await to_thread.run_sync(lambda: call(*args, **more), limiter=self._one)

    def page(self, request: Request, template: str, *, status: int = 200, tab: str = "/", **values: object) -> Response:
        """Return a page."""
        session = getattr(request.state, "session", None)
        said: dict[str, Any] = {
            "project": self.repository.worktree.name,
            "tabs": _TABS,
            "tab": tab,
            "read_only": self.read_only,
            "token": self.access.token_for(session) if session is not None else "",
            "since": getattr(request.state, "since", self.hub.last),
            **values,
        }
        return HTMLResponse(self._templates.get_template(template).render(said), status)

    def error(self, request: Request, error: UserError, back: str = "", words: str = "") -> Response:
        """Return what is wrong, and what can be done, as a page or as a document; *words* were written in vain."""
        status = status_of(error)
        if wants_json(request):
            return JSONResponse({"schema": "redfirst.error/1", "ok": False, "error": error.facts}, status)
        key = "" if status == _NOT_FOUND else str(request.path_params.get("key", ""))
        return self.page(request, "error.html", status=status, error=error, back=back, key=key, words=words)

    def locked(self, request: Request) -> Response:
        """Return what somebody sees who is not let in."""
        words = "The terminal in which the console runs has a link that opens it, once for each browser."
        if wants_json(request):
            return JSONResponse({"schema": "redfirst.error/1", "ok": False, "error": {"message": words}}, 401)
        return self.page(request, "locked.html", status=401, title="Not let in", words=words, go_on=False)


def _tests(task: TaskShown) -> list[TestFacts]:
    return tests_of([task])


def status_of(error: UserError) -> int:
    """Return the status of an answer that is none."""
    unknown = error.reason is Reason.USAGE and "is not a run of this repository" in error.message
    return 404 if unknown else _STATUS.get(error.reason, 400)


def since(moment: datetime | str) -> float:
    """Return the seconds since a moment."""
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return max(0.0, (datetime.now(UTC) - at.astimezone(UTC)).total_seconds())


def ago(seconds: float | None) -> str:
    """Return an age in its largest unit."""
    if seconds is None:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"
