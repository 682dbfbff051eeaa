"""`redfirst approve` and `redfirst reject`: what a person answers at a gate."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.cli import completion
from pipeline.cli.arguments import AgentFlags, AsDocumentBesideProgress, GateMeant, MeantRun, ValueFlags
from pipeline.cli.run_actions import answer


def approve(
    name: MeantRun = None,
    gate: GateMeant = None,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Approve the gate that a run is parked at; plan.md and task files count as they are on disk now.

    Examples:
      redfirst approve

      redfirst approve GAL-39 --gate plan
    """
    from pipeline.service import composition, gates  # noqa: PLC0415

    answer(
        "approve",
        name,
        lambda ctx: gates.approve(ctx, gate),
        composition.RunOptions("", agents=tuple(agent or ()), values=tuple(values or ())),
        as_document,
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
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Send a run that is parked at a gate back, with feedback.

    Examples:
      redfirst reject --feedback "no new dependency, please"

      redfirst reject GAL-39 --feedback "keep the old signature" --to plan
    """
    from pipeline.service import composition, gates  # noqa: PLC0415

    options = composition.RunOptions("", agents=tuple(agent or ()), values=tuple(values or ()))
    answer("reject", name, lambda ctx: gates.reject(ctx, feedback, to, gate), options, as_document)
