"""`redfirst approve` and `redfirst reject`: what a person answers at a gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli import completion
from pipeline.cli.arguments import AgentFlags, AsDocumentBesideProgress, GateMeant, MeantRun, StepMeant, ValueFlags
from pipeline.cli.run_actions import answer
from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipeline.cli.run_actions import OfRecipe
    from pipeline.git import Repository
    from pipeline.service.progress import Display
    from pipeline.service.run_config import RunOptions
    from pipeline.steps.context import Context
    from pipeline.steps.recipe_context import RecipeContext


def approve(
    name: MeantRun = None,
    given: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help='What a question asks for: answer="...".')
    ] = None,
    gate: GateMeant = None,
    step: StepMeant = None,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Approve the gate that a run is parked at; plan.md and task files count as they are on disk now.

    Examples:
      redfirst approve

      redfirst approve GAL-39 --gate plan

      redfirst approve run-triage --step ok

      redfirst approve run-survey answer="only the first two"
    """
    from pipeline.service import composition, gates, recipe_gates  # noqa: PLC0415
    from pipeline.service.run_config import pairs  # noqa: PLC0415

    if name is not None and "=" in name:  # no run is called so
        name, given = None, [name, *(given or ())]
    words = pairs(given or [])
    answer(
        "approve",
        name,
        lambda ctx: gates.approve(_alone(ctx, {"--step": step, "NAME=VALUE": given}), gate),
        composition.RunOptions("", agents=tuple(agent or ()), values=tuple(values or ())),
        as_document,
        of_recipe=_answering(lambda ctx: recipe_gates.approve(ctx, step, words), {"--gate": gate}),
    )


def reject(
    feedback: Annotated[str, typer.Option("--feedback", metavar="TEXT", help="What is wrong; the next draft gets it.")],
    name: MeantRun = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="plan|split|fix",
            help="Where to; by default the gate's own.",
            autocompletion=completion.gate_targets,
        ),
    ] = None,
    gate: GateMeant = None,
    step: StepMeant = None,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Send a run that is parked at a gate back, with feedback.

    Examples:
      redfirst reject --feedback "no new dependency, please"

      redfirst reject GAL-39 --feedback "keep the old signature" --to plan

      redfirst reject run-triage --step ok --feedback "one is a duplicate"
    """
    from pipeline.service import composition, gates, recipe_gates  # noqa: PLC0415

    answer(
        "reject",
        name,
        lambda ctx: gates.reject(_alone(ctx, {"--step": step}), feedback, to, gate),
        composition.RunOptions("", agents=tuple(agent or ()), values=tuple(values or ())),
        as_document,
        of_recipe=_answering(lambda ctx: recipe_gates.reject(ctx, step, feedback), {"--gate": gate, "--to": to}),
    )


def _answering(prepare: Callable[[RecipeContext], None], foreign: Mapping[str, object]) -> OfRecipe:
    """Return what answers a gate of a recipe's run, where nothing is said that means only an issue's."""
    from pipeline.service import recipe_run  # noqa: PLC0415

    async def go_on(repository: Repository, folder: Path, options: RunOptions, say: Display) -> RecipeContext:
        _refuse(foreign, f"{folder.name} is of a recipe's own steps")
        return await recipe_run.go_on(repository, folder, options, say, prepare)

    return go_on


def _alone(ctx: Context, foreign: Mapping[str, object]) -> Context:
    """Return the context of an issue's run, where nothing is said that means only a recipe's steps."""
    _refuse(foreign, f"{ctx.run.info.run_id} is of an issue")
    return ctx


def _refuse(foreign: Mapping[str, object], why: str) -> None:
    said = [name for name, value in foreign.items() if value]
    if said:
        raise UserError(f"{why}: {' and '.join(said)} can mean nothing here.", Reason.USAGE)
