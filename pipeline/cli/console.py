"""`redfirst console`: runs in a browser on this machine (docs/how-to/console.md)."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import Annotated

import typer

from pipeline.errors import UserError
from pipeline.interrupts import StoppedError
from pipeline.outcomes import Reason

_NEEDED = ("starlette", "uvicorn", "jinja2")


def console(
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Where it listens. 0 means any.")
    ] = 0,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only look: nothing can be changed by it.")] = False,
) -> None:
    """Show the runs of this repository in a browser on this machine.

    It prints a link, which opens it once for each browser. It listens on loopback alone. Ctrl-C stops it, and the runs
    go on.

    Examples:
      redfirst console

      redfirst console --port 8765 --read-only
    """
    from pathlib import Path  # noqa: PLC0415  (heavy imports are not on the path of --help)

    from pipeline.cli.text import print_text  # noqa: PLC0415  (the same)
    from pipeline.git import Repository  # noqa: PLC0415  (the same)

    require_extra()
    repository = Repository.find(Path.cwd())
    from pipeline.console.serve import serve  # noqa: PLC0415  (the same)

    with suppress(KeyboardInterrupt, StoppedError):  # that is how it ends
        serve(repository, port, lambda link: print_text(f"Open in a browser, once: {link}"), read_only=read_only)


def require_extra() -> None:
    """Return if what the console needs is installed.

    Raises:
        UserError: it is not, with the command that adds it.
    """
    if any(find_spec(name) is None for name in _NEEDED):
        from pipeline.backends.extras import install_command  # noqa: PLC0415  (only where it is missing)

        command = install_command("console")
        raise UserError("The console needs the extra `console`. Install it:", Reason.USAGE, actions=(command,))
