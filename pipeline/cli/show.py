"""`redfirst show`: how a run stands, and its log (contract 1)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.arguments import AsDocument, StepMeant
from pipeline.cli.text import print_text, terminal_width
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from pathlib import Path


def show(
    name: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="A run, or a prefix. Default: the newest."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="All of it: evidence, reviews, dispatches.")] = False,
    log: Annotated[bool, typer.Option("--log", help="The journal, one line an event.")] = False,
    packet: Annotated[
        bool, typer.Option("--packet", help="What is to be answered, and the digest for --seen.")
    ] = False,
    step: StepMeant = None,
    follow: Annotated[bool, typer.Option("--follow", help="With --log: go on until the run ends or parks.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Show how a run stands and what you can do next, in 20 lines.

    Examples:
      redfirst show GAL-39

      redfirst show GAL-39 -v

      redfirst show --log --follow

      redfirst show GAL-39 --packet
    """
    from pathlib import Path  # noqa: PLC0415  (heavy imports are not on the path of --help)

    from pipeline.errors import UserError  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.runs.records import is_of_recipe  # noqa: PLC0415  (the same)
    from pipeline.runs.roster import Roster  # noqa: PLC0415  (the same)
    from pipeline.service.run_list import find  # noqa: PLC0415  (the same)
    from pipeline.service.run_status import log_document, show_run  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    for refused, why in (
        (follow and (as_document or not log), "--follow belongs to --log, and prints lines as they come: no --json."),
        (packet and (log or verbose), "--packet is a page of its own, without --log and --verbose."),
        (
            step is not None and not packet,
            "--step belongs to --packet: the approval point of a recipe's run that is shown.",
        ),
    ):
        if refused:
            raise UserError(why, Reason.USAGE)
    here = Repository.find(Path.cwd())
    roster = Roster(here)
    folder = find(roster, name)
    width = terminal_width(sys.stdout)
    if packet:
        from pipeline.cli.show_text import show_packet  # noqa: PLC0415  (the same)

        show_packet(folder, here, step, as_document=as_document)
    elif not log and is_of_recipe(folder):
        from pipeline.cli.recipe_runs import show as show_steps  # noqa: PLC0415  (the same)

        show_steps(folder, here, as_document=as_document)
    elif follow:
        from pipeline.service.journal_lines import follow as follow_log  # noqa: PLC0415  (the same)

        follow_log(folder, print_text)
    elif log and as_document:
        print_document(log_document(folder))
    elif log:
        print_text(log_text(folder))
    elif as_document:
        print_document(show_run(folder, here))
    else:
        from pipeline.cli.show_text import show_text, whole_text  # noqa: PLC0415  (the same)

        text_of = whole_text if verbose else show_text
        print_text(text_of(show_run(folder, here), width))
    if name is None and not (as_document or log):
        from pipeline.cli.text import say  # noqa: PLC0415  (the same)
        from pipeline.service.run_list import running_beside  # noqa: PLC0415  (the same)

        for other in running_beside(roster, folder):
            say(f"also running: {other}")


def log_text(folder: Path) -> str:
    """Return the journal for a person."""
    from pipeline.engine.journal import Journal  # noqa: PLC0415  (heavy imports are not on the path of --help)
    from pipeline.runs.folder import RunFolder  # noqa: PLC0415  (the same)
    from pipeline.service.journal_lines import log_line  # noqa: PLC0415  (the same)

    return "\n".join(log_line(line) for line in Journal.read(RunFolder(folder)).lines)
