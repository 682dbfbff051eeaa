"""Draws a run on a terminal, again each half second where it stands."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pipeline.cli.status_line import MARKS
from pipeline.engine.events import ArtifactWritten
from pipeline.outcomes import Reason
from pipeline.policy.characters import visible
from pipeline.progress import duration
from pipeline.reset_times import moment_words
from pipeline.runs.events import TrackerWritten
from pipeline.service.journal_lines import log_line
from pipeline.service.live_view import live_view

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.service.live_view import LiveView, Stands

_EACH_S: Final = 0.5
_LINES: Final = 5
_LABELS: Final = 8
"""Columns of the labels before what they name."""
_UNTOLD: Final = frozenset({ArtifactWritten.KIND, TrackerWritten.KIND})
_MOST_TASKS: Final = 8
_STYLES: Final[dict[Stands, str]] = {
    "done": "green",
    "now": "bold cyan",
    "ahead": "dim",
    "left_out": "dim",
    "failed": "red",
}
_STATUS: Final = {
    "running": "cyan",
    "completed": "green",
    "parked": "yellow",
    "paused": "yellow",
    "completed_with_blockers": "yellow",
}


def show_live(folder: Path) -> None:
    """Draw a run until no process drives it any more, or Ctrl-C; what was drawn last stays."""
    console = Console(highlight=False)
    with contextlib.suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as live:
        while True:
            view = live_view(folder)
            live.update(drawn(view, console.width, console.height), refresh=True)
            if not view.live:
                return
            time.sleep(_EACH_S)


def drawn(view: LiveView, width: int, height: int) -> Group:
    """Return how a run stands, in fewer lines than the terminal has."""
    head = Text.assemble((visible(view.run), "bold"), "  ", visible(view.title))
    status = Text(view.status, _STATUS.get(view.status, "red"))
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column()
    why = "" if view.reason in {None, Reason.INTERRUPTED} else f" ({view.reason})"
    where = visible(view.place) + why
    rows.add_row("state", Text.assemble(status, ", ", where))
    if view.phases:
        rows.add_row("phases", _phases(view, width - _LABELS))
    for number, line in enumerate(_tasks(view)):
        rows.add_row("" if number else "tasks", line)
    for number, each in enumerate(view.now):
        since = (datetime.now(UTC) - each.since).total_seconds()
        rows.add_row("" if number else "now", f"{visible(each.what)}, {duration(max(0.0, since))}")
        for line in each.said:
            rows.add_row("", Text(f"| {visible(line)}", "dim", no_wrap=True, overflow="ellipsis"))
    if view.not_before is not None:
        rows.add_row("not before", visible(moment_words(view.not_before)))
    if view.loops:
        rows.add_row("back", visible(", ".join(view.loops)))
    rows.add_row("spent", f"{duration(view.driven_s)}, {view.spent}")
    if view.usual:
        rows.add_row("then", f"usually {view.usual}")
    doing = sum(1 + len(each.said) for each in view.now)
    room = max(1, min(_LINES, height - len(view.tasks) - doing - 10))
    told = [line for line in view.lines if line.kind not in _UNTOLD][-room:]
    last = [Text(visible(log_line(line)), "dim", no_wrap=True, overflow="ellipsis") for line in told]
    return Group(head, rows, *last)


def _phases(view: LiveView, room: int) -> Text:
    """Return the phases, as many to a line as there is room for."""
    found, column = Text(), 0
    for one in view.phases:
        words = f"{MARKS[one.stands]} {one.phase.words}"
        if column + len(words) > room:
            found.append("\n")
            column = 0
        found.append(f"{words}  ", _STYLES[one.stands])
        column += len(words) + 2
    return found


def _tasks(view: LiveView) -> Iterable[Text]:
    if len(view.tasks) > _MOST_TASKS:  # those at work, and how many are not
        shown = [task for task in view.tasks if task.stands == "now"][:_MOST_TASKS]
        done = sum(task.stands == "done" for task in view.tasks)
        yield Text(f"{done} of {len(view.tasks)} done")
    else:
        shown = list(view.tasks)
    for task in shown:
        words = f"{MARKS[task.stands]} {visible(task.id)}  {task.at}  {visible(task.title)}".rstrip()
        yield Text(words, _STYLES[task.stands], no_wrap=True, overflow="ellipsis")
