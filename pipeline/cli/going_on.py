"""`redfirst resume` and `redfirst abandon`: a run goes on, or is given up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.arguments import (
    AgentFlags,
    Approve,
    AsDocument,
    AsDocumentBesideProgress,
    MeantRun,
    Onto,
    Plain,
    ValueFlags,
    gates_of,
)
from pipeline.cli.run_actions import acted, answer, going_on, named, refuse_foreign, repository_here, tell
from pipeline.cli.text import print_text
from pipeline.policy.characters import visible

if TYPE_CHECKING:
    from pipeline.git import Repository
    from pipeline.service.progress import Display
    from pipeline.service.run_config import RunOptions
    from pipeline.steps.context import Context
    from pipeline.steps.recipe_context import RecipeContext


def resume(
    name: MeantRun = None,
    approve: Approve = None,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    onto: Onto = None,
    step: Annotated[
        str | None,
        typer.Option("--step", metavar="STEP", help="Of a recipe: do this step again, with all that saw its result."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            metavar="RECIPE",
            help="Of a recipe: go on with this one. Steps that it changes are done again.",
        ),
    ] = None,
    plain: Plain = False,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Go on with a run that is paused, parked, partial or crashed.

    A step that had not come to its end is asked again.

    Examples:
      redfirst resume

      redfirst resume GAL-39 --approve commit

      redfirst resume GAL-39 --set budget.cost_usd=10

      redfirst resume GAL-39 --onto HEAD

      redfirst resume research --step look.2
    """
    from pipeline.service import gates, recipe_run  # noqa: PLC0415

    asked = gates_of(approve)

    def of_issue(ctx: Context) -> None:
        name = ctx.run.info.run_id
        refuse_foreign({"--step": step, "--recipe": recipe}, f"{name} is of an issue", name)
        gates.resume(ctx, onto, asked)

    async def of_recipe(repository: Repository, folder: Path, options: RunOptions, display: Display) -> RecipeContext:
        refuse_foreign(
            {"--approve": asked}, f"{folder.name} is of a recipe, whose approval points stand in it", folder.name
        )
        return await recipe_run.go_on(repository, folder, options, display, step=step, changed=recipe, onto=onto)

    answer("resume", name, of_issue, going_on(agent, values), as_document, of_recipe=of_recipe, plain=plain)


def abandon(name: MeantRun = None, as_document: AsDocument = False) -> None:
    """End a run without a commit.

    The issue is Todo again, and another run may take it. The work stays on the run's ref and as a patch.

    Examples:
      redfirst abandon GAL-39

      redfirst abandon GAL-39 --json
    """
    from pipeline.cli.recipe_runs import show  # noqa: PLC0415
    from pipeline.config.sources import tracker_folder  # noqa: PLC0415
    from pipeline.runs.records import is_of_recipe  # noqa: PLC0415
    from pipeline.service import composition, gates, recipe_run  # noqa: PLC0415
    from pipeline.service.other_worktrees import located  # noqa: PLC0415

    here = repository_here()
    name = named("abandon", here, name)
    freed = gates.free_orphan(here, name)
    if freed is not None:
        said = f"{freed.issue} is free again: the folder of {freed.run} in {freed.worktree} is gone."
        if Path(freed.worktree) == here.worktree:
            said += f" Its file may still say In Progress: git diff {tracker_folder(here.worktree)}"
        freed_document = {"schema": "redfirst.freed/1", "ok": True, "issue": freed.issue}
        if as_document:
            typer.echo(json.dumps(freed_document))
        else:
            print_text(visible(said))
        return
    repository, folder = located(here, name)
    if is_of_recipe(folder):
        recipe_run.abandon(repository, folder, composition.RunOptions("").environ)
        show(folder, here, as_document=as_document)
        return

    async def give_up(display: Display) -> Context:
        return gates.abandon(repository, folder, display)

    document = acted(give_up, here, repository.worktree, folder.name)
    tell(document.model_copy(update={"ok": True, "exit_code": 0}), as_document=as_document)
