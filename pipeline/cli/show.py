"""`redfirst show` and `redfirst diff`: how a run stands, its log, its work so far (contract 1)."""

from __future__ import annotations

from typing import Annotated

import typer

AsDocument = Annotated[bool, typer.Option("--json", help="One JSON document.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="Name of a run or a unique prefix: run-GAL-39, GAL-39.")]


def show(
    name: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A run, or a prefix; default: the newest.")
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="The journal, one line an event.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="With --log: go on until the run ends or parks.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Show how a run stands, and what can be done next.

    Examples:
      redfirst show GAL-39

      redfirst show --log --follow
    """
    from pathlib import Path  # noqa: PLC0415  (heavy imports are not on the path of --help)

    from pipeline.cli.loglines import follow as follow_log  # noqa: PLC0415  (the same)
    from pipeline.cli.showing import find, log_document, log_text, show_run, show_text  # noqa: PLC0415  (the same)
    from pipeline.errors import UserError  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.outcomes import Reason  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    if follow and (as_document or not log):
        raise UserError("--follow belongs to --log, and prints lines as they come: no --json.", Reason.USAGE)
    folder = find(Repository.find(Path.cwd()), name)
    if follow:
        follow_log(folder, typer.echo)
    elif log and as_document:
        print_document(log_document(folder))
    elif log:
        typer.echo(log_text(folder))
    elif as_document:
        print_document(show_run(folder))
    else:
        typer.echo(show_text(show_run(folder)))


def diff(
    name: RunName,
    task: Annotated[str | None, typer.Option("--task", metavar="ID", help="Only the work of this task.")] = None,
    stat: Annotated[bool, typer.Option("--stat", help="The paths and how many lines each gained and lost.")] = False,
    as_document: AsDocument = False,
) -> None:
    """Show the run's work so far as a patch against its start; your branch and files are not looked at.

    Examples:
      redfirst diff GAL-39 --stat

      redfirst diff GAL-39 --task 2 | git apply --check
    """
    from pathlib import Path  # noqa: PLC0415  (heavy imports are not on the path of --help)

    from pipeline.cli.patches import diff_run, diff_text  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    document = diff_run(Repository.find(Path.cwd()), name, task=task, stat=stat)
    if as_document:
        print_document(document)
        return
    text = diff_text(document)
    typer.echo(text or "No change so far.", nl=not text.endswith("\n"), err=not text)
