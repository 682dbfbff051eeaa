"""Makes the page that `show` prints of a run, and keeps it, so that a run that rests is shown at once.

A page follows from the files of the run, from what the run is called, and from where somebody stands, since its
commands are typed and its paths opened there. Only the fold makes pages.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.cli.text import columned, first_rows
from pipeline.runs.lease import FileLease
from pipeline.service.text_cache import below, keep_text, kept_record
from pipeline.terminal import paint

if TYPE_CHECKING:
    from pipeline.runs.roster import Roster
    from pipeline.terminal import Colour

_LINES: Final = 20
_MOST_PAGES: Final = 30

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
    began = time.time_ns()
    live = FileLease.is_held(folder)
    kept = None if live else kept_record("pages", _key(folder, roster), _kept_page)
    if kept is not None:
        return kept
    from pipeline.cli.show_text import page_of  # noqa: PLC0415  (heavy; most pages are kept)
    from pipeline.service.run_status import show_run  # noqa: PLC0415  (the same)

    document = show_run(folder, roster.repository)
    page = page_of(document)
    if not live and not any(map(_follows_from_work, document.safe_next_actions)):
        text, files = json.dumps(asdict(page)), page_files(folder, roster)
        keep_text("pages", _key(folder, roster), text, files, began=began, most=_MOST_PAGES)
    return page


def _follows_from_work(action: str) -> bool:
    """Return whether a command is advised only as long as files stay so: of a worktree, or at a person's desk."""
    words = (" merge --", " worktree remove ", " not committed", " desk ", "# takes what is handed in")
    return any(word in action for word in words)


def is_kept(folder: Path, roster: Roster) -> bool:
    """Return whether the page of a run is kept."""
    return kept_record("pages", _key(folder, roster), _kept_page) is not None


def _key(folder: Path, roster: Roster) -> tuple[str, ...]:
    return (str(folder), roster.spoken(folder), str(roster.repository.worktree), str(Path.cwd()))


def page_files(folder: Path, roster: Roster) -> list[str]:
    """Return what the page of a run follows from: its files, where branches are, and where each is checked out."""
    common, worktrees = roster.repository.common_dir, roster.repository.worktrees()
    branches = [*below(str(common / "refs/heads")), *below(str(common / "reftable")), str(common / "packed-refs")]
    branches += below(str(common / "refs/remotes"))  # the base may be one of these
    branches += below(str(common / "refs/redfirst/claims"))  # a run on the base is to be finished first
    heads = [str(common / "worktrees"), *(str(each.git_dir / "HEAD") for each in worktrees)]
    return [*below(str(folder)), *branches, *heads]


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
