"""`redfirst console`, `mcp` and `demo`: runs in a browser, as tools of other programs, and an example to look at."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AsDocumentBesideProgress
from pipeline.faces.cli.text import print_text, say
from pipeline.faces.demo.command import run_demo, show_console
from pipeline.interrupts import StoppedError
from pipeline.outcomes import Reason
from pipeline.repo import Repository

_NEEDED = ("starlette", "uvicorn", "jinja2")


def console(
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Where it listens. 0 means any.")
    ] = 0,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only look: nothing can be changed by it.")] = False,
    hooks: Annotated[
        str | None,
        typer.Option("--hooks", metavar="HOST:PORT", help="Instead of pages, only take webhooks: POST /hooks/NAME."),
    ] = None,
) -> None:
    """Show the runs of this repository in a browser on this machine.

    It prints a link, which opens it once for each browser. It listens on loopback alone. Ctrl-C stops it, and the runs
    go on.

    Examples:
      redfirst console

      redfirst console --port 8765 --read-only

      redfirst console --hooks 127.0.0.1:8787
    """
    require_extra()
    repository = Repository.find(Path.cwd())
    if hooks is not None:
        from pipeline.faces.console.app import serve_hooks

        with suppress(KeyboardInterrupt, StoppedError):
            serve_hooks(repository, os.environ, hooks, say)
        return
    from pipeline.faces.console.app import serve

    with suppress(KeyboardInterrupt, StoppedError):  # that is how it ends
        serve(repository, port, lambda link: print_text(f"Open in a browser, once: {link}"), read_only=read_only)


def require_extra() -> None:
    """Return if what the console needs is installed.

    Raises:
        UserError: it is not, with the command that adds it.
    """
    if any(find_spec(name) is None for name in _NEEDED):
        from pipeline.agents.backends.extras import install_command

        command = install_command("console")
        raise UserError("The console needs the extra `console`. Install it:", Reason.USAGE, actions=(command,))


def mcp() -> None:
    """Serve recipes to an agent of another program, by the Model Context Protocol.

    The agent's program starts it in the repository and speaks to it (docs/how-to/mcp.md). It lists the recipes that
    you allow, runs them, and says how they stand. It approves nothing.

    Examples:
      redfirst mcp

      claude mcp add redfirst -- redfirst mcp
    """
    import anyio

    from pipeline.app.drivers import AgentRuns

    runs = AgentRuns(Repository.find(Path.cwd()), dict(os.environ))
    runs.allowed()  # a broken configuration is told now
    if find_spec("mcp") is None:
        from pipeline.agents.backends.extras import install_command

        command = install_command("mcp")
        raise UserError("The tools need the extra `mcp`. Install it:", Reason.USAGE, actions=(command,))
    if sys.stdin.isatty():
        raise UserError(
            "An agent's program starts this, and speaks to it. Tell yours, for example: "
            "claude mcp add redfirst -- redfirst mcp",
            Reason.USAGE,
        )
    from pipeline.faces.mcp.server import serve

    anyio.run(serve, runs)


def demo(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Where to make the example repository (a new folder).")
    ] = None,
    in_browser: Annotated[
        bool, typer.Option("--console", help="Start the run yourself, in a browser, and answer where it waits.")
    ] = False,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Make a small repository and take an example issue to commits, with scripted agents.

    Without FOLDER it is made in a temporary folder. No model is asked.

    Examples:
      redfirst demo

      redfirst demo /tmp/shop

      redfirst demo --console
    """
    if in_browser:
        if as_document:
            raise UserError("--console has no document: the console's pages have them.", Reason.USAGE)
        require_extra()
        raise typer.Exit(show_console(folder, print_text))
    raise typer.Exit(run_demo(folder, as_document=as_document, say=say if as_document else print_text))
