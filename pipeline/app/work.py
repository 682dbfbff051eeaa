"""Tells a worker what it has to know: which orders could begin, what room there is, what is over. Starts one, too."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from pipeline.app.at_hub import HubClaim, line_of_claim, newer_base, view_hub
from pipeline.app.attend import attend
from pipeline.app.run_config import matrix_hash, read_config, refuse_recursion
from pipeline.app.run_list import ELSEWHERE, RunLine, has_ended, lines_of, list_runs
from pipeline.app.triggers import order_what_is_due
from pipeline.config.layers import Flags
from pipeline.config.tables import Overlap, Work
from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import JOURNAL, Clock, stamp, utc_now
from pipeline.outcomes import ASKED, COMPLETED, Outcome, Reason
from pipeline.queue.order_lines import NotNowError, OrderDropped, OrderEnded, OrderLine, RunWords
from pipeline.queue.orders import Order, OrderLog, Wanted, fleet_for, log_of
from pipeline.queue.pick import Candidate, Room, Verdict, pick
from pipeline.queue.postgres import spent_in_fleet
from pipeline.queue.slots import JOBS, FleetSlots, LocalSlots
from pipeline.queue.worker import Worker
from pipeline.reset_times import as_moment, moment_words
from pipeline.run import store
from pipeline.run.folder import Tail
from pipeline.run.hub import KEPT_REFS
from pipeline.run.journal_kinds import DispatchFinished
from pipeline.run.lease import FileLease
from pipeline.run.plans import planned
from pipeline.run.preconditions import base_branch, known_base
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster, seen_from
from pipeline.run.tracker import as_user_errors, in_tree
from pipeline.vocabulary import ISSUE_ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pipeline.config.model import Config
    from pipeline.repo import Repository
    from todo import Tracker


SWEEP: Final = "sweep"
"""By whom orders are that a worker places for what it finds."""
_ATTENDS_S: Final = 60.0
"""Seconds between two looks for gates whose time is over."""
_MIB: Final = 1024 * 1024
_WAITING: Final = frozenset({Outcome.PARKED, Outcome.PARTIAL})
_ASKS_NOBODY: Final = frozenset({"builtin", "off", "human"})
_T = TypeVar("_T")


@dataclass(frozen=True)
class _Known:
    """What a look has found out, for all orders.

    Attributes:
        claims: On issues, of runs that are here as they stand.
        worktrees: By their names; without those whose run has gone on at another machine.
        elsewhere: The claims of runs of other machines, by issue.
        at_hub: These by their run, and by their order.
        let_go: The same of runs that hold no issue any more, by order.
        heads: The branches of the hub.
        left: Runs that this machine had begun, and that hold no issue at the hub any more.
        lost: Folders here of runs of other machines, with the machine of each.
        made: The runs that are here, by the order that their worktree was made for.
    """

    claims: Mapping[str, store.Claim]
    worktrees: Mapping[str, Path]
    elsewhere: Mapping[str, HubClaim]
    at_hub: Mapping[str | None, HubClaim]
    let_go: Mapping[str, HubClaim]
    heads: Mapping[str, str]
    left: Collection[str]
    lost: Mapping[Path, str]
    made: Mapping[str | None, str]

    def there(self, order: Order) -> HubClaim | None:
        """Return the run of an order that is not here as it stands; None where there is none."""
        return self.at_hub.get(order.id) or self.at_hub.get(order.placed.run or "") or self.let_go.get(order.id)


class RepositoryWork:
    """What a worker asks of one repository.

    Args:
        repository: Seen from where the worker stands.
        environ: Its environment.
        jobs: How many drivers there may be; None: as the configuration says.
        clock: Tells the time.
    """

    def __init__(
        self, repository: Repository, environ: Mapping[str, str], jobs: int | None = None, *, clock: Clock = utc_now
    ) -> None:
        self.repository = repository
        self.environ = environ
        self._fleet = fleet = fleet_for(repository, environ)
        here = LocalSlots(state_folder(environ) / "slots")
        self.shared = FleetSlots(here, fleet.postgres, fleet.name) if fleet.postgres else here
        self._hub = fleet.hub
        self._away = ""
        self._here = f"repo-{fleet.name if fleet.postgres else store.repository_name(repository)}"
        self._jobs = jobs
        self._clock = clock
        self._attended = -_ATTENDS_S
        self._trackers: dict[str, Tracker] = {}
        self._configs: dict[tuple[object, ...], Config] = {}
        self._read: dict[str | None, RunLine | None] = {}
        self._last: _Known | None = None
        self._found: dict[object, object] = {}

    # --- what a worker asks ----------------------------------------------------------------------------------------

    def look(self, log: OrderLog, *, only: bool = False) -> tuple[list[Candidate], Room]:
        """Return the open orders and what room there is.

        Args:
            log: The orders. What is over, or missing, is written into it.
            only: Nothing is written.

        Raises:
            UserError: orders, configuration, tracker or claims cannot be read.
        """
        log.read_on()
        self._found.clear()
        self._last = known = self._known(log)
        if not only:
            for folder, host in known.lost.items():
                if folder.is_dir() and store.gone_on(folder) is None and not FileLease.is_held(folder):
                    store.note_gone_on(folder, host)  # who looks at it here is told
            if time.monotonic() - self._attended >= _ATTENDS_S:
                self._attended = time.monotonic()
                attend(self.repository, self._clock())
            self._settle(log, known)
            self._sweep(log, known)
            order_what_is_due(self.repository, self.environ, self._config(), log, self._clock())
        waiting = [one for one in log.orders.values() if one.is_open and not one.is_driven]
        candidates = [self._candidate(order, known) for order in waiting]
        return candidates, self._room(candidates)

    def argv(self, order: Order) -> tuple[str, ...]:
        """Return the words of `redfirst` that drive an order."""
        known = self._last or self._known()  # who starts it has looked just now, and holds the orders' lock
        folder, there = self._folder(order, known), known.there(order)
        if folder is not None:
            return ("resume", store.key_of_run(folder))
        if there is not None:
            return ("fleet", "take", there.run, "--resume", *_words(order).argv())
        return ("run", order.what, "--worktree", f"--order={order.id}", *order.placed.options.argv())

    def slots(self, order: Order | None = None) -> dict[str, int]:
        """Return of which kinds an order needs a slot, and how many there are of each; without one of what is usual."""
        work = self._config(order).limits.work
        here = {} if work.per_repo is None else {self._here: work.per_repo}
        each = work.per_provider
        asked = {} if each is None else {f"provider-{name}": each for name in sorted(self._providers(order))}
        return {JOBS: self._jobs or work.jobs, **here, **asked}

    def run_at(self, folder: str) -> str | None:
        """Return a run by worktree and name, of its folder."""
        return store.key_of_run(Path(folder))

    # --- what is over, and what is missing -------------------------------------------------------------------------

    def _settle(self, log: OrderLog, known: _Known) -> None:
        """Say of orders whose driver died after their run had come to its end that they are over."""
        ended: list[OrderEnded | OrderDropped] = []
        for order in log.orders.values():
            if not order.is_open or order.is_driven:
                continue
            folder, there = self._folder(order, known), known.there(order)
            line = _line(folder) if folder is not None else self._line_at_hub(there)
            run = store.key_of_run(folder) if folder is not None else there.run if there is not None else ""
            if line is not None and line.status == ELSEWHERE and line.issue is not None and run in known.left:
                ended.append(OrderDropped(order=order.id, why=f"{run} went to another machine and is over there"))
            if line is None or line.live or line.outcome is None or line.reason is None or line.status == ELSEWHERE:
                continue
            # it was found as it rested then, and has gone on since
            past = order.placed.via == SWEEP and order.placed.key != _swept(run, line)
            waits = line.outcome in _WAITING and (order.drivers or past)
            if waits or (has_ended(line) and (folder is None or not self._has_left(folder))):
                outcome, reason = line.outcome.value, line.reason.value
                ended.append(OrderEnded(order=order.id, run=run, outcome=outcome, reason=reason))
        if ended:
            with log.locked():
                log.add(*(one for one in ended if log.orders[one.order].is_open))

    def _sweep(self, log: OrderLog, known: _Known) -> None:
        """Order what nobody is at work on.

        That is a run that was answered, one with a claim whose driver died, and one that rests until a limit ends.
        """
        covered = self._covered(log, known)
        for folder in (*(claim.folder for claim in known.claims.values()), *self._answered(known)):
            line, run = _line(folder) if str(folder) not in covered else None, store.key_of_run(folder)
            if line is None or line.live or line.problem is not None or line.status == ELSEWHERE:
                continue
            if run in known.left and line.issue is not None:  # runs of recipes hold none
                continue
            limit = limit_of(line)
            if (line.outcome is not None and limit is None) or _is_over(log, run, line):
                continue
            origin = (one for one in log.orders.values() if run in {one.run, known.made.get(one.id)})
            words, key = _words(next(origin, None)), _swept(run, line)
            with log.locked():
                if not _is_over(log, run, line):  # another worker may have ended it since the look
                    log.place(Wanted(via=SWEEP, issue=line.issue, run=run, key=key, options=words, not_before=limit))
        if self._fleet.postgres:  # else each machine has orders of its own, and two would go on with one run
            self._sweep_hub(log, known)

    def _sweep_hub(self, log: OrderLog, known: _Known) -> None:
        """Order what was answered at a machine that may have no worker, and what a limit parked there.

        The key is the one that a worker of that machine would give, so that it is ordered once.
        """
        named = {name for one in log.orders.values() if one.is_open for name in (one.id, one.run, one.placed.run)}
        for claim in known.elsewhere.values():
            if claim.state == "driving" or named & {claim.run, claim.order}:
                continue
            line = self._line_at_hub(claim)
            if line is not None and (line.queued or limit_of(line) is not None):
                key, limit = _swept(claim.run, line), limit_of(line)
                words = _words(log.orders.get(claim.order or ""))
                wanted = Wanted(via=SWEEP, issue=line.issue, run=claim.run, key=key, options=words, not_before=limit)
                with log.locked():
                    log.place(wanted)

    def _covered(self, log: OrderLog, known: _Known) -> set[str]:
        return {str(self._folder(one, known)) for one in log.orders.values() if one.is_open}

    def _answered(self, known: _Known) -> Iterator[Path]:
        """Yield the runs that go on without a person and that nobody drives; those of recipes have no claim."""
        for line in self._runs(known):
            if line.queued or limit_of(line) is not None:
                yield folder_of(line)

    def _runs(self, known: _Known) -> Iterator[RunLine]:
        """Yield the runs that are here as they stand."""
        away = {claim.run for claim in known.elsewhere.values()}
        for line in list_runs(self.repository).runs:
            if line.status != ELSEWHERE and (not away or store.key_of_run(folder_of(line)) not in away):
                yield line

    def rests(self, log: OrderLog) -> dict[str, str]:
        """Return a sentence on each parked run that no open order is for, by what the run is called."""
        known = self._last or self._known()
        found = {str(self._hub): self._away} if self._away else dict[str, str]()
        covered = self._covered(log, known)
        for line in self._runs(known):
            if line.outcome is Outcome.PARKED and not line.live and str(folder_of(line)) not in covered:
                run = store.key_of_run(folder_of(line))
                key = _swept(run, line)
                is_over = _is_over(log, run, line) or any(one.placed.key == key for one in log.orders.values())
                found[run] = f"{run} is parked ({line.reason}): {_what_to_do(line, run, is_over=is_over)}"
        return found

    # --- facts -----------------------------------------------------------------------------------------------------

    def _once(self, what: object, find: Callable[[], _T]) -> _T:
        """Return what one look finds out once for all orders: with a thousand of them each question counts."""
        if what not in self._found:
            self._found[what] = find()
        return cast("_T", self._found[what])

    def _known(self, log: OrderLog | None = None) -> _Known:
        """Return what is known of claims and worktrees.

        Raises:
            NotNowError: the hub is out of reach.
        """
        found = {
            issue: claim for issue, claim in store.claims(self.repository).items() if isinstance(claim, store.Claim)
        }
        trees = {store.key_of_worktree(one.path): one for one in self.repository.worktrees() if one.is_there}
        places = {key: one.path for key, one in trees.items()}
        keys = ((claim.run, claim.run.partition("/")[0]) for claim in found.values())
        made_for = {run: store.order_of(self.repository.at(trees[key])) for run, key in keys if key in trees}
        begun = [] if log is None else [one.id for one in log.orders.values() if one.is_open]
        asked, self._away = [*begun, *filter(None, made_for.values())], ""
        hub = self._ask_hub(lambda url: view_hub(self.repository, url, asked))
        if hub is None:
            return _Known(found, places, {}, {}, {}, {}, (), {}, {order: run for run, order in made_for.items()})
        pushed = {ref.removeprefix(KEPT_REFS): oid for ref, oid in self.repository.refs(KEPT_REFS).items()}

        def is_here(claim: HubClaim) -> bool:
            worktree, _, name = claim.run.partition("/")
            if worktree not in places or claim.run in pushed:
                return worktree in places and claim.checkpoint in {None, pushed[claim.run]}
            # of a run that has ended no checkpoint is kept
            return claim.checkpoint is None or has_ended(_line(places[worktree] / store.WORKFLOW / name))

        there = {issue: claim for issue, claim in hub.claims.items() if not is_here(claim)}
        let_go = {order: claim for order, claim in hub.let_go.items() if not is_here(claim)}
        away = {claim.run: claim.host for claim in (*there.values(), *let_go.values())}
        # Of these the hub never heard, and another machine does what they were begun for, or did it.
        others = {claim.order: claim for claim in there.values() if claim.order is not None} | let_go
        away |= {run: others[order].host for run, order in made_for.items() if order in others}
        found = {issue: claim for issue, claim in found.items() if claim.run not in away}
        left = {run.partition("/")[0] for run in away}
        split = ((run.partition("/"), host) for run, host in away.items())
        lost = {places[key] / store.WORKFLOW / name: host for (key, _, name), host in split if key in places}
        places = {key: path for key, path in places.items() if key not in left}
        at_hub = {name: claim for claim in (*let_go.values(), *there.values()) for name in (claim.order, claim.run)}
        over = pushed.keys() - {claim.run for claim in hub.claims.values()}
        made = {order: run for run, order in made_for.items() if run not in away}
        return _Known(found, places, there, at_hub, let_go, hub.heads, over, lost, made)

    def _ask_hub(self, ask: Callable[[str], _T]) -> _T | None:
        """Return what the hub says; None without one, and where it is away and orders of this machine wait for nobody.

        Raises:
            NotNowError: it is out of reach, and the orders are of all its machines.
        """
        try:
            return None if self._hub is None else ask(self._hub)
        except UserError as error:
            if self._fleet.postgres:
                raise NotNowError(error.message, error.reason, actions=error.actions) from error
            self._away = f"{error.message}. Until it answers, nobody knows here what other machines have"
            return None

    def _line_at_hub(self, claim: HubClaim | None) -> RunLine | None:
        """Return the line of a run at the hub; each checkpoint is read once.

        Raises:
            NotNowError: the hub is out of reach.
        """
        if claim is not None and claim.checkpoint not in self._read:
            self._read[claim.checkpoint] = self._ask_hub(lambda url: line_of_claim(self.repository, url, claim))
        return None if claim is None else self._read[claim.checkpoint]

    def _folder(self, order: Order, known: _Known) -> Path | None:
        """Return the folder of the run of an order, None where it has none yet, or one that went on elsewhere."""
        if known.there(order) is not None:
            return None
        if (run := order.placed.run or known.made.get(order.id)) is not None:
            key, _, name = run.partition("/")
            place = known.worktrees.get(key)
            return None if place is None else place / store.WORKFLOW / name
        place = None if order.worktree is None else Path(order.worktree.folder)
        if place is None or place not in known.worktrees.values():  # another machine may have a folder of that name
            return None
        runs = place / store.WORKFLOW
        found = [one.parent for one in runs.glob("run-*/run.json")]
        last = max(found, key=lambda one: one.stat().st_mtime, default=None)
        # what another run kept from beginning has done nothing, and the order is still to be done
        return None if last is None or _line(last).reason is Reason.CLAIMED_ELSEWHERE else last

    def _candidate(self, order: Order, known: _Known) -> Candidate:
        folder = self._folder(order, known)
        waits = self._config().limits.work.overlap is Overlap.WAIT
        goes_on = folder is not None or known.there(order) is not None
        try:
            hindered = self._hindered(order, folder, known)
            ready = None if hindered or goes_on else self._place_in_list(order)
            providers = frozenset(self._providers(order))
        except UserError as error:  # it is this order's alone: the others may begin
            hindered, ready, providers = error.message, None, frozenset[str]()
        return Candidate(
            order=order.id,
            what=order.what,
            number=order.number,
            priority=order.placed.priority,
            goes_on=goes_on,
            ready=ready,
            hindered=hindered,
            providers=providers,
            writes=planned_paths(folder) if waits and folder is not None else frozenset(),
        )

    def _hindered(self, order: Order, folder: Path | None, known: _Known) -> str:
        """Return why an order cannot begin, whatever else is free."""
        if order.state == "held":
            return f"it is held: redfirst queue release {order.id}"
        if not order.is_due(self._clock()):
            line = None if folder is None else _line(folder)
            limited = line is not None and limit_of(line) is not None
            return limit_words(line) if line is not None and limited else f"not before {order.placed.not_before}"
        there = known.there(order)
        if there is None and order.what in known.elsewhere:
            return f"{known.elsewhere[order.what].run} of another machine has it"
        if folder is not None:
            line = _line(folder)
            if line.status == ELSEWHERE:
                return _goes_on_at(store.gone_on(folder) or "", store.key_of_run(folder))
            return "another process drives its run" if line.live else line.problem or ""
        if there is not None and there.matrix not in {None, matrix_hash()}:
            return (
                f"{there.run} began with another routing matrix, of redfirst {there.redfirst}. It waits for a worker "
                f"that has this, or for you: redfirst fleet take {there.run} --resume"
            )
        # a person has it: one that was begun for the order is told to stop
        is_theirs = not self._fleet.postgres or (order.left == "superseded" and there and there.state == "driving")
        if there and is_theirs and there.driver not in order.drivers:
            return _goes_on_at(there.host, there.run)
        if there is not None:
            return ""
        if order.placed.run is not None:
            return f"the worktree of {order.placed.run} is gone"
        claim = known.claims.get(order.what)
        if claim is not None:
            return f"{claim.name} in {Path(claim.worktree).name} has it"
        issues = self._tracker(order)
        with as_user_errors(issues):
            obstacle = issues.prerequisites(order.what)
        if obstacle is not None and obstacle.kind.value == Reason.DEPENDENCY_UNMET.value:
            return f"{', '.join(obstacle.issues)} has to land first"
        return ""  # what else is wrong with it the driver says, and the order is over

    def _place_in_list(self, order: Order) -> int | None:
        issues = self._tracker(order)
        with as_user_errors(issues):
            ready = self._once(issues, lambda: {issue.id: place for place, issue in enumerate(issues.ready())})
        return ready.get(order.what)

    def _tracker(self, order: Order) -> Tracker:
        """Return the issues as the base has them: what has landed."""
        tree = self._once(("base", order.placed.options.base), lambda: self.repository.tree_of(self._base(order)))
        if tree not in self._trackers:
            self._trackers[tree] = in_tree(self.repository, tree)
        return self._trackers[tree]

    def _base(self, order: Order) -> str:
        """Return what an order begins on: its base, or the hub's where that is ahead."""
        named = order.placed.options.base or known_base(self.repository)
        known = self._last
        if self._hub is not None and known is not None and named is not None:
            newer = newer_base(self.repository, self._hub, named, known.heads.get(named))
            if newer is not None:
                return newer
            if named not in known.heads and self.repository.resolve(named) is None:
                raise UserError(f"The branch {named} is neither here nor at the hub yet.", Reason.USAGE)
        return base_branch(self.repository, order.what, named)

    def _providers(self, order: Order | None) -> set[str]:
        config = self._config(order)
        agents = self._once(
            ("agents", id(config)), lambda: [one for role in ISSUE_ROLES for one in config.candidates(role)]
        )
        return {agent.service or agent.backend.value for agent in agents} - _ASKS_NOBODY

    def _config(self, order: Order | None = None) -> Config:
        """Return the configuration as it counts for an order, else for the worker."""
        words = ((), ()) if order is None else (order.placed.options.values, order.placed.options.agent)
        key = (self._once("HEAD", lambda: self.repository.resolve("HEAD") or ""), *words)
        if key not in self._configs:
            self._configs[key] = read_config(self.repository, key[0], Flags.parse(*words), self.environ).config
        return self._configs[key]

    def _has_left(self, folder: Path) -> bool:
        """Return whether a run that is over still has something outside the repository, which `resume` puts away."""
        there = seen_from(self.repository, folder)
        return store.state_of_run(state_folder(self.environ), there, folder.name).exists()

    # --- room ------------------------------------------------------------------------------------------------------

    def _room(self, candidates: list[Candidate]) -> Room:
        work = self._config().limits.work
        waits = work.overlap is Overlap.WAIT
        each = work.per_provider
        names = {name for one in candidates for name in one.providers} if each is not None else set[str]()
        return Room(
            jobs=self.shared.free(JOBS, self._jobs or work.jobs),
            here=None if work.per_repo is None else self.shared.free(self._here, work.per_repo),
            providers={name: self.shared.free(f"provider-{name}", each or 0) for name in names},
            full=self._full(work),
            writes={store.key_of_run(one): planned_paths(one) for one in live_runs(self.repository)} if waits else {},
            waits=waits,
        )

    def _full(self, work: Work) -> str:
        """Return why nobody may begin now; empty where nothing is in the way."""
        state = state_folder(self.environ)
        state.mkdir(parents=True, exist_ok=True)
        for place in (state, self.repository.main_checkout.parent):
            free = shutil.disk_usage(place).free // _MIB
            if free < work.min_free_mb:
                return f"the disk of {place} has {free} MiB left (limits.work.min_free_mb is {work.min_free_mb})"
        if work.cost_usd_day is not None:
            now = self._clock()
            spent = spent_today(self.repository, now)
            dsn, day = self._fleet.postgres, stamp(now)[:10]
            taken = spent_in_fleet(dsn, self._fleet.name, day, spent) if dsn is not None else sum(spent.values())
            if taken >= work.cost_usd_day:
                return f"models cost {taken:.2f} USD today (limits.work.cost_usd_day is {work.cost_usd_day:g})"
        return ""


