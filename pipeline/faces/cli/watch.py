"""`redfirst watch`, `events`, `notify` and `export-traces`: what happens, on a terminal, as lines, and sent elsewhere.

See docs/how-to/notices.md.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pipeline.app import events as service
from pipeline.app.journal_lines import follow, log_line
from pipeline.app.notices import Notices, NotifyDocument, SinkLine, folder_of, send_example, sending, serve
from pipeline.app.run_config import refuse_recursion, trusted_config
from pipeline.app.run_list import find
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocument, Plain, RunName
from pipeline.faces.cli.status_line import MARKS
from pipeline.faces.cli.text import print_result, print_text, say
from pipeline.interrupts import StoppedError
from pipeline.matrix.engine.journal import stamp, utc_now
from pipeline.matrix.engine.journal_kinds import ArtifactWritten
from pipeline.outcomes import Reason
from pipeline.progress import duration
from pipeline.repo import Repository
from pipeline.reset_times import moment_words
from pipeline.run.journal_kinds import TrackerWritten
from pipeline.run.runs_of_repository import Roster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.app.live_view import LiveView, Stands


def watch(
    name: RunName = None,
    plain: Plain = False,
) -> None:
    """Watch a run for as long as a process drives it.

    You see its phases, its tasks, who is at work, and what is left. Ctrl-C ends the watching, and the run goes on.
    Without a terminal it prints what happens, line by line.

    Examples:
      redfirst watch

      redfirst watch GAL-39 --plain
    """
    folder = find(Roster(Repository.find(Path.cwd())), name)
    if plain or not sys.stdout.isatty():
        follow(folder, print_text)
        return

    show_live(folder)


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
    from pipeline.app.live_view import live_view

    console = Console(highlight=False)
    with suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as live:
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


def events(
    name: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="A run, or a prefix. Default: all."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what comes: of one run until nothing drives it.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="ID", help="Only what came after it, of its run or orders."),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="GLOB", help="Only types like this, as run.*. Repeatable."),
    ] = None,
) -> None:
    """Print what happens in runs and to orders, as one CloudEvent a line.

    Examples:
      redfirst events GAL-39

      redfirst events --follow --type 'run.*' --type 'approval.*'
    """
    what = service.wanted(types or (), since)
    repository = Repository.find(Path.cwd())
    if name is None and service.is_of_orders(repository, since):
        found = service.events_of_orders(repository, what, follow=follow)
    elif (place := service.place_of(Roster(repository), what, name)) is not None:
        found = service.events_of_run(repository, place, what, follow=follow)
    else:
        found = service.events_of_all(repository, what, say, follow=follow)
    for event in found:
        typer.echo(str(event))  # typer flushes each line


# --- sent elsewhere --------------------------------------------------------------------------------------------------


def notify(
    once: Annotated[bool, typer.Option("--once", help="Send what is there and due, and end.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Send once more what was given up, and end.")] = False,
    test: Annotated[
        str | None, typer.Option("--test", metavar="NAME", help="Only send an example event to this one.")
    ] = None,
    as_document: AsDocument = False,
) -> None:
    """Send what happens in runs to the commands and addresses of `[notify]`, until it is stopped.

    `redfirst run` and `redfirst work` send by themselves while they are at work. One process at a time sends for a
    repository.

    Examples:
      redfirst notify

      redfirst notify --test desktop

      redfirst notify --again
    """
    if sum((once, again, test is not None)) > 1:
        raise UserError("--once, --again and --test are three ways to use this: give one of them.", Reason.USAGE)
    environ = os.environ
    refuse_recursion(environ)
    repository = Repository.find(Path.cwd())
    sinks = trusted_config(repository, environ, "notify").notify
    if not sinks:
        raise UserError(
            "Nobody is to be notified: the configuration has no table [notify.NAME].",
            Reason.CONFIG,
            actions=("redfirst init --notify desktop",),
        )
    if test is not None:
        document = send_example(repository, sinks, test, environ)
        print_result(document, document_text, as_document=as_document)
        return
    with sending(folder_of(repository, environ)) as is_ours:
        if not is_ours:
            raise UserError("Another process notifies for this repository. Try again when it has ended.", Reason.LOCKED)
        now = stamp(utc_now())
        notices = Notices(repository, sinks, environ, lambda said: say(visible(said)), since=now, again=again)
        with suppress(KeyboardInterrupt, StoppedError):  # that is how it ends
            if once or again:
                notices.send()
            else:
                serve(notices, Event())
        print_result(notices.document, document_text, as_document=as_document)


def export_traces(name: RunName = None, as_document: AsDocument = False) -> None:
    """Send a run to a collector of OpenTelemetry, as one trace.

    It is built from the journal each time. So a second time sends the same trace. The collector is `[otel] endpoint`,
    or that of the variables `OTEL_EXPORTER_OTLP_*`.

    Examples:
      redfirst export-traces GAL-39

      redfirst export-traces GAL-39 --json
    """
    from pipeline.app.events import export

    repository = Repository.find(Path.cwd())
    folder = find(Roster(repository), name)
    document = export(folder, trusted_config(repository, os.environ, "otel").otel.endpoint, os.environ)
    print_result(
        document, lambda one: f"sent {one.run_id} as trace {one.trace}, {one.spans} spans", as_document=as_document
    )


def document_text(document: NotifyDocument) -> str:
    """Return how each sink stands, for a person."""
    return "\n".join(map(_line, document.sinks))


def _line(one: SinkLine) -> str:
    said = [f"{one.sent} sent", f"{one.waits} to be sent", f"{one.given_up} given up"]
    return f"{one.name}: {', '.join(said)}{f' ({one.why})' if one.why else ''}"
