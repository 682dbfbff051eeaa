"""`redfirst resume` and `redfirst abandon`: a run goes on, or is given up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

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
from pipeline.cli.run_actions import answer, document_of, going_on, named, repository_here, tell
from pipeline.cli.text import print_text, say
from pipeline.policy.characters import visible


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
    from pipeline.service.start import Resumption  # noqa: PLC0415

    asked = gates_of(approve)
    answer(
        "resume",
        name,
        Resumption(onto, asked, step, recipe),
        going_on(agent, values),
        ({"--step": step, "--recipe": recipe}, {"--approve": asked}),
        as_document=as_document,
        plain=plain,
    )


def abandon(name: MeantRun = None, as_document: AsDocument = False) -> None:
    """End a run without a commit.

    The issue is Todo again, and another run may take it. The work stays on the run's ref and as a patch.

    Examples:
      redfirst abandon GAL-39

      redfirst abandon GAL-39 --json
    """
    from pipeline.cli.recipe_runs import show  # noqa: PLC0415
    from pipeline.config.sources import tracker_folder  # noqa: PLC0415
    from pipeline.service import answer as answers  # noqa: PLC0415
    from pipeline.service.other_worktrees import advice_as_typed, located  # noqa: PLC0415
    from pipeline.steps.context import Context  # noqa: PLC0415

    here = repository_here()
    name = named("abandon", here, name)
    freed = answers.free_orphan(here, name)
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
    with advice_as_typed(here, repository.worktree, folder.name):
        done = answers.abandon(repository, folder, say)
    if isinstance(done, Context):
        document = document_of(done, here, repository.worktree)
        tell(document.model_copy(update={"ok": True, "exit_code": 0}), as_document=as_document)
    else:
        show(folder, here, as_document=as_document)
