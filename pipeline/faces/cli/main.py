"""The command line (contract 1): words in, one call, words or one JSON document out. No logic lives here."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, cast

import typer

from pipeline import VERSION, interrupts
from pipeline.errors import UserError
from pipeline.faces.cli.commands import LAZY_COMMANDS, PANELS, Program, group_of
from pipeline.faces.cli.errors import run_guarded, wants_json
from pipeline.outcomes import Reason

app = typer.Typer(
    name="redfirst",
    cls=Program,
    invoke_without_command=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Take an issue from TODO/ to tested git commits, unattended.\n\n"
    "Agents write. redfirst measures that the tests fail before the change and pass after it.\n\n"
    "Without a command it says where you stand and what comes next.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"redfirst {VERSION}")
        raise typer.Exit


@app.callback()
def top(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    as_document: Annotated[bool, typer.Option("--json", help="Say where you stand as one JSON document.")] = False,
) -> None:
    """Take an issue from TODO/ to tested git commits, unattended."""
    del version
    if ctx.invoked_subcommand not in {"desk", "hand-in"}:
        _leave_desk()
    if ctx.invoked_subcommand is None:
        from pipeline.faces.cli.where_you_stand import print_standing

        print_standing(as_document=as_document)
    elif as_document:
        raise UserError("--json stands behind the command that it is for.", Reason.USAGE)


def _leave_desk() -> None:
    """Go from a desk, a folder that no other command knows, to the worktree of its run."""
    with suppress(FileNotFoundError):  # the folder where somebody stands may be gone
        if "desk" in Path.cwd().parts or Path("desk").is_dir():
            from pipeline.agents.backends.desk import desk_around

            desk = desk_around(Path.cwd())
            if desk is not None and (asked := desk.asked()) is not None and asked.run_id:
                os.chdir(asked.run_folder.parents[1])


def program() -> Program:
    """Return the whole command line."""
    group = cast("Program", group_of(app))
    for command in LAZY_COMMANDS:
        group.add_command(command)
    group.panels = PANELS
    return group


def run() -> None:
    """Run the program and leave with its exit code."""
    interrupts.as_ctrl_c()
    call = partial(program(), prog_name="redfirst", standalone_mode=False)
    code = run_guarded(call, json=wants_json(sys.argv[1:]))
    interrupts.ignore()
    sys.exit(code)
