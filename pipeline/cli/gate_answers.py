"""`redfirst approve` and `redfirst reject`: what a person answers at a gate."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  (typer reads it)
from typing import Annotated

import typer

from pipeline.cli.arguments import (
    AgentFlags,
    AsDocumentBesideProgress,
    GateMeant,
    MeantRun,
    NoDrive,
    Seen,
    StepMeant,
    ValueFlags,
)
from pipeline.cli.run_actions import answer, going_on, repository_here


def approve(
    name: MeantRun = None,
    given: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help='What a question asks for: answer="...".')
    ] = None,
    gate: GateMeant = None,
    step: StepMeant = None,
    seen: Seen = None,
    no_drive: NoDrive = False,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Let a run go on from the approval point where it waits for you.

    The plan and the task files count as they are on disk now.

    Examples:
      redfirst approve

      redfirst approve GAL-39 --gate plan

      redfirst approve run-triage --step ok

      redfirst approve run-survey answer="only the first two"

      redfirst approve GAL-39 --no-drive
    """
    from pipeline.service.answer import Approval, answerer  # noqa: PLC0415
    from pipeline.service.run_config import pairs  # noqa: PLC0415

    if name is not None and "=" in name:  # no run is called so
        name, given = None, [name, *(given or ())]
    words = pairs(given or [])
    answer(
        "approve",
        name,
        Approval(answerer(repository_here()), gate or step, words, seen),
        going_on(agent, values),
        ({"--step": step, "NAME=VALUE": given}, {"--gate": gate}),
        as_document=as_document,
        no_drive=no_drive,
    )


def answer_question(
    name: Annotated[str, typer.Argument(metavar="RUN", help="A run, its issue, or a prefix.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Your answer. The asker gets it with the question.")],
    step: StepMeant = None,
    seen: Seen = None,
    no_drive: NoDrive = False,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Answer the question that a run waits with.

    The role that asked is asked again, with your answer.

    Examples:
      redfirst answer GAL-39 "An empty name is an error, a blank one too."

      redfirst answer run-survey "only the first two" --no-drive
    """
    from pipeline.service.answer import Reply, answerer  # noqa: PLC0415

    answer(
        "answer",
        name,
        Reply(answerer(repository_here()), text, step, seen),
        going_on(agent, values),
        ({"--step": step}, {}),
        as_document=as_document,
        no_drive=no_drive,
    )


def reject(
    feedback: Annotated[
        str, typer.Option("--feedback", metavar="TEXT", help="Say what is wrong. The next draft gets it.")
    ],
    name: MeantRun = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="plan|split|fix",
            help="Where to. Default: as the approval point says.",
        ),
    ] = None,
    proof: Annotated[
        Path | None,
        typer.Option("--proof", metavar="FILE", help="A test that fails over the result: it is the fix task."),
    ] = None,
    gate: GateMeant = None,
    step: StepMeant = None,
    seen: Seen = None,
    no_drive: NoDrive = False,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocumentBesideProgress = False,
) -> None:
    """Send a run back from the approval point where it waits for you.

    Examples:
      redfirst reject --feedback "no new dependency, please"

      redfirst reject GAL-39 --feedback "keep the old signature" --to plan

      redfirst reject --feedback "blank names pass" --proof ../test_blank.py

      redfirst reject run-triage --step ok --feedback "one is a duplicate"
    """
    from pipeline.service.answer import (  # noqa: PLC0415
        Rejection,
        answerer,
        given_in,
    )

    here = repository_here()
    given = given_in(proof, here.worktree) if proof is not None else None
    answer(
        "reject",
        name,
        Rejection(answerer(here), feedback, gate or step, to, seen, given),
        going_on(agent, values),
        ({"--step": step}, {"--gate": gate, "--to": to, "--proof": proof}),
        as_document=as_document,
        no_drive=no_drive,
    )
