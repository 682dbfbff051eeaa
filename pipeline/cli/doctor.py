"""`redfirst doctor`: can a run be started here, and if not, what to do (contract 1)."""

from __future__ import annotations

from typing import Annotated

import typer

_BLOCKED = 2


def doctor(
    agents: Annotated[
        bool, typer.Option("--agents", help="Also start the agents that are installed: version, box, configuration.")
    ] = False,
    as_document: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Check git, the repository, the sandbox, the tests, configuration and agents; exit code 2 when a run is blocked.

    The tests of HEAD are collected as a run does it, in the box, for a minute at most, and only where nothing needs
    trust. Nothing is changed and the network is not used; with --agents, model servers are looked for on this machine.
    """
    import os  # noqa: PLC0415  (imports of the check-up are not on the path of --help)
    from functools import partial  # noqa: PLC0415  (the same)
    from pathlib import Path  # noqa: PLC0415  (the same)

    import anyio  # noqa: PLC0415  (the same)

    from pipeline.cli.checkup import checkup, checkup_text  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    document = anyio.run(partial(checkup, agents=agents), Path.cwd(), os.environ)
    if as_document:
        print_document(document)
    else:
        typer.echo(checkup_text(document, agents=agents))
    if document.proceed == "block":
        raise typer.Exit(_BLOCKED)
