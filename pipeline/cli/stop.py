"""`redfirst stop`: ask the process that drives a run to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.arguments import AsDocument, MeantRun
from pipeline.outcomes import stands_words

if TYPE_CHECKING:
    from pipeline.service.stopping import StoppedDocument


def stop(
    name: MeantRun = None,
    now: Annotated[
        bool, typer.Option("--now", help="Let no agent answer first. It is asked again when the run goes on.")
    ] = False,
    as_document: AsDocument = False,
) -> None:
    """Stop a run that another process drives.

    All is kept: redfirst resume goes on with it. An agent that is at work may answer first.

    Examples:
      redfirst stop GAL-39

      redfirst stop GAL-39 --now
    """
    from pipeline.cli.run_actions import named, repository_here  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.cli.text import print_text  # noqa: PLC0415  (the same)
    from pipeline.service import stopping  # noqa: PLC0415  (the same)
    from pipeline.service.other_worktrees import advice_as_typed, as_typed, located  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document, visible_lines  # noqa: PLC0415  (the same)

    here = repository_here()
    repository, folder = located(here, named("stop", here, name))
    with advice_as_typed(here, repository.worktree, folder.name):
        document = stopping.stop(folder, now=now)
    actions = as_typed(document.safe_next_actions, here, repository.worktree, folder.name)
    document = document.model_copy(update={"safe_next_actions": actions})
    if as_document:
        print_document(document)
    else:
        print_text(visible_lines(stopped_text(document)))


def stopped_text(document: StoppedDocument) -> str:
    """Return how a run stands that was asked to stop, for a person."""
    if document.stopped:
        how = stands_words(document.outcome, document.reason) if document.outcome else "stopped"
    else:
        how = f"stops once this has ended: {', '.join(document.waits_for) or 'what it is doing'}"
    lines = [f"{document.run_id}: {how}"]
    return "\n".join([*lines, *(f"  next: {action}" for action in document.safe_next_actions)])
