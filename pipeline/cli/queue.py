"""`redfirst queue`: what is to be run, by whichever worker there is (docs/how-to/several-issues.md)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipeline.cli.arguments import AgentFlags, Approve, AsDocument, Base, RecipeFlag, ValueFlags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.git import Repository
    from pipeline.queue.orders import Order

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Order issues that `redfirst work` is to run.")

Orders = Annotated[
    list[str], typer.Argument(metavar="ORDER", help="An order's name, its issue or its run.", show_default=False)
]


@app.command(name="list")
def list_orders(as_document: AsDocument = False) -> None:
    """List the orders that are open, and the last ones that are over.

    Examples:
      redfirst queue list

      redfirst queue list --json
    """
    from pipeline.cli.run_actions import repository_here  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.queue import orders  # noqa: PLC0415  (the same)

    repository = repository_here()
    _tell(orders.read(repository, os.environ), repository, as_document=as_document)


@app.command()
def add(
    issues: Annotated[
        list[str],
        typer.Argument(metavar="ISSUE", help="Issues or runs."),
    ],
    approve: Approve = None,
    priority: Annotated[int, typer.Option("--priority", metavar="N", help="Higher ones begin first (0).")] = 0,
    recipe: RecipeFlag = None,
    hold: Annotated[bool, typer.Option("--hold", help="Begin it only after `queue release`.")] = False,
    base: Base = None,
    agent: AgentFlags = None,
    values: ValueFlags = None,
    as_document: AsDocument = False,
) -> None:
    """Order issues to be run, each in a worktree of its own.

    An issue that is in the queue already is not ordered twice.

    Examples:
      redfirst queue add GAL-39 GAL-40

      redfirst queue add GAL-41 --priority 5 --approve plan
    """
    from pipeline.cli.run_actions import repository_here  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.queue.lines import RunWords  # noqa: PLC0415  (the same)
    from pipeline.service import ordering  # noqa: PLC0415  (the same)

    words = RunWords(
        base=base,
        approve=tuple(approve or ()),
        agent=tuple(agent or ()),
        values=tuple(values or ()),
        recipe=recipe,
    )
    placed = ordering.order(repository_here(), os.environ, issues, words, priority=priority, held=hold)
    _tell(placed, as_document=as_document)


@app.command()
def drop(orders: Orders, as_document: AsDocument = False) -> None:
    """Take orders out of the queue.

    Their runs stay as they are.

    Examples:
      redfirst queue drop GAL-39

      redfirst queue drop GAL-39 GAL-40
    """
    _change(orders, "drop", as_document=as_document)


@app.command()
def hold(orders: Orders, as_document: AsDocument = False) -> None:
    """Let orders wait until they are released.

    Examples:
      redfirst queue hold GAL-39

      redfirst queue hold GAL-39 GAL-40
    """
    _change(orders, "hold", as_document=as_document)


@app.command()
def release(orders: Orders, as_document: AsDocument = False) -> None:
    """Let orders begin that were held.

    Examples:
      redfirst queue release GAL-39

      redfirst queue release GAL-39 GAL-40
    """
    _change(orders, "release", as_document=as_document)


def _change(names: Sequence[str], what: Literal["drop", "hold", "release"], *, as_document: bool) -> None:
    from pipeline.cli.run_actions import repository_here  # noqa: PLC0415  (heavy; not on the path of --help)
    from pipeline.queue import orders  # noqa: PLC0415  (the same)

    _tell(orders.change(repository_here(), os.environ, names, what), as_document=as_document)


def _tell(found: Sequence[Order], repository: Repository | None = None, *, as_document: bool) -> None:
    from pipeline.cli.queue_text import orders_text  # noqa: PLC0415  (the same)
    from pipeline.cli.text import print_text  # noqa: PLC0415  (the same)
    from pipeline.service.ordering import limited, queue_document  # noqa: PLC0415  (the same)
    from pipeline.service.run_list import list_runs  # noqa: PLC0415  (the same)
    from pipeline.terminal import print_document  # noqa: PLC0415  (the same)

    runs = list_runs(repository).runs if repository is not None and any(map(limited, found)) else ()
    document = queue_document(found, runs)
    if as_document:
        print_document(document)
    else:
        print_text(orders_text(document.orders))