def _words(order: Order | None) -> RunWords:
    """Return what every driver of a run has to be told that came of an order; another machine knows nothing of it."""
    said = RunWords() if order is None else order.placed.options
    return RunWords(agent=said.agent, values=said.values)


def _is_over(log: OrderLog, run: str, line: RunLine) -> bool:
    """Return whether an order did the run, or came to nothing and nothing has happened since.

    Its driver at a machine that froze may say something after another machine has done it. An order that a limit
    parked has not come to nothing; that none is placed twice for it the key sees to.
    """
    closed = [one for one in log.orders.values() if one.closed_at and run in {one.run, one.placed.run}]
    if line.outcome is None and any((one.closed_at or "") >= (line.last_at or "") for one in closed):
        return True
    return any(one.outcome in COMPLETED for one in closed)


def _swept(run: str, line: RunLine) -> str:
    """Return the key of an order for a run as it was found."""
    return f"{run}@{line.last_at}"


def _line(folder: Path) -> RunLine:
    return lines_of([folder])[0]


# --- a worker over it ----------------------------------------------------------------------------------------------


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
    with suppress(NotNowError):  # it is said when the worker looks, and tried again
        if log.rows.is_there:
            with log.locked():  # one that is damaged is made anew
                pass
        else:  # somebody may have ordered with other variables than a timer has
            needs = "who orders needs the worker's HOME, XDG_STATE_HOME and fleet.hub"
            say(f"no order was ever placed in {log.rows.where}: {needs}")
    return Worker(log, work.shared, work, repository.worktree, environ, told, waits, say)


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


