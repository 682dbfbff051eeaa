"""Keeps a run at the hub, the repository where the machines of a fleet meet, and tells a driver that lost its run.

After each decision the run's folder and its trees are pushed as a checkpoint: a commit on the checkpoint before. The
hub takes one only where its journal goes on from the one that it has, which the push names. So of two drivers one is
refused, and git decides which: no clock does. A driver that was frozen while another machine took its run over cannot
publish, since branch, checkpoint and claim move in one push or stay.

A hub that is out of reach is tried again for a while. An answer that was lost does no harm: what the hub has is read
then, and a checkpoint whose journal is the beginning of ours is ours.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.to_thread

from pipeline.errors import UserError
from pipeline.matrix.engine.journal import JOURNAL, readable
from pipeline.outcomes import Outcome, Reason
from pipeline.pids import ProcessId
from pipeline.progress import duration
from pipeline.repo import NO_OBJECT, RefMove, Repository, Signature, UnreachableError
from pipeline.run.journal_kinds import PublishIntended
from pipeline.run.run_ref import RUN_FOLDER, whole_tree
from pipeline.run.store import GONE_ON, Claim, claim_ref, is_claim_of, key_of_run, note_gone_on, order_of, read_claim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipeline.run.spending import AnyRun

T = TypeVar("T")

CHECKPOINT_REFS: Final = "refs/redfirst/checkpoints/"
"""The refs of a hub that have the last checkpoint of each run, by worktree and name."""
ORDER_REFS: Final = "refs/redfirst/orders/"
"""The refs of a hub that have the last claim of a run that has let go of its issue, by the order that it came of."""
KEPT_REFS: Final = "refs/redfirst/checkpoints/"
"""The refs here that have the last checkpoint which a driver of this machine pushed."""
_LARGEST: Final = 1024 * 1024
"""The size in bytes from which a file of the run folder that no driver needs stays on its machine."""
_STATES: Final = {None: "driving", Outcome.CANCELLED: "stopped"}
_PAUSE_S: Final = 30.0
_TRIES: Final = 5


class HeldElsewhereError(Exception):
    """Another run has the claim on the issue at the hub; the message is its name."""


@dataclass
class Hub:
    """One run at the hub of its fleet.

    Args:
        repository: The repository, seen from the run's worktree.
        url: Where the hub is.
        wait_s: How long a hub that is out of reach is tried, in seconds.
        say: Is told that it is.
    """

    repository: Repository
    url: str
    wait_s: float
    say: Callable[[str], None]
    _seen: dict[str, str] | None = field(default=None, init=False)
    """What the hub has of this run: its checkpoint, the claim on its issue, its branch."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    _kept: str = field(default="", init=False)

    async def checkpoint(self, run: AnyRun, *, commit: str | None = None, ends: bool = False) -> str | None:
        """Push what is new of the run; with *commit* its branch too, in the same push.

        Args:
            run: The run.
            commit: What the branch of the run is to point at.
            ends: Whether the claim on its issue goes, too.

        Returns:
            Why the hub's branch cannot be moved to *commit*; None where all is done.

        Raises:
            HeldElsewhereError: another run has the issue.
            UserError: another machine has taken the run over, or the hub is out of reach for too long.
        """
        async with self._lock:
            tree = whole_tree(self.repository, run, _LARGEST)
            refused: dict[str, str] = {}
            for _ in range(_TRIES):
                seen = await self._look(run)
                if run.info.issue is not None and checkpoint_ref(run) not in seen and not self._has_claim(run):
                    return None  # nobody has paid for anything, and who finds no claim begins anew
                others = [*self._claims(run, seen, ends=ends)]
                if commit is not None and (there := seen.get(_branch_ref(run), NO_OBJECT)) != commit:
                    if there != NO_OBJECT and not self.repository.is_ancestor(there, commit):
                        return f"{run.info.branch} of the hub is at {there[:12]}, which this run's commits do not have"
                    others.append(RefMove(_branch_ref(run), commit, there))
                if not others and tree == self._kept:
                    return None
                # a lease on a ref that stays is not looked at, so the checkpoint moves each time
                moves = [self._next(run, tree, seen), *others]
                refused = await self._patiently(lambda moves=moves: self.repository.push_all(self.url, moves))
                if not refused:
                    self._take_in(run, moves)
                    self._kept = tree
                    return None
                self._seen = None  # somebody moved one of them: look again, and say who
            why = "; ".join(f"{ref}: {said}" for ref, said in refused.items())
            raise UserError(
                f"The hub {self.url} refuses what this run pushes: {why}. If nobody pushes, look there for files that "
                "end in .lock: a git that was killed leaves them.",
                Reason.HUB_UNAVAILABLE,
            )

    def _next(self, run: AnyRun, tree: str, seen: dict[str, str]) -> RefMove:
        """Return the move of the checkpoint to one that has this tree."""
        ref = checkpoint_ref(run)
        last = seen.get(ref, NO_OBJECT)
        first = run.info.start_commit if last == NO_OBJECT else last
        made = [line.data.commits[-1] for line in run.journal.of(PublishIntended)][-1:]  # whoever goes on needs them
        said = f"{key_of_run(run.folder)}: line {len(run.journal.lines)}, epoch {run.journal.epoch}\n"
        at = datetime.fromisoformat(run.journal.lines[-1].at)
        nobody = Signature("redfirst", "redfirst@localhost", f"{int(at.timestamp())} +0000")
        return RefMove(ref, self.repository.commit_tree(tree, [first, *made], said, nobody), last)

    def _claims(self, run: AnyRun, seen: dict[str, str], *, ends: bool) -> Iterator[RefMove]:
        """Yield how the hub's claim on the issue moves, so that it says what the claim here says.

        Raises:
            HeldElsewhereError: another run has it.
        """
        issue = run.info.issue
        if issue is None:
            return
        ref, order = claim_ref(issue), order_ref(order_of(self.repository))
        is_ours = self._has_claim(run)
        wanted = self._claim(run) if is_ours and not ends else NO_OBJECT
        there = seen.get(ref, NO_OBJECT)
        key = key_of_run(run.folder)
        holder = key if there == NO_OBJECT else self._holder(ref, there)
        if holder != key:
            if is_ours:
                raise HeldElsewhereError(holder)
            return
        if is_ours and there == NO_OBJECT and order in seen:
            did = self._holder(order, seen[order])
            if did.partition("/")[0] != key.partition("/")[0]:  # it is done, while the hub had not heard of this run
                raise HeldElsewhereError(did)
        if wanted != there:
            yield RefMove(ref, wanted, there)
        if wanted == NO_OBJECT != there and order is not None:  # who finds the order open finds its run by this
            yield RefMove(order, there, seen.get(order, NO_OBJECT))

    def _has_claim(self, run: AnyRun) -> bool:
        """Return whether the claim here on the run's issue is the run's."""
        ref = claim_ref(run.info.issue or "")
        here = self.repository.refs(ref).get(ref)
        return here is not None and is_claim_of(self.repository, here, run.info.run_id)

    def _claim(self, run: AnyRun) -> str:
        state = "queued" if run.queued else _STATES.get(run.state.outcome, "parked")
        said = Claim(
            run=key_of_run(run.folder), worktree=str(self.repository.worktree), state=state, host=socket.gethostname(),
            order=order_of(self.repository), matrix=run.info.workflow_hash, redfirst=run.info.redfirst_version,
            driver=ProcessId.of(os.getpid()),
        )  # fmt: skip
        return self.repository.write_blob(said.model_dump_json().encode())

    def _holder(self, ref: str, claim: str) -> str:
        found = read_claim(self.repository, claim)
        return f"{ref}, which no run has written," if found is None else found.run

    # --- what the hub has ----------------------------------------------------------------------------------------

    async def _look(self, run: AnyRun) -> dict[str, str]:
        """Return what the hub has of the run; asked once, and again after it refused something.

        Raises:
            UserError: its checkpoint is none of this driver's.
        """
        if self._seen is not None:
            return self._seen
        names = [checkpoint_ref(run), *([] if run.info.issue is None else [claim_ref(run.info.issue)])]
        more = [_branch_ref(run), *filter(None, [order_ref(order_of(self.repository))])]

        def look() -> dict[str, str]:  # both again where one fails: a claim may go in between
            found = self.repository.remote_refs(self.url, *names, *more)
            if there := [name for name in (*names, *more) if name in found]:
                self.repository.fetch_from(self.url, there)
            return found

        seen = await self._patiently(look)
        if (checkpoint := seen.get(checkpoint_ref(run))) is not None:
            kept = self.repository.blob(f"{checkpoint}:{RUN_FOLDER}/{JOURNAL}") or b""
            if not "".join(map(str, run.journal.lines)).encode().startswith(kept):  # it has lines that are not ours
                there = readable(kept)
                note_gone_on(run.folder, there[-1].host if there else "")
                raise superseded_error(run)
        self._seen = seen
        return seen

    def _take_in(self, run: AnyRun, moves: Sequence[RefMove]) -> None:
        seen = dict(self._seen or {})
        for one in moves:
            seen.pop(one.ref, None)
            seen |= {} if one.new == NO_OBJECT else {one.ref: one.new}
        self._seen = seen
        (run.folder / GONE_ON).unlink(missing_ok=True)
        mine = f"{KEPT_REFS}{key_of_run(run.folder)}"
        if run.state.has_ended:
            self.repository.delete_ref(mine)
            run.written.ref(mine, "")
        elif self.repository.set_ref(mine, seen[checkpoint_ref(run)]):  # the next one stands on it: git must keep it
            run.written.ref(mine, seen[checkpoint_ref(run)])

    async def _patiently(self, ask: Callable[[], T]) -> T:
        """Return what the hub answers, however often it has to be asked.

        Raises:
            UserError: it was out of reach for too long.
        """
        until, pause = anyio.current_time() + self.wait_s, 1.0
        while True:
            try:
                return await anyio.to_thread.run_sync(ask)
            except UnreachableError as error:
                why = error.first_line
                if anyio.current_time() + pause > until:
                    message = (
                        f"The hub {self.url} was out of reach for {duration(self.wait_s)} ({why}). Nothing is lost: "
                        "this machine has all of the run. Mend the way to the hub, then resume."
                    )
                    raise UserError(message, Reason.HUB_UNAVAILABLE) from error
                self.say(f"    the hub is out of reach ({why}); it is tried again in {duration(pause)}")
                await anyio.sleep(pause)
                pause = min(pause * 2, _PAUSE_S)


def checkpoint_ref(run: AnyRun) -> str:
    """Return the ref of the hub that has the last checkpoint of a run."""
    return f"{CHECKPOINT_REFS}{key_of_run(run.folder)}"


def order_ref(order: str | None) -> str | None:
    """Return the ref of the hub that has the run of an order when it holds its issue no more; None without an order."""
    return None if order is None else f"{ORDER_REFS}{order}"


def superseded_error(run: AnyRun) -> UserError:
    """Return the error of a driver whose run goes on elsewhere."""
    name = run.info.run_id
    return UserError(
        f"Another machine took {name} over. This one stops and publishes nothing of it. What it did stays in "
        f"{run.folder}. See where it goes on: redfirst fleet runs",
        Reason.SUPERSEDED,
        path=str(run.folder),
        actions=("redfirst fleet runs", f"redfirst fleet take {name}"),
    )


def _branch_ref(run: AnyRun) -> str:
    return f"refs/heads/{run.info.branch}"
