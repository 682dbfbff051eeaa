"""`redfirst queue`, `work`, `deliver` and `trigger`: what is to be run, who runs it, and who orders it from outside.

See docs/how-to/several-issues.md and start-runs-from-outside.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from pipeline.app.events import told_event
from pipeline.app.run_list import list_runs
from pipeline.characters import visible
from pipeline.errors import UserError
from pipeline.faces.cli.arguments import AgentFlags, Approve, AsDocument, Base, RecipeFlag, ValueFlags, gates_of
from pipeline.faces.cli.text import columned, print_result, print_text, say
from pipeline.outcomes import PAUSED, Reason
from pipeline.pids import boot_id
from pipeline.queue import order_lines, orders
from pipeline.queue.order_lines import OrderLine, RunWords
from pipeline.repo import Repository
from pipeline.reset_times import moment_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.app.ordering import OrderRecord, QueueDocument
    from pipeline.app.triggers import DeliveryDocument, TriggerRecord, TriggersDocument
    from pipeline.queue.orders import Order
    from pipeline.queue.pick import Verdict


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
    repository = Repository.find(Path.cwd())
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
    from pipeline.app import ordering

    words = RunWords(
        base=base,
        approve=gates_of(approve),
        agent=tuple(agent or ()),
        values=tuple(values or ()),
        recipe=recipe,
    )
    repository = Repository.find(Path.cwd())
    placed = ordering.order(repository, os.environ, issues, words, priority=priority, held=hold)
    if why := orders.alone(repository, os.environ):
        say(f"{why} To share them: redfirst fleet doctor")
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
    _tell(orders.change(Repository.find(Path.cwd()), os.environ, names, what), as_document=as_document)


def _tell(found: Sequence[Order], repository: Repository | None = None, *, as_document: bool) -> None:

    from pipeline.app.ordering import limited, queue_document

    runs = list_runs(repository).runs if repository is not None and any(map(limited, found)) else ()
    print_result(queue_document(found, runs), orders_text, as_document=as_document)


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
    from pipeline.app.notices import beside
    from pipeline.app.work import worker_of

    repository = Repository.find(Path.cwd())
    if dry_run:
        _print_verdicts(repository, jobs, as_document=as_document)
        return

    def told(line: OrderLine, order: Order) -> None:
        said = told_event(repository, line) if as_document else visible(line_text(line, order))
        if said and as_document:
            typer.echo(said)
        elif said:
            print_text(said)

    def waits(verdict: Verdict) -> None:
        if verdict.why and "slots" not in verdict.why:
            say(visible(f"{verdict.what} ({verdict.order}) does not begin: {verdict.why}"))

    def note(said: str) -> None:
        say(visible(said))

    worker = worker_of(repository, os.environ, jobs, told, waits, note)
    with beside(repository, os.environ, note):
        was_stopped = worker.work(once=once)
    if was_stopped:
        raise typer.Exit(_INTERRUPTED)
    raise typer.Exit(_SOME_FAILED if worker.failed else 0)


def _print_verdicts(repository: Repository, jobs: int | None, *, as_document: bool) -> None:

    from pipeline.app.ordering import QueueDocument, record_of
    from pipeline.app.work import resting, verdicts

    found = verdicts(repository, os.environ, jobs)
    document = QueueDocument(orders=tuple(record_of(order, verdict) for order, verdict in found))
    print_result(document, orders_text, as_document=as_document)
    for said in resting(repository, os.environ):
        say(visible(said))


_CLOSED: Final = 10
"""So many orders that are over are listed."""


def line_text(line: OrderLine, order: Order) -> str:
    """Return what a line about orders says, for who watches a worker; empty where it is not for them."""
    is_here = not order.drivers or order.drivers[-1].boot_id in {"", boot_id()}
    what = f"{order.what} ({order.id}{'' if is_here else ', at another machine'})"
    match line.data:
        case order_lines.OrderPlaced(do=do, via=via):
            return f"{what}: in the queue, to be {'run' if do == 'run' else 'gone on with'} (by {via})"
        case order_lines.OrderStarted(log=log):
            return f"{what}: begun{' again' if order.drivers[1:] else ''}{f', its log is {log}' if is_here else ''}"
        case order_lines.OrderLeft(why="died", note=note):
            return f"{what}: its driver died ({note})"
        case order_lines.OrderLeft(why=why, note=note):
            return f"{what}: {why}{f', {note}' if note else ''}; it stays in the queue"
        case order_lines.OrderEnded():
            return f"{what}: {_ended_text(order, 'show' if is_here else 'fleet take')}"
        case order_lines.OrderDropped(why=why):
            return f"{what}: dropped, {why}" + (f". Look at its log: {order.log or 'it has none'}" if is_here else "")
        case _:
            return ""


def _ended_text(order: Order, looks: str) -> str:
    said = _outcome_words(order) + (f", {order.run}" if order.run is not None else "")
    if order.outcome == "parked":
        return f"{said}. See what it waits for: redfirst {looks} {order.run}"
    return f"{said}; {order.note}" if order.note and order.outcome != "completed" else said


def _outcome_words(one: Order | OrderRecord) -> str:
    return PAUSED if one.reason == Reason.INTERRUPTED else f"{one.outcome} ({one.reason})"


def orders_text(document: QueueDocument) -> str:
    """Return the queue for a person: open orders, then the last ones that are over."""
    opened = [one for one in document.orders if one.closed_at is None]
    closed = [one for one in document.orders if one.closed_at is not None][-_CLOSED:]
    if not document.orders:
        return "The queue is empty. Order an issue: redfirst queue add ISSUE"
    whats = {one.order: one.issue or (one.run or "").rpartition("/")[2] for one in document.orders}
    rows = [(f"{one.order}  {whats[one.order]}", _standing(one)) for one in (*opened, *closed)]
    return "\n".join(visible(line) for line in columned(rows, None, indent=0))


def _standing(one: OrderRecord) -> str:
    said = one.state if one.outcome is None else _outcome_words(one)
    more = [f"priority {one.priority}" if one.priority else "", one.run or ""]
    more += [f"not before {moment_words(one.not_before)}" if one.not_before and not one.why else ""]
    more += ["begins" if one.begins else one.why or "", f"log {one.log}" if one.state == "started" else ""]
    more += [one.note if one.outcome != "completed" else ""]
    return ", ".join([said, *filter(None, more)])


# --- what orders runs from outside -----------------------------------------------------------------------------

triggers = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show what orders runs from outside.")
_MOST_HEADERS: Final = 1 << 16
Trigger = Annotated[str, typer.Argument(metavar="NAME", help="The trigger: the NAME of [triggers.NAME].")]


def deliver(
    name: Trigger,
    headers: Annotated[
        Path,
        typer.Option("--headers", metavar="FILE", help="The headers of the request, a line NAME: VALUE for each."),
    ],
    as_document: AsDocument = False,
) -> None:
    """Hand a delivery to a trigger: a webhook's headers, and its body on standard input.

    It is proven, recorded, and ordered if the trigger says so. The same delivery twice is one order. It exits with 0
    where the delivery is taken, also if nothing was to be done.

    Examples:
      redfirst deliver label --headers headers.txt

      redfirst deliver label --headers headers.txt --json
    """
    from pipeline.app.triggers import deliver as take
    from pipeline.app.webhooks import LARGEST

    repository = Repository.find(Path.cwd())
    found = take(repository, os.environ, name, _headers(headers), sys.stdin.buffer.read(LARGEST + 1))
    print_result(found, _delivered_text, as_document=as_document)


def _delivered_text(found: DeliveryDocument) -> str:
    if found.order is None or found.result not in {"ordered", "held"}:
        return f"nothing is ordered: {found.note}"
    more = f"; it waits for: redfirst queue release {found.order}" if found.result == "held" else ""
    return f"{found.issue} is ordered ({found.order}){more}"


def _headers(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            lines = file.read(_MOST_HEADERS).decode(errors="replace").splitlines()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", Reason.USAGE, path=str(path)) from error
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


@triggers.command(name="list")
def list_all(as_document: AsDocument = False) -> None:
    """List the triggers, and how each stands.

    Examples:
      redfirst trigger list

      redfirst trigger list --json
    """
    from pipeline.app.triggers import list_triggers, read_triggers

    repository = Repository.find(Path.cwd())
    found = list_triggers(repository, os.environ, read_triggers(repository, os.environ))
    print_result(found, _triggers_text, as_document=as_document)


@triggers.command()
def resume(name: Trigger, as_document: AsDocument = False) -> None:
    """Let a trigger order again that failures have paused.

    Examples:
      redfirst trigger resume label

      redfirst trigger resume label --json
    """
    from pipeline.app.triggers import resume_trigger

    print_result(resume_trigger(Repository.find(Path.cwd()), os.environ, name), _triggers_text, as_document=as_document)


def _triggers_text(found: TriggersDocument) -> str:
    rows = [(f"{one.name}  {one.source}", _trigger_text(one)) for one in found.triggers]
    return "\n".join(columned(rows, None, indent=0)) or "There is no [triggers.NAME]."


def _trigger_text(one: TriggerRecord) -> str:
    said = ["on" if one.enabled else "off", f"{one.orders} order{'' if one.orders == 1 else 's'}"]
    said += [f"paused after failures: redfirst trigger resume {one.name}"] if one.paused else []
    said += [f"{one.missing} is not set"] if one.missing else []
    return ", ".join(said)
