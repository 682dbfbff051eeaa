"""Finds what runs have left and nobody needs, each thing with a proof, and removes it after another look (ADR-R207).

What is unknown, dirty or live is kept and said. Nothing is removed but under the lease of the run that it is of, or by
compare-and-swap.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from pipeline.app.at_hub import old_checkpoints
from pipeline.config.user_folders import state_folder
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.matrix.engine.journal import utc_now
from pipeline.outcomes import COMPLETED, Reason
from pipeline.progress import counted, few
from pipeline.queue.orders import OrderLog, fleet_for, log_of
from pipeline.repo import GITLINK, GitError, Repository, Worktree
from pipeline.run import store
from pipeline.run.checkout import fill_submodules, has_submodules
from pipeline.run.journal_kinds import Published
from pipeline.run.lease import FileLease
from pipeline.run.preconditions import known_base
from pipeline.run.recipe_run import load_run
from pipeline.run.records import ARTIFACT_LIMIT, walk
from pipeline.run.run_ref import HERE_ALONE
from pipeline.run.runs_of_repository import Roster, RunPlace
from pipeline.sandbox.views.manifest import scan
from pipeline.scratch import scratch_folder
from pipeline.trees import read_regular, remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipeline.run.spending import AnyRun


Kind = Literal["checkout", "pool", "run_folder", "worktree", "publish_ref", "claim", "run_ref", "orders", "checkpoint"]


class GcLine(Frozen):
    """One thing that runs have left: what becomes of it, and the proof that nobody needs it, or why it stays."""

    kind: Kind
    what: str
    status: Literal["removed", "would_remove", "kept"]
    why: str


class GcDocument(Frozen):
    """All of them. Without `--apply` nothing is removed."""

    schema_: Literal["redfirst.gc/1"] = Field(default="redfirst.gc/1", alias="schema")
    ok: Literal[True] = True
    applied: bool
    older_than_s: int
    things: tuple[GcLine, ...]


@dataclass(frozen=True)
class Thing:
    """Something that a run left. `why` is the proof that nobody needs it, or why it stays.

    `remove` looks again, removes it, and returns why it did not; None of what stays.
    """

    kind: Kind
    what: str
    why: str
    remove: Callable[[], str] | None = None

    def line(self, *, apply: bool) -> GcLine:
        """Return what becomes of it; with *apply* that is done."""
        stays = self.why if self.remove is None else ""
        if self.remove is not None and apply:
            try:
                stays = self.remove()
            except (UserError, OSError) as error:
                stays = str(error)
        status = "kept" if stays else "removed" if apply else "would_remove"
        return GcLine(kind=self.kind, what=self.what, status=status, why=stays or self.why)


def not_ours(path: Path) -> str:
    """Return, in words, why a folder is none that a run of this user made; "" where it is one."""
    try:
        status = path.lstat()
    except OSError as error:
        return f"it cannot be looked at: {error.strerror}"
    if stat.S_ISLNK(status.st_mode):
        return "it is a link"
    if not stat.S_ISDIR(status.st_mode):
        return "it is no folder"
    return "" if status.st_uid == os.geteuid() else "it is somebody else's"


_SHA1: Final = 40


@dataclass(frozen=True)
class Known:
    """A run, and the repository as seen from its worktree. `run` is None where it cannot be read, `why` says it."""

    place: RunPlace
    there: Repository
    live: bool
    run: AnyRun | None
    why: str = ""

    @classmethod
    def of(cls, here: Repository, place: RunPlace) -> Known:
        """Return how a run stands now."""
        there, live = here.at(place.worktree), FileLease.is_held(place.folder)
        try:
            return cls(place, there, live, load_run(place.folder, driving=False))
        except UserError as error:
            return cls(place, there, live, None, error.message)

    @property
    def key(self) -> str:
        """Return the run as claims and refs name it."""
        return store.key_of_run(self.place.folder)

    @property
    def has_ended(self) -> bool:
        """Return whether it can never go on, and no process is at it."""
        return not self.live and self.run is not None and self.run.state.has_ended

    @property
    def keeps(self) -> str:
        """Return, in words, why what it has stays; "" where it has ended."""
        if self.live:
            return f"{self.place.name} is driven now"
        if self.run is None:
            return f"{self.place.name} cannot be read: {self.why}"
        return "" if self.run.state.has_ended else f"{self.place.name} can go on"

    def age_s(self, now: datetime) -> float:
        """Return how long nothing was said of it."""
        lines = self.run.journal.lines if self.run is not None else []
        return (now - datetime.fromisoformat(lines[-1].at)).total_seconds() if lines else 0.0

    def needed(self) -> str:
        """Return, in words, why its result is still needed; "" where it has landed, or there is none."""
        if self.run is None:
            return self.why
        if self.run.state.reason is Reason.ABANDONED or self.run.state.outcome not in COMPLETED:
            return ""
        published, info = self.run.journal.of(Published), self.run.info
        if not published or not published[-1].data.commits:
            return ""
        commits = published[-1].data.commits
        base, tip = _base_of(self.there, info.base_branch)
        landed = tip is not None and store.is_on(self.there, commits, info.start_commit, tip)
        return "" if landed else f"its commits are not on {base}"

    def lacks(self) -> str:
        """Return, in words, what its ref does not have of its folder; "" where it has all."""
        ref = store.run_ref(self.there, self.place.name)
        oid = self.there.refs(ref).get(ref)
        if oid is None:
            return "it has no ref of this worktree"
        kept = {entry.path: entry.oid for entry in self.there.entries(oid, "run/")}
        try:
            missing = next((path for path in _missing(self.place, kept)), None)
        except (UserError, OSError) as error:
            return str(error)
        return "" if missing is None else f"its ref lacks {missing}"


def _base_of(there: Repository, base: str) -> tuple[str, str | None]:
    """Return a base and its commit; where it is gone, the repository's own: it went into that, if anywhere."""
    tip = store.base_tip(there, base)
    own = known_base(there) if tip is None else None
    return (base, tip) if own is None else (own, store.base_tip(there, own))


