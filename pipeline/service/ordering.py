"""Orders issues and runs as people name them, after it has looked whether they exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.config.layers import Flags
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.queue.orders import Wanted, log_of
from pipeline.runs.preconditions import base_branch
from pipeline.runs.roster import Roster
from pipeline.runs.store import key_of_run
from pipeline.runs.tracker import named_in, read_committed
from pipeline.service.run_config import read_config, refuse_recursion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.git import Repository
    from pipeline.queue.lines import RunWords
    from pipeline.queue.orders import Order


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
        UserError: there is no such issue or run, or a value of the configuration is not accepted.
    """
    refuse_recursion(environ)
    read_config(repository, repository.resolve("HEAD") or "", Flags.parse(words.values, words.agent), environ)
    wanted = [_wanted(repository, name, words, priority=priority, held=held, via=via) for name in names]
    with log_of(repository, environ).locked() as log:
        return [log.place(one)[0] for one in wanted]


def _wanted(repository: Repository, name: str, words: RunWords, *, priority: int, held: bool, via: str) -> Wanted:
    if name.rpartition("/")[2].startswith("run-"):
        place = Roster(repository).find(name)
        return Wanted(via=via, run=key_of_run(place.folder), priority=priority, held=held)
    issue = named_in(repository.worktree, name)
    base = base_branch(repository, issue, words.base)
    commit = repository.resolve(base)
    if commit is None:
        raise UserError(f"The branch {base} has no commit yet. Commit the project first.", Reason.USAGE)
    read_committed(repository, commit, issue, base)
    return Wanted(via=via, issue=issue, options=words, priority=priority, held=held)
