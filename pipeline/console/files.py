"""Shows files of a run: an artifact, and what an agent was asked, answered and was refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError
from starlette.responses import PlainTextResponse

from pipeline.console.frame import Frame
from pipeline.console.looks import look_at
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.policy.characters import visible
from pipeline.runs.records import TooLargeError, read_record
from pipeline.service.run_status import ShowDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from pipeline.service.documents import DispatchLine

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


class Files(Frame):
    """The files of runs. What is shown of a run beside them is said by `named`."""

    async def named(self, request: Request) -> tuple[Path, dict[str, Any]]:
        """Return the folder of the run that a request names, and what every page of it shows."""
        raise NotImplementedError

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
