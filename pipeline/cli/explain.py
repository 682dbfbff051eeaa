"""`redfirst explain`: why each thing happened (contract 1)."""

from __future__ import annotations

from typing import Annotated

import typer


def explain(
    name: Annotated[str, typer.Argument(metavar="RUN", help="Name of a run or a unique prefix: run-GAL-39, GAL-39.")],
    last: Annotated[bool, typer.Option("--last", help="Only the last decision.")] = False,
    as_document: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Say for each decision which row of the matrix fired, on what evidence, what it cost and what followed.

    Examples:
      redfirst explain GAL-39

      redfirst explain GAL-39 --last
    """
    from pathlib import Path  # noqa: PLC0415  (heavy imports are not on the path of --help)

    from pipeline.cli.explaining import explain_run, explain_text  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.runs.store import find_run  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    document = explain_run(find_run(Repository.find(Path.cwd()), name), last=last)
    if as_document:
        print_document(document)
    else:
        typer.echo(explain_text(document))
