"""`redfirst work`: starts drivers for what is in the queue (docs/how-to/several-issues.md)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.cli.arguments import AsDocument

if TYPE_CHECKING:
    from pipeline.git import Repository
    from pipeline.queue.lines import OrderLine
    from pipeline.queue.orders import Order
    from pipeline.queue.pick import Verdict

_SOME_FAILED: Final = 8
_INTERRUPTED: Final = 130


def work(
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, max=64, help="So many drivers at once (limits.work.jobs, 2)."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when nothing is left that can begin.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which orders would begin, and why others would not.")
    ] = False,
    as_document: AsDocument = False,
) -> None:
    """Run what is in the queue, several orders at once.

    Each order is driven by a process of its own, with a log, in a worktree of its own. Without --once it waits for
    more. With --json each event of an order is a line, as `redfirst events` has it.

    Examples:
      redfirst work --jobs 4 --once

      redfirst work --dry-run
    """
    from pipeline.cli.run_actions import repository_here  # noqa: PLC0415  (heavy; not on the path of --help)

    repository = repository_here()
    if dry_run:
        _print_verdicts(repository, jobs, as_document=as_document)
        return
    from pipeline.cli.queue_text import line_text  # noqa: PLC0415  (the same)
    from pipeline.cli.text import print_text, say  # noqa: PLC0415  (the same)
    from pipeline.policy.characters import visible  # noqa: PLC0415  (the same)
    from pipeline.service.event_stream import told_event  # noqa: PLC0415  (the same)
    from pipeline.service.work import worker_of  # noqa: PLC0415  (the same)

    def told(line: OrderLine, order: Order) -> None:
        said = told_event(repository, line) if as_document else visible(line_text(line, order))
        if said and as_document:
            typer.echo(said)
        elif said:
            print_text(said)

    def waits(verdict: Verdict) -> None:
        if verdict.why and "slots" not in verdict.why:
            say(visible(f"{verdict.what} ({verdict.order}) does not begin: {verdict.why}"))

    worker = worker_of(repository, os.environ, jobs, told, waits, lambda said: say(visible(said)))
    if worker.work(once=once):
        raise typer.Exit(_INTERRUPTED)
    raise typer.Exit(_SOME_FAILED if worker.failed else 0)


def _print_verdicts(repository: Repository, jobs: int | None, *, as_document: bool) -> None:
    from pipeline.cli.queue_text import orders_text  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.cli.text import print_text, say  # noqa: PLC0415  (the same)
    from pipeline.policy.characters import visible  # noqa: PLC0415  (the same)
    from pipeline.service.ordering import QueueDocument, record_of  # noqa: PLC0415  (the same)
    from pipeline.service.work import resting, verdicts  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    found = verdicts(repository, os.environ, jobs)
    document = QueueDocument(orders=tuple(record_of(order, verdict) for order, verdict in found))
    if as_document:
        print_document(document)
    else:
        print_text(orders_text(document.orders))
    for said in resting(repository, os.environ):
        say(visible(said))
