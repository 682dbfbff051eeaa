"""`redfirst approve` and `redfirst reject`: what a person answers at a gate."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  (typer reads it)
from typing import TYPE_CHECKING, Annotated

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
from pipeline.cli.run_actions import answer, going_on, named, refuse_foreign, repository_here
from pipeline.cli.text import print_text, say
from pipeline.outcomes import stands_words
from pipeline.terminal import print_document, visible_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.git import Repository
    from pipeline.service.answers import AnsweredDocument
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
    from pipeline.service import answers  # noqa: PLC0415
    from pipeline.service.run_config import pairs  # noqa: PLC0415

    if name is not None and "=" in name:  # no run is called so
        name, given = None, [name, *(given or ())]
    words = pairs(given or [])
    here = repository_here()
    by = answers.answerer(here)
    _answer(
        "approve",
        here,
        name,
        going_on(agent, values),
        lambda ctx: answers.approve_issue(ctx, by, gate, seen),
        lambda ctx: answers.approve_step(ctx, by, step, words, seen),
        foreign=({"--step": step, "NAME=VALUE": given}, {"--gate": gate}),
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
    from pipeline.service import answers  # noqa: PLC0415

    here = repository_here()
    by = answers.answerer(here)
    _answer(
        "answer",
        here,
        name,
        going_on(agent, values),
        lambda ctx: answers.answer_issue(ctx, by, text, seen),
        lambda ctx: answers.approve_step(ctx, by, step, {"answer": text}, seen),
        foreign=({"--step": step}, {}),
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
    from pipeline.service import answers  # noqa: PLC0415
    from pipeline.service.given_proof import given_in  # noqa: PLC0415

    here = repository_here()
    given = given_in(proof, here.worktree) if proof is not None else None
    by = answers.answerer(here)
    _answer(
        "reject",
        here,
        name,
        going_on(agent, values),
        lambda ctx: answers.reject_issue(ctx, by, feedback, to, gate, seen, given),
        lambda ctx: answers.reject_step(ctx, by, feedback, step, seen),
        foreign=({"--step": step}, {"--gate": gate, "--to": to, "--proof": proof}),
        as_document=as_document,
        no_drive=no_drive,
    )


def _answer(
    command: str,
    here: Repository,
    name: str | None,
    options: RunOptions,
    of_issue: Callable[[Context], None],
    of_recipe: Callable[[RecipeContext], None],
    *,
    foreign: tuple[Mapping[str, object], Mapping[str, object]],
    as_document: bool,
    no_drive: bool,
) -> None:
    """Answer a run, and drive it on unless it is only answered.

    Args:
        command: What is answered.
        here: Where somebody stands.
        name: The run, if one is named.
        options: What the command line says.
        of_issue: What answers a run of an issue.
        of_recipe: What answers a run of a recipe's own steps.
        foreign: What is said that can mean nothing for the one, and for the other.
        as_document: Print JSON.
        no_drive: Only answer.
    """
    from pipeline.service import answers, recipe_run  # noqa: PLC0415
    from pipeline.service.other_worktrees import advice_as_typed, as_typed, located  # noqa: PLC0415

    def issue(ctx: Context) -> None:
        refuse_foreign(foreign[0], f"{ctx.run.info.run_id} is of an issue", ctx.run.info.run_id)
        of_issue(ctx)

    def steps(ctx: RecipeContext) -> None:
        refuse_foreign(foreign[1], f"{ctx.run.info.run_id} is of a recipe's own steps", ctx.run.info.run_id)
        of_recipe(ctx)

    async def go_on(repository: Repository, folder: Path, given: RunOptions, say: Display) -> RecipeContext:
        return await recipe_run.go_on(repository, folder, given, say, steps)

    if not no_drive:
        answer(command, name, issue, options, as_document, of_recipe=go_on)
        return
    refuse_foreign({"--agent": options.agents, "--set": options.values}, "--no-drive only answers")
    repository, folder = located(here, named(command, here, name))
    with advice_as_typed(here, repository.worktree, folder.name):
        document = answers.answered(repository, folder, say, issue, steps)
    actions = as_typed(document.safe_next_actions, here, repository.worktree, folder.name)
    document = document.model_copy(update={"safe_next_actions": actions})
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(answers_text(document)))


def answers_text(document: AnsweredDocument) -> str:
    """Return how a run stands that was only answered, for a person."""
    how = stands_words(document.outcome, document.reason) if document.outcome else "running"
    how = "queued" if document.queued else how
    lines = [f"{document.run_id}: {document.answer}: {how}"]
    return "\n".join([*lines, *(f"  next: {action}" for action in document.safe_next_actions)])