def _missing(place: RunPlace, kept: dict[str, str]) -> Generator[str]:
    """Yield what a run folder holds and its ref does not, as it is now."""
    for parent, path, status in walk(place.folder):
        if stat.S_ISDIR(status.st_mode) or path in HERE_ALONE:
            continue
        oid = kept.get(f"run/{path}")
        if oid is None or not stat.S_ISREG(status.st_mode) or status.st_size > ARTIFACT_LIMIT:
            yield path
            continue
        content = read_regular(path.rpartition("/")[2], ARTIFACT_LIMIT, parent)
        git_name = hashlib.new("sha1" if len(oid) == _SHA1 else "sha256", usedforsecurity=False)
        git_name.update(b"blob %d\0" % len(content) + content)
        if git_name.hexdigest() != oid:
            yield path


@contextmanager
def held(here: Repository, known: Sequence[Known]) -> Generator[list[Known]]:
    """Hold the leases of some runs, and lend how they stand under them: nobody else can change that meanwhile.

    Raises:
        UserError: one of them is driven.
    """
    with ExitStack() as leases:
        for each in known:
            leases.callback(FileLease.take(each.place.folder).release)
        fresh = [Known.of(here, each.place) for each in known]
        yield [replace(each, live=False) for each in fresh]


_CLOSED_FOR: Final = timedelta(days=90)


_SHOWN: Final = 3


def worktrees_left(sweep: Sweep) -> Iterator[Thing]:
    """Yield the linked worktrees that redfirst has made; of others nothing is said."""
    for worktree in sweep.here.worktrees():
        owner = store.owner_of(worktree.git_dir)
        if owner is None:
            continue
        runs = [known for known in sweep.runs if known.place.worktree.path == worktree.path]
        stays = _worktree_stays(sweep, worktree, owner, runs)
        if stays:
            yield Thing("worktree", str(worktree.path), stays)
        else:
            names = ", ".join(known.place.name for known in runs)
            why = f"{names} has ended, all is committed, and the base has it or it was given up"
            why = why if runs else "no run was begun in it, and nothing was changed"
            yield Thing("worktree", str(worktree.path), why, partial(_remove_worktree, sweep, worktree, runs))


def is_made(worktree: Worktree) -> bool:
    """Return whether redfirst has made a worktree."""
    return store.owner_of(worktree.git_dir) is not None


