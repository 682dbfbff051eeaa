"""Starts a worker for a repository, or says what it would begin (ADR-R210)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.queue.orders import log_of
from pipeline.queue.pick import pick
from pipeline.queue.worker import Place, Worker
from pipeline.service.run_config import refuse_recursion
from pipeline.service.work import RepositoryWork

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.git import Repository
    from pipeline.queue.lines import OrderLine
    from pipeline.queue.orders import Order
    from pipeline.queue.pick import Verdict


def worker_of(
    repository: Repository,
    environ: Mapping[str, str],
    jobs: int | None,
    told: Callable[[OrderLine, Order], None],
    waits: Callable[[Verdict], None],
    say: Callable[[str], None],
) -> Worker:
    """Return a worker for a repository.

    Args:
        repository: Seen from where somebody stands.
        environ: Their environment.
        jobs: How many drivers there may be; None: as the configuration says.
        told: Is told of each line about orders that is written from now on, and of its order.
        waits: Is told of each order that does not begin, once for each reason.
        say: Takes what is said of the worker itself.

    Raises:
        UserError: this is one of our own agents, or the orders are damaged.
    """
    refuse_recursion(environ)
    work, log = RepositoryWork(repository, environ, jobs), log_of(repository, environ)
    if log.is_there:
        with log.locked():  # one that is damaged is made anew
            pass
    else:  # somebody may have ordered with other variables than a timer has
        say(f"no order was ever placed in {log.path}: HOME and XDG_STATE_HOME of who orders have to be the worker's")
    return Worker(log, work.machine, work, Place(repository.worktree, environ), told, waits, say)


def verdicts(repository: Repository, environ: Mapping[str, str], jobs: int | None) -> list[tuple[Order, Verdict]]:
    """Return of each open order whether a worker would begin it now, and why not; nothing is written.

    Raises:
        UserError: orders, configuration, tracker or claims cannot be read.
    """
    log = log_of(repository, environ)
    candidates, room = RepositoryWork(repository, environ, jobs).look(log, only=True)
    return [(log.orders[one.order], one) for one in pick(candidates, room)]


def resting(repository: Repository, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence on each parked run that no open order is for.

    Raises:
        UserError: the orders are damaged.
    """
    log = log_of(repository, environ)
    log.read_on()
    return tuple(RepositoryWork(repository, environ).rests(log).values())
