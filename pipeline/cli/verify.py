"""`redfirst verify`: is what the trailers of commits claim true, measured again, on any machine (contract 1)."""

from __future__ import annotations

from typing import Annotated

import typer


def verify(
    what: Annotated[
        str, typer.Argument(metavar="COMMIT|A..B|RUN", help="A commit, a range, or a run with its commits.")
    ],
    as_document: Annotated[
        bool, typer.Option("--json", help="One JSON document on stdout, progress on stderr.")
    ] = False,
) -> None:
    """Check again that the tests of a commit were RED before it and are GREEN in it, by its trailers and evidence.

    The evidence is that of the run's ref or of .workflow; on another machine fetch it first:

      git fetch origin 'refs/redfirst/runs/*:refs/redfirst/runs/*'

    Leaves with 0 when everything is verified, 7 when something is not true, 2 when it cannot be checked here or rests
    on no test (NOT_TESTABLE).

    Examples:
      redfirst verify HEAD~1

      redfirst verify main..HEAD --json

      redfirst verify run-GAL-39
    """
    import os  # noqa: PLC0415  (heavy imports are not on the path of --help)
    from pathlib import Path  # noqa: PLC0415  (the same)

    import anyio  # noqa: PLC0415  (the same)

    from pipeline.cli.laboratory import opened_laboratory  # noqa: PLC0415  (the same)
    from pipeline.cli.verify_text import verify_text  # noqa: PLC0415  (the same)
    from pipeline.terminal import block, print_document  # noqa: PLC0415  (the same)
    from pipeline.verification.selection import verified  # noqa: PLC0415  (the same)

    with opened_laboratory(Path.cwd(), os.environ) as laboratory:
        document = anyio.run(verified, laboratory, what)
    if as_document:
        print_document(document)
    else:
        typer.echo(block(verify_text(document)))
    raise typer.Exit(document.exit_code)
