"""`redfirst approve`, `reject`, `answer`, `resume`, `abandon` and `stop`: what a person says to a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.app import drivers
from pipeline.app.next_lines import advice_as_typed, document_as_typed, located
from pipeline.characters import visible
from pipeline.config.sources import tracker_folder
from pipeline.faces.cli import arguments
from pipeline.faces.cli.text import print_result, print_text, say
from pipeline.outcomes import stands_words
from pipeline.repo import Repository

if TYPE_CHECKING:
    from pipeline.app.drivers import StoppedDocument


def approve(
    ctx: typer.Context,
    name: arguments.MeantRun = None,
    given: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help='What a question asks for: answer="...".')
    ] = None,
    gate: arguments.GateMeant = None,
    step: arguments.StepMeant = None,
    seen: arguments.Seen = None,
    no_drive: arguments.NoDrive = False,
    agent: arguments.AgentFlags = None,
    values: arguments.ValueFlags = None,
    as_document: arguments.AsDocumentBesideProgress = False,
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
    from pipeline.app.answer import Approval, answerer
    from pipeline.app.run_config import pairs
    from pipeline.faces.cli.run_actions import answer, going_on

    if name is not None and "=" in name:  # no run is called so
        name, given = None, [name, *(given or ())]
    words = pairs(given or [])
    answer(
        ctx,
        name,
        Approval(answerer(Repository.find(Path.cwd())), gate or step, words, seen),
        going_on(agent, values),
        ({"--step": step, "NAME=VALUE": given}, {"--gate": gate}),
        as_document=as_document,
        no_drive=no_drive,
    )


def answer_question(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="RUN", help="A run, its issue, or a prefix.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Your answer. The asker gets it with the question.")],
    step: arguments.StepMeant = None,
    seen: arguments.Seen = None,
    no_drive: arguments.NoDrive = False,
    agent: arguments.AgentFlags = None,
    values: arguments.ValueFlags = None,
    as_document: arguments.AsDocumentBesideProgress = False,
) -> None:
    """Answer the question that a run waits with.

    The role that asked is asked again, with your answer.

    Examples:
      redfirst answer GAL-39 "An empty name is an error, a blank one too."

      redfirst answer run-survey "only the first two" --no-drive
    """
    from pipeline.app.answer import Reply, answerer
    from pipeline.faces.cli.run_actions import answer, going_on

    answer(
        ctx,
        name,
        Reply(answerer(Repository.find(Path.cwd())), text, step, seen),
        going_on(agent, values),
        ({"--step": step}, {}),
        as_document=as_document,
        no_drive=no_drive,
    )


def reject(
    ctx: typer.Context,
    feedback: Annotated[
        str, typer.Option("--feedback", metavar="TEXT", help="Say what is wrong. The next draft gets it.")
    ],
    name: arguments.MeantRun = None,
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
    gate: arguments.GateMeant = None,
    step: arguments.StepMeant = None,
    seen: arguments.Seen = None,
    no_drive: arguments.NoDrive = False,
    agent: arguments.AgentFlags = None,
    values: arguments.ValueFlags = None,
    as_document: arguments.AsDocumentBesideProgress = False,
) -> None:
    """Send a run back from the approval point where it waits for you.

    Examples:
      redfirst reject --feedback "no new dependency, please"

      redfirst reject GAL-39 --feedback "keep the old signature" --to plan

      redfirst reject --feedback "blank names pass" --proof ../test_blank.py

      redfirst reject run-triage --step ok --feedback "one is a duplicate"
    """
    from pipeline.app.answer import Rejection, answerer, given_in
    from pipeline.faces.cli.run_actions import answer, going_on

    here = Repository.find(Path.cwd())
    given = given_in(proof, here.worktree) if proof is not None else None
    answer(
        ctx,
        name,
        Rejection(answerer(here), feedback, gate or step, to, seen, given),
        going_on(agent, values),
        ({"--step": step}, {"--gate": gate, "--to": to, "--proof": proof}),
        as_document=as_document,
        no_drive=no_drive,
    )


def resume(
    ctx: typer.Context,
    name: arguments.MeantRun = None,
    approve: arguments.Approve = None,
    agent: arguments.AgentFlags = None,
    values: arguments.ValueFlags = None,
    onto: arguments.Onto = None,
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
    plain: arguments.Plain = False,
    as_document: arguments.AsDocumentBesideProgress = False,
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
    from pipeline.app.start import Resumption
    from pipeline.faces.cli.run_actions import answer, going_on

    asked = arguments.gates_of(approve)
    answer(
        ctx,
        name,
        Resumption(onto, asked, step, recipe),
        going_on(agent, values),
        ({"--step": step, "--recipe": recipe}, {"--approve": asked}),
        as_document=as_document,
        plain=plain,
    )


def abandon(ctx: typer.Context, name: arguments.MeantRun = None, as_document: arguments.AsDocument = False) -> None:
    """End a run without a commit.

    The issue is Todo again, and another run may take it. The work stays on the run's ref and as a patch.

    Examples:
      redfirst abandon GAL-39

      redfirst abandon GAL-39 --json
    """
    from pipeline.app import answer as answers
    from pipeline.faces.cli.run_actions import document_of, run_text
    from pipeline.faces.cli.show import show_steps
    from pipeline.steps.context import Context

    here = Repository.find(Path.cwd())
    name = arguments.named(ctx, here, name)
    freed = answers.free_orphan(here, name)
    if freed is not None:
        if as_document:
            typer.echo(json.dumps({"schema": "redfirst.freed/1", "ok": True, "issue": freed.issue}))
            return
        said = f"{freed.issue} is free again: the folder of {freed.run} in {freed.worktree} is gone."
        if Path(freed.worktree) == here.worktree:
            said += f" Its file may still say In Progress: git diff {tracker_folder(here.worktree)}"
        print_text(visible(said))
        return
    repository, folder = located(here, name)
    with advice_as_typed(here, repository.worktree, folder.name):
        done = answers.abandon(repository, folder, say)
    if isinstance(done, Context):
        document = document_of(done, here, repository.worktree)
        document = document.model_copy(update={"ok": True, "exit_code": 0})
        print_result(document, run_text, as_document=as_document)
    else:
        show_steps(folder, here, as_document=as_document)


def stop(
    ctx: typer.Context,
    name: arguments.MeantRun = None,
    now: Annotated[
        bool, typer.Option("--now", help="Let no agent answer first. It is asked again when the run goes on.")
    ] = False,
    as_document: arguments.AsDocument = False,
) -> None:
    """Stop a run that another process drives.

    All is kept: redfirst resume goes on with it. An agent that is at work may answer first.

    Examples:
      redfirst stop GAL-39

      redfirst stop GAL-39 --now
    """
    here = Repository.find(Path.cwd())
    repository, folder = located(here, arguments.named(ctx, here, name))
    with advice_as_typed(here, repository.worktree, folder.name):
        document = drivers.stop(folder, now=now)
    document = document_as_typed(document, here, repository.worktree, folder.name)
    print_result(document, stopped_text, as_document=as_document)


def stopped_text(document: StoppedDocument) -> str:
    """Return how a run stands that was asked to stop, for a person."""
    if document.stopped:
        how = stands_words(document.outcome, document.reason) if document.outcome else "stopped"
    else:
        how = f"stops once this has ended: {', '.join(document.waits_for) or 'what it is doing'}"
    lines = [f"{document.run_id}: {how}"]
    return "\n".join([*lines, *(f"  next: {action}" for action in document.safe_next_actions)])