def _worktree_stays(sweep: Sweep, worktree: Worktree, owner: dict[str, Any], runs: Sequence[Known]) -> str:
    """Return, in words, why a worktree stays; "" where it may go."""
    here = sweep.here
    if not worktree.is_there:
        return "its folder is gone, or another one is in its place"
    if worktree.locked is not None:
        return "it is locked"
    if owner.get("folder", str(worktree.path)) != str(worktree.path):
        return "somebody has moved it"
    if worktree.path == here.worktree.resolve():
        return "somebody stands in it"
    if not runs and sweep.now.timestamp() - (worktree.git_dir / store.OWNER).lstat().st_mtime < sweep.older_than_s:
        return "no run is in it yet"
    for known in runs:
        stays = known.keeps or known.needed() or known.lacks()
        if stays:
            return stays if known.place.name in stays else f"{known.place.name}: {stays}"
        if not sweep.is_old(known):
            return sweep.kept_until(known)
    try:
        return _unsaved(here.at(worktree), owner, runs)
    except GitError as error:
        return f"what is in it cannot be told: {error.stderr.strip()}"


def _unsaved(there: Repository, owner: dict[str, Any], runs: Sequence[Known]) -> str:
    """Return, in words, what of a worktree is nowhere else."""
    branch = there.branch()
    if branch is None or branch != owner.get("branch"):
        return f"it stands on {branch or 'no branch'}, not on {owner.get('branch')}"
    tip = there.resolve(f"refs/heads/{branch}")
    if tip is None:
        return "its branch has no commit"
    changed = _changed_submodules(there, there.tree_of(tip))
    if changed:
        return f"submodules in it are not as they were filled: {', '.join(changed[:_SHOWN])}"
    files = sorted(there.unsaved_files() - {f"{store.WORKFLOW}/"})
    if files:
        return f"not committed: {few(files, _SHOWN)}"
    records = there.worktree / store.WORKFLOW
    names = {path.name for path in (records.iterdir() if records.is_dir() else ())}
    strange = sorted(names - {".gitignore", *(known.place.name for known in runs)})
    if strange:
        return f"{store.WORKFLOW} has {', '.join(strange[:_SHOWN])}, of no run"
    if (not runs and tip == owner.get("tip")) or _is_known(there, tip, runs):
        return ""
    return f"{branch} has commits that no run made, or that did not land"


def _changed_submodules(there: Repository, tree: str) -> list[str]:
    """Return the submodules that hold anything but what a run fills them with: git does not look into them."""
    places = {entry.path: there.worktree / entry.path for entry in there.entries(tree) if entry.mode == GITLINK}
    links = [path for path, at in places.items() if at.is_symlink() or (at.is_dir() and any(at.iterdir()))]
    if not links:
        return []
    with scratch_folder("submodules") as place:
        fill_submodules(there, tree, place / "tree", place / "index")
        return [path for path in links if not _is_as_filled(places[path], place / "tree" / path)]


def _is_as_filled(folder: Path, filled: Path) -> bool:
    if folder.is_symlink() or os.path.lexists(folder / ".git") or not filled.is_dir():
        return False
    return scan(folder) == scan(filled)


def _is_known(there: Repository, tip: str, runs: Sequence[Known]) -> bool:
    """Return whether a branch holds nothing but what its runs began with, what landed, and what its base has."""
    for known in runs:
        if known.run is None:
            continue
        _, base = _base_of(there, known.run.info.base_branch)
        if base is not None and there.is_ancestor(tip, base):
            return True
        published = known.run.journal.of(Published)
        if published and published[-1].data.commits[-1:] == (tip,) and not known.needed():
            own = there.history(f"{known.run.info.start_commit}..{tip}")
            begun = base is not None and there.is_ancestor(known.run.info.start_commit, base)
            if begun and set(own) <= set(published[-1].data.commits):
                return True
    return False


def _remove_worktree(sweep: Sweep, worktree: Worktree, runs: Sequence[Known]) -> str:
    with held(sweep.here, runs) as fresh:
        now = next((each for each in sweep.here.worktrees() if each.path == worktree.path), None)
        owner = store.owner_of(now.git_dir) if now is not None else None
        if now is None or owner is None:
            return "it is another one by now"
        stays = _worktree_stays(sweep, now, owner, fresh)
        if stays:
            return stays
        there = sweep.here.at(now)
        branch = str(owner["branch"])
        tip = there.resolve(f"refs/heads/{branch}") or ""
        for known in fresh:
            checkout = sweep.checkout_of(known)
            if os.path.lexists(checkout) and not checkout.is_symlink():
                remove_tree(checkout)
        sweep.here.remove_worktree(now.path, branch, tip, submodules=has_submodules(there, tip))
    return "it could not be removed by git" if os.path.lexists(worktree.path) else ""


