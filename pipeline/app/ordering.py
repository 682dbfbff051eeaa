"""Orders issues and runs as people name them, and defines what `queue` and `work --dry-run` tell of orders."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pipeline.config.layers import Flags
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue.order_lines import RunWords
from pipeline.queue.orders import Order, Wanted, log_of
from pipeline.run.preconditions import base_branch
from pipeline.run.runs_of_repository import Roster
from pipeline.run.store import key_of_run, key_of_worktree
from pipeline.run.tracker import committed_issue, in_tree, in_worktree
from todo import TrackerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipeline.app.run_list import RunLine
    from pipeline.queue.pick import Verdict
    from pipeline.repo import Repository


class OrderRecord(Frozen):
    """One order. `begins` and `why` (it does not) are null where nobody looked whether it could.

    `not_before` is when it may begin; where it has a run, when the limit of an account ends that this waits for or is
    parked by.
    """

    order: str
    do: Literal["run", "resume"]
    issue: str | None
    run: str | None
    state: Literal["queued", "held", "started", "ended", "dropped"]
    via: str
    priority: int
    placed_at: str
    not_before: str | None
    starts: int
    deaths: int
    log: str | None
    outcome: str | None
    reason: str | None
    note: str
    closed_at: str | None
    begins: bool | None = None
    why: str | None = None


class QueueDocument(Frozen):
    """What these commands print with `--json`."""

    schema_: Literal["redfirst.queue/1"] = Field(default="redfirst.queue/1", alias="schema")
    ok: Literal[True] = True
    orders: tuple[OrderRecord, ...]


def record_of(order: Order, verdict: Verdict | None = None, line: RunLine | None = None) -> OrderRecord:
    """Return an order as documents have it; *line* is of its run, where somebody looked."""
    return OrderRecord.from_fields(
        order,
        order.placed,
        order=order.id,
        run=order.run or order.placed.run,
        state=order.state if not order.is_open or order.state == "held" else "started" if order.is_driven else "queued",
        not_before=(line.not_before if line is not None else None) or order.placed.not_before,
        starts=len(order.drivers),
        begins=None if verdict is None else verdict.begins,
        why=None if verdict is None or verdict.begins else verdict.why,
    )


def limited(order: Order) -> bool:
    """Return whether the run of an order may wait for the end of a limit, or be parked by it."""
    return order.is_driven if order.is_open else order.reason == Reason.AGENT_UNAVAILABLE.value


def queue_document(orders: Iterable[Order], runs: Sequence[RunLine] = ()) -> QueueDocument:
    """Return the orders as a document, with what *runs* say of theirs; the newest run comes first."""
    by_key = {f"{key_of_worktree(Path(line.worktree))}/{line.name}": line for line in runs}
    by_place = {line.worktree: line for line in reversed(runs)}

    def line_of(order: Order) -> RunLine | None:
        if not limited(order):
            return None
        name = order.run or order.placed.run
        if name is not None:
            return by_key.get(name)
        return by_place.get(order.worktree.folder) if order.worktree is not None else None

    return QueueDocument(orders=tuple(record_of(order, line=line_of(order)) for order in orders))


def order(
    repository: Repository,
    environ: Mapping[str, str],
    names: Sequence[str],
    words: RunWords,
    *,
    priority: int = 0,
    held: bool = False,
    via: str = "cli",
) -> list[Order]:
    """Place an order for each issue or run, unless there is an open one; return them. All of them, or none.

    Args:
        repository: Seen from where somebody stands.
        environ: Their environment.
        names: Issues; or runs that are to go on, by their names (`run-GAL-39`).
        words: What of the command line of `run` is given.
        priority: Higher ones begin first.
        held: Whether they wait until they are released.
        via: Who orders.

    Raises:
        UserError: there is no such issue, run or recipe, a value of the configuration is not accepted, or an open order
            does not do what is asked.
    """
    from pipeline.app.recipe_choice import chosen  # noqa: PLC0415  (heavy, and no list needs it)
    from pipeline.app.recipe_files import RecipeFiles  # noqa: PLC0415  (the same)
    from pipeline.app.run_config import read_config, refuse_recursion  # noqa: PLC0415  (the same)

    refuse_recursion(environ)
    tip = repository.resolve("HEAD")
    read_config(repository, tip or "", Flags.parse(words.values, words.agent), environ)
    if words.recipe is not None:
        chosen(RecipeFiles(repository, tip, environ), words.recipe, repository)
    wanted = list(_wanted(repository, names, Wanted(via=via, options=words, priority=priority, held=held)))
    with log_of(repository, environ).locked() as log:
        for one in wanted:
            if (there := log.there(one)) is not None:
                _refuse_other(one, there)
        return [log.place(one)[0] for one in wanted]


def _refuse_other(wanted: Wanted, there: Order) -> None:
    """Refuse what an order that is open already would not do: without this, it began without what was asked."""
    is_other = wanted.options not in (RunWords(), there.placed.options)
    is_other = is_other or wanted.priority not in {0, there.placed.priority}
    if is_other or (wanted.held and there.state != "held"):
        hold = (f"redfirst queue hold {there.id}",) if wanted.held else ()
        raise UserError(
            f"{there.what} is in the queue already ({there.id}, {there.state}), with other words or another priority, "
            "or not held. Nothing was ordered. Drop that order, then order it again.",
            Reason.USAGE,
            details={"order": there.id},
            actions=(f"redfirst queue drop {there.id}", *hold),
        )


def _wanted(repository: Repository, names: Iterable[str], each: Wanted) -> Iterator[Wanted]:
    """Yield what is wanted by each name. The issues here, and those of the base, are read once for all of them."""
    here, committed, base = in_worktree(repository.worktree), None, ""
    for name in names:
        if name.rpartition("/")[2].startswith("run-"):
            yield replace(each, run=key_of_run(Roster(repository).find(name).folder), options=RunWords())
            continue
        issue = name
        with suppress(TrackerError):  # what is here may not tell
            issue = here.named(name)
        if committed is None:
            base = base_branch(repository, issue, each.options.base)
            commit = repository.resolve(base)
            if commit is None:
                message = f"The branch {base} has no commit yet. Commit the project first."
                raise UserError(message, Reason.USAGE)
            committed = in_tree(repository, repository.tree_of(commit))
        committed_issue(repository, committed, issue, base)
        yield replace(each, issue=issue)
