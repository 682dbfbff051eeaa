"""The command line (contract 1): words in, one call, words or one JSON document out. No logic lives here."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path  # noqa: TC003  (typer reads it)
from typing import TYPE_CHECKING, Annotated, cast

import typer

from pipeline import VERSION, interrupts
from pipeline.cli.arguments import (
    AgentFlags,
    Approve,
    AsDocumentBesideProgress,
    Base,
    Plain,
    RecipeFlag,
    ValueFlags,
    gates_of,
)
from pipeline.cli.command_table import LAZY_COMMANDS, PANELS
from pipeline.cli.errors import run_guarded, wants_json
from pipeline.cli.gate_answers import answer_question, approve, reject
from pipeline.cli.going_on import abandon, resume
from pipeline.cli.lazy_commands import Program, group_of
from pipeline.cli.run_actions import drive, repository_here
from pipeline.cli.text import print_text, say
from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from pipeline.service.live_view import Display
    from pipeline.steps.context import Context
    from pipeline.steps.recipe_context import RecipeContext


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
    if ctx.invoked_subcommand is None:
        from pipeline.cli.standing import print_standing  # noqa: PLC0415  (heavy; not on the path of --help)

        print_standing(as_document=as_document)
    elif as_document:
        raise UserError("--json stands behind the command that it is for.", Reason.USAGE)


@app.command(name="run")
def run_command(
    word: Annotated[
        str,
        typer.Argument(
            metavar="ISSUE",
            help="The issue's id, as its file is called, or a recipe.",
        ),
    ],
    inputs: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Inputs of the recipe, if it has further ones.")
    ] = None,
    worktree: Annotated[
        bool, typer.Option("--worktree", help="Work on a new branch, in a folder beside this one.")
    ] = False,
    approve: Approve = None,
    recipe: RecipeFlag = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what a run would do.")] = False,
    agent: AgentFlags = None,
    base: Base = None,
    values: ValueFlags = None,
    parallel: Annotated[
        int | None,
        typer.Option("--parallel", metavar="N", min=1, max=12, help="Work on so many tasks side by side (3)."),
    ] = None,
    previous: Annotated[
        str | None,
        typer.Option(
            "--previous",
            metavar="RUN",
            help="Do it again: the plan is shown the patch of this earlier run, which did not land.",
        ),
    ] = None,
    plain: Plain = False,
    as_document: AsDocumentBesideProgress = False,
    tasks: Annotated[str, typer.Option("--tasks", hidden=True)] = "all",
    for_agent: Annotated[bool, typer.Option("--for-agent", hidden=True)] = False,
    order: Annotated[str | None, typer.Option("--order", hidden=True)] = None,
) -> None:
    """Take an issue to tested commits, or run a recipe.

    The commits go onto the branch you stand on. With --worktree they go onto a new branch, in a folder beside this one.

    Examples:
      redfirst run GAL-39 --worktree

      redfirst run GAL-39 --worktree --approve plan,commit

      redfirst run GAL-39 --recipe quick --dry-run

      redfirst run research topic="how names are checked"

      redfirst run GAL-39 --worktree --agent check=scripted --json

      redfirst run GAL-39 --worktree --base main --previous run-GAL-39
    """
    from pipeline.runs.tracker import named_in  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.service import recipe_choice, worktrees  # noqa: PLC0415  (the same)
    from pipeline.service.next_lines import unfinished_on  # noqa: PLC0415  (the same)
    from pipeline.service.run_config import RunOptions  # noqa: PLC0415  (the same)
    from pipeline.service.start import start  # noqa: PLC0415  (the same)

    if tasks != "all":
        raise UserError(f"--tasks {tasks} is not available in this version. Accepted: all.", Reason.USAGE)
    here = repository = repository_here()
    options = RunOptions(
        issue=named_in(repository.worktree, word),
        base=base,
        gates=gates_of(approve),
        agents=tuple(agent or ()),
        values=(*(values or ()), *(() if parallel is None else (f"limits.parallel={parallel}",))),
        recipe=recipe or "",
        inputs=tuple(inputs or ()),
        previous=previous,
        trigger="mcp" if for_agent else "cli",
        order=order,
    )
    if recipe is None:
        options = recipe_choice.named_by(repository, word, options)
    if dry_run:
        from pipeline.cli.dry_run import print_dry_run  # noqa: PLC0415  (the same)

        print_dry_run(repository, options, worktree=worktree, as_document=as_document)
        return
    if worktree and options.issue:
        repository, options = worktrees.create(here, options)
        for line in (f"made the worktree {repository.worktree}", *worktrees.left_behind(here, repository)):
            say(line)
        if (first := unfinished_on(here, options.base or "")) is not None:
            say(f"{first} is at work on {options.base}, too: what this run makes lands there once that one is finished")

    async def begin(display: Display) -> Context | RecipeContext:
        begun = start(repository, options, display)
        return await (begun if repository is here else worktrees.begun(here, repository, begun, say))

    drive(begin, here, repository.worktree, as_document=as_document, plain=plain)


app.command()(resume)
app.command()(approve)
app.command()(reject)
app.command(name="answer")(answer_question)
app.command()(abandon)


@app.command()
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
    from pipeline.demo.command import run_demo, show_console  # noqa: PLC0415

    if in_browser:
        if as_document:
            raise UserError("--console has no document: the console's pages have them.", Reason.USAGE)
        from pipeline.cli.console import require_extra  # noqa: PLC0415  (only where a browser is asked for)

        require_extra()
        raise typer.Exit(show_console(folder, print_text))
    raise typer.Exit(run_demo(folder, as_document=as_document, say=say if as_document else print_text))


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
