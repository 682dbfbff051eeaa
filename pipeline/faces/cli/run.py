"""`redfirst run`: an issue to tested commits, or a recipe; or only what a run would do (contract 1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.characters import visible
from pipeline.faces.cli import arguments
from pipeline.faces.cli.text import print_text, say
from pipeline.terminal import print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.app.live_view import Display
    from pipeline.app.recipe_choice import DryRun
    from pipeline.app.run_config import RunOptions
    from pipeline.repo import Repository
    from pipeline.steps.context import Context
    from pipeline.steps.recipe_context import RecipeContext


def run(
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
    approve: arguments.Approve = None,
    recipe: arguments.RecipeFlag = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what a run would do.")] = False,
    agent: arguments.AgentFlags = None,
    base: arguments.Base = None,
    values: arguments.ValueFlags = None,
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
    plain: arguments.Plain = False,
    as_document: arguments.AsDocumentBesideProgress = False,
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
    from pipeline.app import recipe_choice, worktrees
    from pipeline.app.next_lines import unfinished_on
    from pipeline.app.run_config import RunOptions
    from pipeline.app.start import start
    from pipeline.faces.cli.run_actions import drive
    from pipeline.repo import Repository
    from pipeline.run.tracker import named_in

    here = repository = Repository.find(Path.cwd())
    options = RunOptions(
        issue=named_in(repository.worktree, word),
        base=base,
        gates=arguments.gates_of(approve),
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
        _print_dry_run(repository, options, worktree=worktree, as_document=as_document)
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


def _print_dry_run(repository: Repository, options: RunOptions, *, worktree: bool, as_document: bool) -> None:
    """Print what `run` would do with these options."""
    from pipeline.app.recipe_choice import dry_run as try_out

    found = try_out(repository, options, worktree=worktree)
    if as_document:
        print_json(found.document())
    else:
        print_text("\n".join(_lines(found)))


def _lines(found: DryRun) -> Iterator[str]:
    from pipeline.faces.cli.recipes import agent_lines, most_line, step_lines

    recipe = found.recipe
    inputs = ", ".join(f"{name}={value}" for name, value in found.inputs.items() if value)
    yield visible(f"{recipe.recipe.name} ({recipe.file.path}){f': {inputs}' if inputs else ''}")
    yield from (*step_lines(found.shown), *agent_lines(found.agents))
    publishes = f" Publishes on {found.branch}." if found.branch and not found.in_the_way else ""
    if found.asked_gates:
        yield f"Waits for you at approval points: {', '.join(found.asked_gates)}."
    yield visible(f"{most_line(found.shown, found.limit)}{publishes} Nobody was asked, nothing was written.")
    yield from (visible(f"It would not begin here. {why}") for why in found.in_the_way)
    if found.refused is not None:
        yield visible(f"It cannot be run: {found.refused}.")
    elif not found.trusted:
        yield "It is the repository's, and runs after: redfirst trust"
