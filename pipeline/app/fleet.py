"""Makes the database of a fleet ready, tells who works there and which runs its hub keeps, and brings one here.

What is brought is what the last checkpoint has. Nothing is decided by it: the machine that goes on says so to the hub
with its first checkpoint, and of two the hub takes one. What a stranger could put there is read as any run folder is.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.app.at_hub import HubView, probe_hub, refs_of_hub, view_hub
from pipeline.app.documents import Check
from pipeline.app.ordering import record_of
from pipeline.app.run_config import read_config
from pipeline.app.run_list import line_at
from pipeline.app.work import RepositoryWork
from pipeline.app.worktrees import free_places, make_worktree
from pipeline.config.layers import Flags
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import JOURNAL, readable
from pipeline.outcomes import ASKED, COMPLETED, Reason, status_word
from pipeline.progress import counted
from pipeline.queue.orders import fleet_of, read
from pipeline.queue.postgres import STALLED_S, WorkerSeen, clock_of, machine_name, make_schema, workers_of
from pipeline.repo import Repository
from pipeline.run import store, tracker
from pipeline.run.files import write_atomic
from pipeline.run.hub import CHECKPOINT_REFS, RUN_FOLDER
from pipeline.run.info import RunInfo
from pipeline.run.journal_kinds import TrackerWritten
from pipeline.run.lease import FileLease
from pipeline.run.preconditions import known_base
from pipeline.run.recipe_run import load_run
from pipeline.run.run_ref import keep
from pipeline.steps.landing import Found, move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipeline.config.tables import Fleet


class FleetInitDocument(Frozen):
    """What `fleet init` prints with `--json`: the tables that it made."""

    schema_: Literal["redfirst.fleet-init/1"] = Field(default="redfirst.fleet-init/1", alias="schema")
    ok: Literal[True] = True
    repository: str
    made: tuple[str, ...]


class FleetWorker(Frozen):
    """A worker that is connected. It is stalled, and has no orders any more, if it has been silent for 30 seconds."""

    machine: str
    pid: int
    address: str | None
    silent_s: float | None
    stalled: bool


class FleetSlot(Frozen):
    """How many slots there are of a kind, and how many are free. `jobs` are those of this machine."""

    kind: str
    most: int
    free: int


class FleetDocument(Frozen):
    """What `fleet status` prints with `--json`; orders are counted by their state."""

    schema_: Literal["redfirst.fleet/1"] = Field(default="redfirst.fleet/1", alias="schema")
    ok: Literal[True] = True
    repository: str
    hub: str
    orders: dict[str, int]
    workers: tuple[FleetWorker, ...]
    slots: tuple[FleetSlot, ...]


class FleetDoctorDocument(Frozen):
    """What `fleet doctor` prints with `--json`; `ok` is false where a check has failed."""

    schema_: Literal["redfirst.fleet-doctor/1"] = Field(default="redfirst.fleet-doctor/1", alias="schema")
    ok: bool
    checks: tuple[Check, ...]


def begin_fleet(environ: Mapping[str, str]) -> FleetInitDocument:
    """Make the tables that are missing.

    Raises:
        UserError: there is no fleet in the configuration, or its server does not take them.
    """
    fleet, dsn = _server_of(environ)
    return FleetInitDocument(repository=fleet.name, made=make_schema(dsn))


def fleet_status(repository: Repository, environ: Mapping[str, str]) -> FleetDocument:
    """Return how the fleet stands, as seen from a repository.

    Raises:
        UserError: there is no fleet in the configuration, or its server cannot be asked.
    """
    fleet, dsn = _server_of(environ)
    url = hub_of(repository, environ)
    orders = [record_of(one).state for one in read(repository, environ)]
    work = RepositoryWork(repository, environ)
    return FleetDocument(
        repository=fleet.name,
        hub=url,
        orders=dict(sorted(Counter(orders).items())),
        workers=tuple(FleetWorker(**asdict(one), stalled=one.is_stalled) for one in workers_of(dsn)),
        slots=tuple(
            FleetSlot(kind=kind, most=most, free=work.shared.free(kind, most)) for kind, most in work.slots().items()
        ),
    )


def fleet_doctor(repository: Repository, environ: Mapping[str, str]) -> FleetDoctorDocument:
    """Return what keeps this machine from working in its fleet, and what of the fleet a person should look at.

    A ref is made at the hub and removed again: so it is known that this machine may push.

    Raises:
        UserError: there is no fleet in the configuration, or the repository is of none.
    """
    url, checks = hub_of(repository, environ), list[Check]()
    view: HubView | None = None
    try:
        view = view_hub(repository, url)
        probe_hub(repository, url)
        checks.append(Check.ok("hub", f"{url} answers, and takes what this machine pushes"))
        checks.append(_base(repository, view))
    except UserError as error:
        checks.append(Check.failed("hub", error))
    dsn = fleet_of(environ).postgres
    if dsn is not None:
        try:
            checks += [_clock(clock_of(dsn)), *_workers(repository, environ, workers_of(dsn), view)]
        except UserError as error:
            checks.append(Check.failed("postgres", error))
    return FleetDoctorDocument(ok=all(one.status != "fail" for one in checks), checks=tuple(checks))


def _base(repository: Repository, view: HubView) -> Check:
    """Return whether other machines have what orders of this one begin on."""
    base = known_base(repository)
    here = repository.resolve(f"refs/heads/{base}")
    there = view.heads.get(base or "")
    if base is None or here is None or here == there:
        return Check.ok("base", f"{base} is at the hub as it is here")
    has_it = there is not None and repository.resolve(f"{there}^{{tree}}") is not None
    if there is not None and (not has_it or repository.is_ancestor(here, there)):
        return Check.ok("base", f"orders begin at {base} of the hub, {there[:12]}")
    message = f"{base} has commits here that the hub does not have: other machines begin without them"
    return Check.warn("base", message, f"push {base} to the hub")


_CLOCK_S: Final = 60.0


def _clock(server: float) -> Check:
    """Return whether the clock here is that of the server."""
    off = time.time() - server
    if abs(off) < _CLOCK_S:
        return Check.ok("postgres", "it answers, and its clock is that of this machine")
    message = f"the clock here is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} that of Postgres"
    return Check.warn("postgres", message, "set it: schedules and `not_before` follow it")


def _workers(
    repository: Repository, environ: Mapping[str, str], workers: list[WorkerSeen], view: HubView | None
) -> Iterator[Check]:
    """Yield who works, and which runs nobody drives as far as can be seen."""
    silent = [f"{one.pid} on {one.machine}" for one in workers if one.is_stalled]
    if silent:
        message = f"silent for more than {STALLED_S} s: {', '.join(silent)}. Their orders are free for others"
        yield Check.warn("workers", message, "end or mend these processes")
    elif not workers:
        yield Check.warn("workers", "no worker is connected", "redfirst work")
    else:
        message = f"{counted(len(workers), 'worker')} connected to this server, of all hubs that meet there"
        yield Check.ok("workers", message)
    open_orders = {one.id for one in read(repository, environ) if one.is_open}
    machines = {one.machine for one in workers}
    left = [
        one.run
        for one in (view.claims.values() if view is not None else ())
        if one.state == "driving" and one.order not in open_orders and machine_name(one.host) not in machines
    ]
    if left:
        message = f"no worker is connected where these runs were driven last: {', '.join(left)}"
        yield Check.warn("runs", message, "if nobody drives them: redfirst fleet take RUN")


def _server_of(environ: Mapping[str, str]) -> tuple[Fleet, str]:
    fleet = fleet_of(environ)
    if fleet.postgres is None:
        raise UserError(
            "Your configuration names no fleet: this machine works alone. Say where the others meet:",
            Reason.CONFIG,
            actions=(
                "redfirst config set --user fleet.hub URL",
                "redfirst config set --user fleet.postgres 'host=HOST dbname=redfirst user=USER'",
            ),
        )
    return fleet, fleet.postgres


_MOST_FILES: Final = 100_000
_PLAIN: Final = "100644"


class FleetRun(Frozen):
    """A run as its last checkpoint at the hub has it.

    `run` is its worktree and name. `state` is what the claim on its issue says, null where nobody has one: `driving`,
    `parked`, `stopped` or `queued`. `outcome` is how it ended or rests. `host` is the machine that wrote the last line,
    at `last_at`; it has a process that drives it, or had one. `here` is its folder on this machine, if there is one.
    """

    run: str
    issue: str | None
    branch: str
    state: str | None
    outcome: str | None = None
    host: str
    epoch: int
    lines: int
    last_at: str
    here: str | None


class FleetRunsDocument(Frozen):
    """What `redfirst fleet runs --json` prints; a checkpoint that cannot be read is named in `unreadable`."""

    schema_: Literal["redfirst.fleet-runs/1"] = Field(default="redfirst.fleet-runs/1", alias="schema")
    ok: Literal[True] = True
    hub: str
    runs: tuple[FleetRun, ...]
    unreadable: tuple[str, ...] = ()


class TakenDocument(Frozen):
    """What `redfirst fleet take --json` prints: where the run is now, and how it goes on."""

    schema_: Literal["redfirst.fleet-taken/1"] = Field(default="redfirst.fleet-taken/1", alias="schema")
    ok: Literal[True] = True
    run: str
    folder: str
    branch: str
    set_aside: str | None
    next: str


@dataclass(frozen=True)
class _Kept:
    """A run at the hub: its name by worktree, its last checkpoint, run.json and the lines of its journal."""

    key: str
    checkpoint: str
    info: RunInfo
    journal: bytes


def hub_of(repository: Repository, environ: Mapping[str, str]) -> str:
    """Return the URL of the hub.

    Raises:
        UserError: the user's configuration names none.
    """
    url = read_config(repository, repository.resolve("HEAD") or "", Flags(), environ).config.fleet.hub
    if url is None:
        raise UserError(
            "No hub is configured. A hub is a bare git repository that all machines of a fleet reach. Make one with "
            "`git init --bare`, and name it in your own configuration.",
            Reason.CONFIG,
            actions=("redfirst config set --user fleet.hub URL",),
        )
    if not repository.has_remote(url):
        raise UserError(
            f"No remote of this repository is the hub {url}, so none of its runs is there.",
            Reason.CONFIG,
            actions=(f"git remote add hub {shlex.quote(url)}",),
        )
    return url


def runs(repository: Repository, environ: Mapping[str, str]) -> FleetRunsDocument:
    """Return every run that the hub has a checkpoint of, the one that was written last first.

    Raises:
        UserError: there is no hub, or it is out of reach.
    """
    url = hub_of(repository, environ)
    refs = refs_of_hub(repository, url, f"{CHECKPOINT_REFS}*", f"{store.claim_ref('*')}")
    found: list[FleetRun] = []
    unreadable: list[str] = []
    here = {store.key_of_worktree(one.path): one.path for one in repository.worktrees() if one.is_there}
    for ref, oid in refs.items():
        if not ref.startswith(CHECKPOINT_REFS):
            continue
        key = ref.removeprefix(CHECKPOINT_REFS)
        try:
            kept = _read(repository, key, oid)
        except UserError as error:
            unreadable.append(error.message)
            continue
        found.append(_record_of(repository, kept, refs, here))
    found.sort(key=lambda one: one.last_at, reverse=True)
    return FleetRunsDocument(hub=url, runs=tuple(found), unreadable=tuple(unreadable))


def _record_of(repository: Repository, kept: _Kept, refs: Mapping[str, str], here: Mapping[str, Path]) -> FleetRun:
    lines = readable(kept.journal)
    claim = refs.get(store.claim_ref(kept.info.issue or ""))
    held = store.read_claim(repository, claim) if claim is not None else None
    worktree = here.get(kept.key.partition("/")[0])
    folder = worktree / store.WORKFLOW / kept.info.run_id if worktree is not None else None
    last, line = lines[-1] if lines else None, line_at(repository, kept.key, kept.checkpoint)
    return FleetRun(
        run=kept.key,
        issue=kept.info.issue,
        branch=kept.info.branch,
        state=held.state if held is not None and held.run == kept.key else None,
        outcome=status_word(line.outcome, line.reason) if line is not None and line.outcome is not None else None,
        host=last.host if last is not None else "",
        epoch=last.epoch if last is not None else 0,
        lines=len(lines),
        last_at=last.at if last is not None else kept.info.started_at,
        here=str(folder) if folder is not None and folder.is_dir() else None,
    )


def take(repository: Repository, environ: Mapping[str, str], name: str, say: Callable[[str], None]) -> TakenDocument:
    """Bring a run from the hub, into the worktree that it has here or into a new one; nothing is driven.

    Args:
        repository: Seen from where somebody stands.
        environ: Their environment.
        name: The run, alone or behind the name of its worktree.
        say: Takes what is worth telling.

    Raises:
        UserError: there is no such run, it is driven here, or a place of it is taken.
    """
    url = hub_of(repository, environ)
    refs = refs_of_hub(repository, url, f"{CHECKPOINT_REFS}*", brings=lambda _: False)
    keys = [ref.removeprefix(CHECKPOINT_REFS) for ref in refs]
    fits = [key for key in keys if name in {key, key.rpartition("/")[2]}]
    fits = fits or [key for key in keys if key.rpartition("/")[2].casefold() == f"run-{name}".casefold()]
    if len(fits) != 1:
        what = "several runs" if fits else "no run"
        raise UserError(
            f"The hub has {what} called {name!r}. Name one as the list has it.",
            Reason.USAGE,
            details={"runs": fits or keys},
            actions=("redfirst fleet runs",),
        )
    ref = f"{CHECKPOINT_REFS}{fits[0]}"
    kept = _read(repository, fits[0], refs_of_hub(repository, url, ref).get(ref, refs[ref]))
    claim = view_hub(repository, url).claims.get(kept.info.issue or "")
    order = claim.order if claim is not None and claim.run == kept.key else None
    _refuse_other_run(repository, kept, order)
    places = {store.key_of_worktree(one.path): one.path for one in repository.worktrees() if one.is_there}
    place = places.get(kept.key.partition("/")[0])
    if place is None:
        made = _new_worktree(repository, url, kept, order)
        say(f"made the worktree {made.worktree} on branch {kept.info.branch}")
        aside = None
    else:
        made = Repository.find(place)
        aside = _make_room(place / store.WORKFLOW / kept.info.run_id, kept)
        (place / store.WORKFLOW / kept.info.run_id / store.GONE_ON).unlink(missing_ok=True)
    folder = made.worktree / store.WORKFLOW / kept.info.run_id
    if not folder.exists():
        _write(made, kept, folder)
    with FileLease.take(folder):
        run = load_run(folder, driving=True)
        keep(made, run, whole=run.state.has_ended)
        if kept.info.issue is not None and not run.state.has_ended:
            store.take_claim(made, kept.info.issue, kept.info.run_id)
            if place is None and run.journal.of(TrackerWritten):
                tracker.show_again(run, made.worktree)
        if place is not None and run.state.has_ended:
            tracker.put_back(run, made.worktree)
            _bring_commits(made, url, kept.info.branch, say)
    goes_on = not run.state.has_ended and run.state.reason not in ASKED
    does = "resume" if goes_on else "land" if run.state.outcome in COMPLETED else "show"
    return TakenDocument(
        run=kept.key, folder=str(folder), branch=kept.info.branch, set_aside=None if aside is None else str(aside),
        next=f"cd {shlex.quote(str(made.worktree))} && redfirst {does} {kept.info.run_id}",
    )  # fmt: skip


def _bring_commits(made: Repository, url: str, branch: str, say: Callable[[str], None]) -> None:
    """Bring what a run has published to its worktree here: its commits in any case, the branch if it can move."""
    ref = f"refs/heads/{branch}"
    here, there = made.resolve(ref), refs_of_hub(made, url, ref).get(ref)
    if here is None or there in {None, here}:
        return
    found, why = Found.BASE_MOVED, "it has commits of its own"
    if made.is_ancestor(here, str(there)):
        found, why = move(made, branch, here, str(there), time.time())
    if found is not Found.VERIFIED:
        say(f"{branch} stays at {here[:12]} here, and is at {str(there)[:12]} at the hub: {why}")


def _refuse_other_run(repository: Repository, kept: _Kept, order: str | None) -> None:
    """Refuse to take a run whose issue another one of this machine has.

    One that was begun for the same order, and whose driver died before the hub heard of it, has to let go instead.
    """
    issue = kept.info.issue
    claim = None if issue is None else store.claim_on(repository, issue)
    if issue is not None and claim is not None and claim.run != kept.key:
        key, _, name = claim.run.partition("/")
        for one in repository.worktrees() if order is not None else ():
            mine = (
                one.is_there and store.key_of_worktree(one.path) == key and store.order_of(repository.at(one)) == order
            )
            if mine and not FileLease.is_held(one.path / store.WORKFLOW / name):
                repository.delete_ref(store.claim_ref(issue))
                return
        raise UserError(
            f"{claim.run} of this machine has {issue}. Give that up first, or leave {kept.info.run_id} where it is.",
            Reason.CLAIMED_ELSEWHERE,
            actions=(f"redfirst show {claim.run}", f"redfirst abandon {claim.run}"),
        )


def _make_room(folder: Path, kept: _Kept) -> Path | None:
    """Set aside what is here of a run, unless the hub has no more of it; return where it is then.

    Raises:
        UserError: a process of this machine drives the run.
    """
    if not folder.is_dir():
        return None
    if FileLease.is_held(folder):
        raise UserError(
            f"A process of this machine drives {folder.name}. Nothing was changed. Stop it first: redfirst stop "
            f"{folder.name}",
            Reason.LOCKED,
            path=str(folder),
            actions=(f"redfirst stop {folder.name}",),
        )
    is_whole = all((folder / name).is_file() for name in ("run.json", JOURNAL))  # what another take left may not be
    if is_whole and (folder / JOURNAL).read_bytes().startswith(kept.journal):
        return None  # what is here goes on from there
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = folder.with_name(f"left-{folder.name}-{moment}")
    folder.rename(aside)
    return aside


def _new_worktree(repository: Repository, url: str, kept: _Kept, order: str | None) -> Repository:
    """Return a new worktree on the branch of the run, called as its worktree is everywhere."""
    ref = f"refs/heads/{kept.info.branch}"
    _free_branch(repository, kept.info.branch)
    there = refs_of_hub(repository, url, ref).get(ref, kept.info.start_commit)
    here = repository.resolve(ref)
    if here not in {None, there}:
        raise UserError(
            f"The branch {kept.info.branch} is at {str(here)[:12]} here, and at {there[:12]} where the run is. Rename "
            "yours, or bring it there, then try again.",
            Reason.BRANCH_MOVED,
            actions=(f"git log {there[:12]}..{kept.info.branch}",),
        )
    _, folder = next(free_places(repository, (kept.info.issue or kept.info.run_id).lower()))
    branch, issue = kept.info.branch, kept.info.issue
    made = make_worktree(repository, folder, branch, there, issue=issue, order=order, is_new=here is None)
    store.keep_key(made.worktree, kept.key.partition("/")[0])
    return made


def _free_branch(repository: Repository, branch: str) -> None:
    """Let a worktree go of a branch that redfirst made for a run, where no run of it ever came to anything.

    A driver that died before its run had the issue leaves one, and the run of another machine has the same branch. The
    files of that worktree stay, without a branch.
    """
    for one in repository.worktrees():
        owner = store.owner_of(one.git_dir) if one.is_there else None
        there = repository.at(one)
        if owner is None or there.branch() != branch:
            continue
        tip, folders = there.resolve("HEAD"), one.path.glob(f"{store.WORKFLOW}/run-*")
        if tip is not None and tip == owner.get("tip") and not any(FileLease.is_held(each) for each in folders):
            there.set_ref("HEAD", tip)
            repository.delete_ref_at(f"refs/heads/{branch}", tip)


def _write(made: Repository, kept: _Kept, folder: Path) -> None:
    """Write the run folder; run.json comes last, since what has none is no run."""
    store.workflow_folder(made)
    entries = [one for one in made.entries(made.tree_of(kept.checkpoint), f"{RUN_FOLDER}/") if one.mode == _PLAIN]
    if len(entries) > _MOST_FILES:
        raise _unreadable(kept.key, f"it has more than {_MOST_FILES} files")
    content = made.blobs(one.oid for one in entries)
    entries.sort(key=lambda one: one.path == f"{RUN_FOLDER}/run.json")
    for one in entries:
        path = PurePosixPath(one.path).relative_to(RUN_FOLDER)
        if ".." in path.parts:
            raise _unreadable(kept.key, f"it has a file {path}")
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place, content[one.oid], below=made.worktree)


def _read(repository: Repository, key: str, checkpoint: str) -> _Kept:
    """Return a run of the hub.

    Raises:
        UserError: no driver has written it.
    """
    content, journal = (repository.blob(f"{checkpoint}:{RUN_FOLDER}/{name}") for name in ("run.json", JOURNAL))
    try:
        info = RunInfo.model_validate_json(content or b"")
    except ValueError as error:
        raise _unreadable(key, f"run.json: {str(error).splitlines()[0]}") from error
    worktree, _, name = key.partition("/")
    if not store.is_key(worktree) or info.run_id != name:
        raise _unreadable(key, f"its run.json is of {info.run_id}")
    return _Kept(key, checkpoint, info, journal or b"")


def _unreadable(key: str, why: str) -> UserError:
    return UserError(f"The hub's checkpoint of {key} is none that a run has written ({why}).", Reason.USAGE)
