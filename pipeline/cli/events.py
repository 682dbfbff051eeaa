"""`redfirst events`: what happens in runs, for programs (docs/reference/events.md)."""

from __future__ import annotations

from typing import Annotated

import typer


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
    from pathlib import Path  # noqa: PLC0415  (heavy imports are not on the path of --help)

    from pipeline.cli.text import say  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.runs.roster import Roster  # noqa: PLC0415  (the same)
    from pipeline.service import event_stream  # noqa: PLC0415  (the same)

    what = event_stream.wanted(types or (), since)
    repository = Repository.find(Path.cwd())
    if name is None and event_stream.is_of_orders(repository, since):
        found = event_stream.events_of_orders(repository, what, follow=follow)
    elif (place := event_stream.place_of(Roster(repository), what, name)) is not None:
        found = event_stream.events_of_run(place, what, follow=follow)
    else:
        found = event_stream.events_of_all(repository, what, say, follow=follow)
    for event in found:
        typer.echo(str(event))  # typer flushes each line