def live_runs(repository: Repository) -> list[Path]:
    """Return the folders of the runs that are driven now."""
    return [run.folder for run in Roster(repository).runs if FileLease.is_held(run.folder)]


def planned_paths(folder: Path) -> frozenset[str]:
    """Return the paths that the plan of a run names, nothing where it has none or cannot be read."""
    try:
        return frozenset(change.path for change in planned(Run.load(folder, driving=False)).files)
    except (LookupError, UserError, OSError, ValueError):
        return frozenset()


def spent_today(repository: Repository, now: datetime) -> dict[str, float]:
    """Return what models are known to have cost since midnight (UTC), in USD by run that cost any."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    since, found = stamp(midnight), dict[str, float]()
    for run in Roster(repository).runs:
        try:
            if (run.folder / JOURNAL).stat().st_mtime < midnight.timestamp():
                continue
            lines = Tail(run.folder).lines()
        except (UserError, OSError):  # `runs` says what is wrong with it
            continue
        ended = (line.data for line in lines if line.at >= since and isinstance(line.data, DispatchFinished))
        if cost := sum(one.usage.cost_usd or 0 for one in ended):
            found[store.key_of_run(run.folder)] = cost
    return found


def _goes_on_at(host: str, run: str) -> str:
    return f"{host} goes on with {run}. If it does not: redfirst fleet take {run} --resume"


def folder_of(line: RunLine) -> Path:
    """Return the folder of a run."""
    return Path(line.worktree) / store.WORKFLOW / line.name


def limit_of(line: RunLine) -> datetime | None:
    """Return when the limit ends that a run is parked by, or that its dead driver waited for; None where none is known.

    Who stopped a run by hand takes it up by hand.
    """
    waits = line.outcome in {None, Outcome.PARKED} and not line.live
    try:
        return as_moment(line.not_before) if waits and line.not_before is not None else None
    except (ValueError, OverflowError):  # a stranger's journal
        return None


def limit_words(line: RunLine, *, is_over: bool = False) -> str:
    """Return why a run that is limited does not go on, and what to do who cannot wait, or whose order is over."""
    until = moment_words(line.not_before or "")
    resume = f"redfirst resume {store.key_of_run(folder_of(line))}"
    then = "Its order is over, so go on with it then by" if is_over else "It goes on then, and before by"
    return f"not before {until}, when the limit of its account ends. {then}: {resume}"


def _what_to_do(line: RunLine, run: str, *, is_over: bool) -> str:
    if limit_of(line) is not None:
        return limit_words(line, is_over=is_over)
    if line.reason in ASKED:
        return f"it waits for you at {line.gate_place or 'a question'}: redfirst show {run} --packet"
    if line.reason is Reason.AGENT_UNAVAILABLE:
        return f"nobody said when its service is there again. When it is: redfirst resume {run}"
    return f"see what it needs: redfirst show {run}"
