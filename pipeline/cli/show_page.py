"""The page that `show` prints of a run, and where it is kept, so that a run that rests is shown at once.

A page follows from the files of the run, from what the run is called, and from where somebody stands, since its
commands are typed and its paths opened there. Only the fold makes pages.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.cli.text import columned, first_rows
from pipeline.runs.lease import FileLease
from pipeline.service.run_cache import RunCache
from pipeline.terminal import paint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.runs.roster import Roster
    from pipeline.terminal import Colour

_LINES: Final = 20
_MOST_PAGES: Final = 30
_MOST_FILES: Final = 5000

TICK_S: Final = 0.02
"""What changes twice within a tick of the file system's clock may look the same: so new a page is not kept."""

Rows = list[tuple[str, str]]
State = tuple[str, "Colour | None", str]
"""How a run stands: a word, its colour, and what follows."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """How a run stands, what matters most first; of each group so much is shown as fits into 20 lines."""

    title: str
    state: State
    head: Rows
    groups: list[Rows]
    following: Rows
    rest: str


def page_text(page: Page, width: int | None = None) -> str:
    """Return a page as lines."""
    rows = [("state", painted(page.state)), *page.head]
    room = _LINES - 2 - len(columned([*rows, *page.following], width))
    for place, group in enumerate(page.groups):
        fitting = first_rows(group, max(room - (len(page.groups) - place - 1), 1), width)
        taken = len(columned(fitting, width))
        if taken > room:
            break
        rows += fitting
        room -= taken
    return "\n".join([page.title, *columned([*rows, *page.following, ("rest", page.rest)], width)])


def painted(state: State) -> str:
    """Return how a run stands, in its colour."""
    word, colour, follows = state
    return paint(word, colour) + follows


def page_of_run(folder: Path, roster: Roster) -> Page:
    """Return the page of a run: as it was kept where nothing has changed since, else from its journal.

    Args:
        folder: Of the run, in any worktree.
        roster: Seen from where somebody stands, who is advised.

    Raises:
        UserError: the run is damaged.
    """
    kept = RunCache("pages", roster.repository.common_dir, (field.name for field in fields(Page)), _MOST_PAGES)
    facts = _facts(folder, roster)
    found = kept.get(folder, facts, _kept_page)
    if found is not None:
        return found
    from pipeline.cli.show_text import page_of  # noqa: PLC0415  (heavy; most pages are kept)
    from pipeline.service.run_status import show_run  # noqa: PLC0415  (the same)

    document = show_run(folder, roster.repository)
    page = page_of(document)
    if facts is not None and document.landed is not False:  # how it is merged follows from other files
        kept.put(folder, facts, asdict(page))
        kept.save()
    return page


def _kept_page(said: dict[str, Any]) -> Page:
    word, colour, follows = said["state"]
    return Page(
        title=said["title"],
        state=(word, colour, follows),
        head=_rows(said["head"]),
        groups=[_rows(group) for group in said["groups"]],
        following=_rows(said["following"]),
        rest=said["rest"],
    )


def _rows(said: list[list[str]]) -> Rows:
    return [(label, text) for label, text in said]


def _facts(folder: Path, roster: Roster) -> list[str] | None:
    """Return what the page of a run follows from; None where it may be another one at any moment."""
    if FileLease.is_held(folder):
        return None
    found: list[tuple[str, int, int, int, int, int, int]] = []
    newest = 0
    try:
        for path, said in _below(str(folder)):
            if len(found) >= _MOST_FILES:
                return None
            newest = max(newest, said.st_ctime_ns)
            times = (said.st_size, said.st_mtime_ns, said.st_ctime_ns)
            found.append((path, said.st_mode, said.st_dev, said.st_ino, *times))
    except OSError:  # something is not to be looked into, or has just gone
        return None
    if not 0 < newest < time.time_ns() - TICK_S * 1e9:
        return None
    digest = hashlib.sha256(repr(sorted(found)).encode("utf-8", "surrogateescape"))
    return [digest.hexdigest(), roster.spoken(folder), str(roster.repository.worktree), str(Path.cwd())]


def _below(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [folder]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for entry in found:
                yield entry.path, entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
