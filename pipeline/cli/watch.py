"""`redfirst watch`: a run as it goes on, on a terminal; elsewhere its events as lines."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pipeline.cli.arguments import Plain


def watch(
    name: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="A run, or a prefix. Default: the newest."),
    ] = None,
    plain: Plain = False,
) -> None:
    """Watch a run for as long as a process drives it.

    You see its phases, its tasks, who is at work, and what is left. Ctrl-C ends the watching, and the run goes on.
    Without a terminal it prints what happens, line by line.

    Examples:
      redfirst watch

      redfirst watch GAL-39 --plain
    """
    from pathlib import Path  # noqa: PLC0415  (heavy imports are not on the path of --help)

    from pipeline.cli.text import print_text  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.runs.roster import Roster  # noqa: PLC0415  (the same)
    from pipeline.service.journal_lines import follow  # noqa: PLC0415  (the same)
    from pipeline.service.run_list import find  # noqa: PLC0415  (the same)

    folder = find(Roster(Repository.find(Path.cwd())), name)
    if plain or not sys.stdout.isatty():
        follow(folder, print_text)
        return
    from pipeline.cli.watch_screen import show_live  # noqa: PLC0415  (the same)

    show_live(folder)