@dataclass(frozen=True)
class Sweep:
    """One look at all that is there.

    Attributes:
        here: The repository, from any worktree.
        state: The folder of private checkouts.
        older_than_s: How long nothing was said of a run whose records go.
        now: The time.
        runs: All of them.
        orders: The journal of the queue.
        hub: The hub of the fleet that the repository is of.
    """

    here: Repository
    state: Path
    older_than_s: int
    now: datetime
    runs: tuple[Known, ...]
    orders: OrderLog
    hub: str | None

    def things(self, *, refs: bool) -> Iterator[Thing]:
        """Yield everything that runs left, or that looks so."""
        yield from self._checkouts()
        yield from worktrees_left(self)
        yield from self._folders()
        for ref, oid in self.here.refs(store.PUBLISH_REFS).items():
            yield self._ref("publish_ref", ref, oid, self.by_key.get(ref.removeprefix(store.PUBLISH_REFS)))
        yield from self._claims()
        yield from self._orders()
        if refs:
            yield from self._run_refs()
            yield from self._checkpoints()

    def is_old(self, known: Known) -> bool:
        """Return whether nothing was said of a run for long enough."""
        return known.age_s(self.now) >= self.older_than_s

    def kept_until(self, known: Known) -> str:
        """Return, in words, until when what a run has left is kept that is not old."""
        until = self.now + timedelta(seconds=max(self.older_than_s - known.age_s(self.now), 1))
        moment = until.astimezone().strftime("%Y-%m-%d %H:%M")
        return f"kept until {moment} (--older-than), {known.place.name} has ended"

    @cached_property
    def by_key(self) -> dict[str, Known]:
        """Return the runs by what claims and refs call them."""
        return {known.key: known for known in self.runs}

    # --- orders --------------------------------------------------------------------------------------------------

    def _orders(self) -> Iterator[Thing]:
        """Yield the orders that closed 90 days ago, as one thing; those of a run that can go on are none.

        A journal that cannot be read stays, as one thing.
        """
        try:
            self.orders.read_on()
        except (UserError, OSError) as error:
            yield Thing("orders", self.orders.rows.where, str(error))
            return
        if found := self._closed_orders():
            why = f"{counted(len(found), 'order')} closed 90 days ago or more"
            yield Thing("orders", self.orders.rows.where, why, self._remove_orders)

    def _remove_orders(self) -> str:
        with self.orders.locked():
            self.orders.remove(self._closed_orders())
        return ""

    def _closed_orders(self) -> set[str]:
        runs = self.by_key
        return {
            one.id
            for one in self.orders.orders.values()
            if one.closed_at is not None
            and datetime.fromisoformat(one.closed_at).astimezone(UTC) <= self.now - _CLOSED_FOR
            and all(runs[key].has_ended for key in (one.run, one.placed.run) if key is not None and key in runs)
        }

    # --- checkouts -----------------------------------------------------------------------------------------------

    def checkout_of(self, known: Known) -> Path:
        """Return where the private checkout of a run is, if it has one."""
        return store.state_of_run(self.state, known.there, known.place.name)

    def _checkouts(self) -> Iterator[Thing]:
        ours = {self.checkout_of(known): known for known in self.runs}
        for path, known in ours.items():
            if os.path.lexists(path):
                yield from self._checkout(path, known)
        parents = {path.parent for path in ours} or {store.state_of_run(self.state, self.here, "run").parent}
        for parent in sorted(parents):
            for path in sorted(parent.iterdir()) if parent.is_dir() and not parent.is_symlink() else ():
                if path not in ours:
                    yield Thing("checkout", str(path), "no run that is here has made it, so look at it")

    def _checkout(self, path: Path, known: Known) -> Iterator[Thing]:
        strange = not_ours(path)
        pool = path / "pool"
        if strange:
            yield Thing("checkout", str(path), strange)
        elif known.has_ended:
            remove = partial(self._remove, path, known, lambda now: now.keeps or not_ours(path))
            yield Thing("checkout", str(path), f"{known.place.name} has ended", remove)
        elif known.live or known.run is None:
            yield Thing("checkout", str(path), known.keeps)
        elif os.path.lexists(pool) and not not_ours(pool):
            remove = partial(self._remove, pool, known, lambda _: not_ours(path) or not_ours(pool))
            yield Thing("pool", str(pool), f"{known.place.name} waits, and makes it again", remove)

    def _remove(self, path: Path, known: Known, why_not: Callable[[Known], str]) -> str:
        """Remove a folder of a run under its lease, unless something is said against it now; return that."""
        with held(self.here, [known]) as (now,):
            stays = why_not(now)
            if not stays:
                remove_tree(path)
            return stays

    # --- records -------------------------------------------------------------------------------------------------

    def _folders(self) -> Iterator[Thing]:
        for known in self.runs:
            if not known.has_ended or is_made(known.place.worktree):
                continue  # those of a worktree that redfirst made go with it
            what = str(known.place.folder)
            stays = self._stays(known) if self.is_old(known) else self.kept_until(known)
            if stays:
                yield Thing("run_folder", what, stays)
            else:
                remove = partial(self._remove, known.place.folder, known, self._stays)
                yield Thing("run_folder", what, f"{known.place.name} has ended, and its ref has all of it", remove)

    @staticmethod
    def _stays(known: Known) -> str:
        return known.keeps or not_ours(known.place.folder) or known.needed() or known.lacks()

    def _run_refs(self) -> Iterator[Thing]:
        for ref, oid in self.here.refs(store.RUN_REFS).items():
            known = self.by_key.get(ref.removeprefix(store.RUN_REFS))
            if known is None:
                yield Thing("run_ref", ref, "its run is not here: only this ref has its evidence")
            elif stays := known.keeps or known.needed():
                yield Thing("run_ref", ref, stays)
            elif self.is_old(known):
                why = f"{known.place.name} has ended, and `verify` cannot read its evidence there any more"
                yield Thing("run_ref", ref, why, partial(self._drop, ref, oid, known))

    def _checkpoints(self) -> Iterator[Thing]:
        """Yield what the hub of the fleet keeps of runs, of any machine, that hold no issue."""
        if self.hub is None:
            return
        until = self.now - timedelta(seconds=self.older_than_s)
        try:
            for ref, why, remove in old_checkpoints(self.here, self.hub, until):
                yield Thing("checkpoint", ref, why, remove)
        except UserError as error:
            yield Thing("checkpoint", self.hub, error.message)

    # --- refs ----------------------------------------------------------------------------------------------------

    def _claims(self) -> Iterator[Thing]:
        for issue, claim in store.claims(self.here).items():
            ref = store.claim_ref(issue)
            oid = self.here.refs(ref).get(ref)
            if not isinstance(claim, store.Claim):
                yield Thing("claim", ref, claim.message)
            elif oid is not None:
                yield self._ref("claim", ref, oid, self.by_key.get(claim.run))

    def _ref(self, kind: Kind, ref: str, oid: str, known: Known | None) -> Thing:
        if known is None:
            return Thing(kind, ref, "its run is not here")
        if not known.has_ended:
            return Thing(kind, ref, known.keeps)
        return Thing(kind, ref, f"{known.place.name} has ended", partial(self._drop, ref, oid, known))

    def _drop(self, ref: str, oid: str, known: Known) -> str:
        there = [known] if known.place.folder.is_dir() else []  # else it went with its worktree: nobody can drive it
        with held(self.here, there) as fresh:
            for now in fresh:
                if now.keeps:
                    return now.keeps
            return "" if self.here.delete_ref_at(ref, oid) else "it points elsewhere by now"


def swept(
    here: Repository, environ: Mapping[str, str], *, older_than_s: int, refs: bool = False, apply: bool = False
) -> GcDocument:
    """Return what runs have left, and what becomes of it.

    Args:
        here: The repository, from any worktree.
        environ: The user's environment.
        older_than_s: How long nothing was said of a run whose records and worktree go.
        refs: The refs of ended runs, too.
        apply: Remove what nobody needs.
    """
    places = Roster(here).runs
    known = tuple(Known.of(here, place) for place in places)
    hub = fleet_for(here, environ).hub
    sweep = Sweep(here, state_folder(environ), older_than_s, utc_now(), known, log_of(here, environ), hub)
    gone, lines = list[str](), list[GcLine]()
    for thing in list(sweep.things(refs=refs)):
        if any(thing.what.startswith(f"{path}/") for path in gone):
            continue  # it went with its worktree
        lines.append(thing.line(apply=apply))
        if lines[-1].status != "kept" and thing.kind == "worktree":
            gone.append(thing.what)
    return GcDocument(applied=apply, older_than_s=older_than_s, things=tuple(lines))
