"""`redfirst runs`: the runs of all worktrees of the repository, one line each (contract 1)."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli.arguments import AsDocument


def runs(
    everything: Annotated[bool, typer.Option("--all", help="Show the older ones, too.")] = False,
    as_document: AsDocument = False,
) -> None:
    """List the runs of all worktrees, the newest first.

    The newest 50 of those that have ended are shown. TIME is how long processes drove a run: waiting for you does not
    count. USD is what its models cost, with + where some of it is not known. The last line has the totals.

    Examples:
      redfirst runs

      redfirst runs --all

      redfirst runs --json
    """
    from pipeline.cli.runs_text import print_runs  # noqa: PLC0415  (heavy imports are not on the path of --help)

    print_runs(as_document=as_document, everything=everything)
