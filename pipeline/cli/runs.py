"""`redfirst runs`: the runs of this worktree, and from the main checkout of all, one line each (contract 1)."""

from __future__ import annotations

from typing import Annotated

import typer


def runs(
    as_document: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """List the runs of this worktree, the newest first; in the main checkout those of its worktrees as well.

    Example:
      redfirst runs --json
    """
    from pathlib import Path  # noqa: PLC0415  (heavy imports are not on the path of --help)

    from pipeline.cli.listing import list_runs, runs_text  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    document = list_runs(Repository.find(Path.cwd()), linked=True)
    if as_document:
        print_document(document)
    else:
        typer.echo(runs_text(document))
