"""Shows the issues: all on one page, and a page for each."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse

from pipeline.config.sources import tracker_folder
from pipeline.console.frame import wants_json
from pipeline.console.pages import Pages
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.service.issue_records import IssueDocument, IssueListDocument, claims_of, detail_of, record_of
from pipeline.service.run_list import list_runs
from todo import FolderSource, Tracker, TrackerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

GATES: Final = ("plan", "split", "commit")
"""Where an issue that is queued on a page can wait for a person."""


class Issues(Pages):
    """The pages of runs, and those of the tracker."""

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
