"""Finds what runs have left and nobody needs, each thing with a proof, and removes it after another look (ADR-R207).

What is unknown, dirty or live is kept and said. Nothing is removed but under the lease of the run that it is of, or by
compare-and-swap.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from pipeline.config.folders import state_folder
from pipeline.queue.orders import log_of
from pipeline.runs.roster import Roster
from pipeline.runs.store import PUBLISH_REFS, RUN_REFS, Claim, claim_ref, claims, state_of_run
from pipeline.service.gc_orders import orders_left
from pipeline.service.gc_runs import Known, held, utc_now
from pipeline.service.gc_things import GcDocument, Thing, not_ours
from pipeline.service.gc_worktrees import is_made, worktrees_left
from pipeline.trees import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.queue.orders import OrderLog
    from pipeline.service.gc_things import GcLine, Kind


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
    """

    here: Repository
    state: Path
    older_than_s: int
    now: datetime
    runs: tuple[Known, ...]
    orders: OrderLog

    def things(self, *, refs: bool) -> Iterator[Thing]:
        """Yield everything that runs left, or that looks so."""
        yield from self._checkouts()
        yield from worktrees_left(self)
        yield from self._folders()
        yield from self._publications()
        yield from self._claims()
        yield from orders_left(self.orders, {known.key: known for known in self.runs}, self.now)
        if refs:
            yield from self._run_refs()

    def is_old(self, known: Known) -> bool:
        """Return whether nothing was said of a run for long enough."""
        return known.age_s(self.now) >= self.older_than_s

    def kept_until(self, known: Known) -> str:
        """Return, in words, until when what a run has left is kept that is not old."""
        until = self.now + timedelta(seconds=max(self.older_than_s - known.age_s(self.now), 1))
        moment = until.astimezone().strftime("%Y-%m-%d %H:%M")
        return f"kept until {moment} (--older-than), {known.place.name} has ended"

    # --- checkouts -----------------------------------------------------------------------------------------------

    def checkout_of(self, known: Known) -> Path:
        """Return where the private checkout of a run is, if it has one."""
        return state_of_run(self.state, known.there, known.place.name)

    def _checkouts(self) -> Iterator[Thing]:
        ours = {self.checkout_of(known): known for known in self.runs}
        for path, known in ours.items():
            if os.path.lexists(path):
                yield from self._checkout(path, known)
        parents = {path.parent for path in ours} or {state_of_run(self.state, self.here, "run").parent}
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
            remove = partial(self._remove_folder, path, known)
            yield Thing("checkout", str(path), f"{known.place.name} has ended", remove)
        elif known.live or known.run is None:
            yield Thing("checkout", str(path), known.keeps)
        elif os.path.lexists(pool) and not not_ours(pool):
            remove = partial(self._remove_pool, pool, known)
            yield Thing("pool", str(pool), f"{known.place.name} waits, and makes it again", remove)

    def _remove_folder(self, path: Path, known: Known) -> str:
        with held(self.here, [known]) as (now,):
            stays = now.keeps or not_ours(path)
            if not stays:
                remove_tree(path)
            return stays

    def _remove_pool(self, pool: Path, known: Known) -> str:
        with held(self.here, [known]):
            stays = not_ours(pool.parent) or not_ours(pool)
            if not stays:
                remove_tree(pool)
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
                remove = partial(self._remove_records, known)
                yield Thing("run_folder", what, f"{known.place.name} has ended, and its ref has all of it", remove)

    @staticmethod
    def _stays(known: Known) -> str:
        return known.keeps or not_ours(known.place.folder) or known.needed() or known.lacks()

    def _remove_records(self, known: Known) -> str:
        with held(self.here, [known]) as (now,):
            stays = self._stays(now)
            if not stays:
                remove_tree(known.place.folder)
            return stays

    def _run_refs(self) -> Iterator[Thing]:
        there = {known.key: known for known in self.runs}
        for ref, oid in self.here.refs(RUN_REFS).items():
            known = there.get(ref.removeprefix(RUN_REFS))
            if known is None:
                yield Thing("run_ref", ref, "its run is not here: only this ref has its evidence")
            elif stays := known.keeps or known.needed():
                yield Thing("run_ref", ref, stays)
            elif self.is_old(known):
                why = f"{known.place.name} has ended, and `verify` cannot read its evidence there any more"
                yield Thing("run_ref", ref, why, partial(self._drop, ref, oid, known))

    # --- refs ----------------------------------------------------------------------------------------------------

    def _publications(self) -> Iterator[Thing]:
        there = {known.key: known for known in self.runs}
        for ref, oid in self.here.refs(PUBLISH_REFS).items():
            yield self._ref("publish_ref", ref, oid, there.get(ref.removeprefix(PUBLISH_REFS)))

    def _claims(self) -> Iterator[Thing]:
        there = {known.key: known for known in self.runs}
        for issue, claim in claims(self.here).items():
            ref = claim_ref(issue)
            oid = self.here.refs(ref).get(ref)
            if not isinstance(claim, Claim):
                yield Thing("claim", ref, claim.message)
            elif oid is not None:
                yield self._ref("claim", ref, oid, there.get(claim.run))

    def _ref(self, kind: Kind, ref: str, oid: str, known: Known | None) -> Thing:
        if known is None:
            return Thing(kind, ref, "its run is not here")
        if not known.has_ended:
            return Thing(kind, ref, known.keeps)
        return Thing(kind, ref, f"{known.place.name} has ended", partial(self._drop, ref, oid, known))

    def _drop(self, ref: str, oid: str, known: Known) -> str:
        if known.place.folder.is_dir():  # else it went a moment ago, with its worktree, and nobody can drive it
            with held(self.here, [known]) as (now,):
                if now.keeps:
                    return now.keeps
                return self._deleted(ref, oid)
        return self._deleted(ref, oid)

    def _deleted(self, ref: str, oid: str) -> str:
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
    sweep = Sweep(here, state_folder(environ), older_than_s, utc_now(), known, log_of(here, environ))
    lines = _lines(sweep.things(refs=refs), apply=apply)
    return GcDocument(applied=apply, older_than_s=older_than_s, things=tuple(lines))


def _lines(things: Iterable[Thing], *, apply: bool) -> Iterator[GcLine]:
    gone: list[str] = []
    for thing in list(things):
        if any(thing.what.startswith(f"{path}/") for path in gone):
            continue  # it went with its worktree
        line = thing.line(apply=apply)
        if line.status != "kept" and line.kind == "worktree":
            gone.append(line.what)
        yield line
