"""`redfirst doctor`: can a run be started here, and if not, what to do (contract 1)."""

from __future__ import annotations

from typing import Annotated

import typer

_BLOCKED = 2


def doctor(
    as_document: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Check git, the repository, the sandbox, the tests, configuration and agents; exit code 2 when a run is blocked.

    Nothing is changed and the network is not used.
    """
    import os  # noqa: PLC0415  (imports of the check-up are not on the path of --help)
    from pathlib import Path  # noqa: PLC0415  (the same)

    import anyio  # noqa: PLC0415  (the same)

    from pipeline.cli.checkup import checkup, checkup_text  # noqa: PLC0415  (the same)
    from pipeline.cli.plain import print_document  # noqa: PLC0415  (the same)

    document = anyio.run(checkup, Path.cwd(), os.environ)
    if as_document:
        print_document(document)
    else:
        typer.echo(checkup_text(document))
    if document.proceed == "block":
        raise typer.Exit(_BLOCKED)
