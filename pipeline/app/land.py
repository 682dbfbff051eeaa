"""Puts the chosen runs onto the base one after the other, and writes down what became of each (ADR-R205)."""

from __future__ import annotations

import fcntl
import os
import shlex
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pipeline.app.gc import is_made
from pipeline.app.land_choice import Candidate, Choice, LandDocument, LandLine
from pipeline.app.next_lines import removal
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.progress import counted
from pipeline.queue.lines import NotNowError, OrderDropped, RunWords
from pipeline.queue.orders import Wanted, log_of, place
from pipeline.repo import Repository, SigningError, UntouchedRepository
from pipeline.run.journal_kinds import Landed, LandingIntended, LandingRefused
from pipeline.run.lease import FileLease
from pipeline.run.run import Run
from pipeline.run.run_ref import keep
from pipeline.run.store import key_of_run
from pipeline.scratch import scratch_folder
from pipeline.steps.landing.table import Found, Then
from pipeline.steps.landing.train import Conflict, Landing, Train, now_signed, picked, place_of, settle, unmet
from pipeline.testing.verification.recheck import recheck

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from pipeline.testing.verification.context import VerificationContext

_REFUSED: Final = frozenset({Found.CONFLICT, Found.REFUTED, Found.REGRESSION})


async def land(
    ctx: VerificationContext, here: Repository, choice: Choice, environ: Mapping[str, str], say: Callable[[str], None]
) -> LandDocument:
    """Put the chosen runs on the base; a run that does not go there is told, and the next one is tried.

    Args:
        ctx: What measures.
        here: The repository, from any worktree.
        choice: The runs, in order.
        environ: The user's environment.
        say: Is told how it goes on.

    Raises:
        UserError: the tests cannot be run here at all, or git has no identity.
    """
    train = Train(here, choice.onto, lambda commit: recheck(ctx, commit), say)
    with _alone(here):
        return await _all(ctx, here, train, choice, environ)


async def _all(
    ctx: VerificationContext, here: Repository, train: Train, choice: Choice, environ: Mapping[str, str]
) -> LandDocument:
    before = train.tip()
    if choice.candidates:
        await ctx.prepare(ctx.repository.tree_of(before))
    lines = [await _Landing(here, train, each, environ).line() for each in choice.candidates]
    return _document(choice, lines, before, train.tip(), dry_run=False)


@contextmanager
def _alone(here: Repository) -> Generator[None]:
    """Hold that nobody else lands runs in this repository: two would meet in the files of the base's worktree.

    Raises:
        UserError: another process does.
    """
    handle = os.open(here.common_dir / "refs", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise UserError(
            "Another process is landing runs in this repository. When it has ended, try again.",
            Reason.LOCKED,
            path=str(here.common_dir),
            actions=("redfirst runs",),
        ) from error
    finally:
        os.close(handle)


@dataclass(frozen=True)
class _Landing:
    """One run that is landed, under its lease."""

    here: Repository
    train: Train
    candidate: Candidate
    environ: Mapping[str, str]

    async def line(self) -> LandLine:
        """Land it, write down what came of it, and return what is told."""
        try:
            lease = FileLease.take(self.candidate.place.folder)
        except UserError as error:
            return self.candidate.line("waits", why=(error.message,), safe_next_actions=error.actions)
        try:
            run = Run.load(self.candidate.place.folder, driving=True)
            left = self._settled(run)
            return left if left is not None else await self._picked(run)
        finally:
            lease.release()

    def _settled(self, run: Run) -> LandLine | None:
        """Return what a kill left of an earlier landing, where that is brought to its end; else None."""
        intended = [line for line in run.journal.of(LandingIntended) if line.data.onto == self.train.branch]
        landed = run.journal.of(Landed)
        if not intended or (landed and landed[-1].seq > intended[-1].seq):
            return None
        said, since = intended[-1].data, datetime.fromisoformat(intended[-1].at).timestamp()
        if not settle(self.here, said.onto, said.base, said.commits[-1], since):
            return None
        return self._landed(run, said.base, said.commits, ())

    async def _picked(self, run: Run) -> LandLine:
        def intend(base: str, commits: tuple[str, ...]) -> None:
            run.journal.append(LandingIntended(onto=self.train.branch, base=base, commits=commits))

        who = now_signed(self.here.identity(), self.environ.get("SOURCE_DATE_EPOCH", ""))
        try:
            landing = await self.train.land(self.candidate.result, who, intend, ordered=self.candidate.ordered)
        except SigningError as error:
            return self.candidate.line("waits", why=(f"the commits could not be signed: {error}",))
        if landing.then is Then.LAND and landing.picked is not None:
            return self._landed(run, landing.tip, landing.picked.commits, landing.picked.filed)
        return self._refused(run, landing)

    def _landed(self, run: Run, base: str, commits: Sequence[str], filed: Sequence[str]) -> LandLine:
        """Write down that the base has the commits."""
        told = {"onto": self.train.branch, "base": base, "commits": tuple(commits), "filed": tuple(filed)}
        run.journal.append(Landed.model_validate(told))
        self._keep(run)
        self._drop_order()
        self.train.say(f"    landed: {self.train.branch} is at {commits[-1][:12]}")
        facts = {"found": Found.VERIFIED, "then": Then.LAND, "commits": tuple(commits), "filed": tuple(filed)}
        return self.candidate.line("landed", **facts, why=self._left(), safe_next_actions=self._clean_up(run))

    def _clean_up(self, run: Run) -> tuple[str, ...]:
        """Return what removes the worktree and the branch that nobody needs now; `gc` where git alone would refuse."""
        worktree = self.candidate.place.worktree
        made = ("redfirst gc   # says until when its worktree is kept",) if is_made(worktree) else ()
        return removal(self.here.at(worktree), run, has_landed=True) or made

    def _left(self) -> tuple[str, ...]:
        """Return that the branch has commits of somebody else, which did not land."""
        branch, last = self.candidate.result.branch, self.candidate.result.commits[-1]
        tip = self.here.resolve(f"refs/heads/{branch}")
        count = len(self.here.history(f"{last}..{tip}")) if tip is not None else 0
        return (f"{branch} has {counted(count, 'commit')} more, which no run made: not landed",) if count else ()

    def _refused(self, run: Run, landing: Landing) -> LandLine:
        """Write down why not, once for each tip, and order its issue again where that follows."""
        found, then, why = landing.found.value, landing.then.value, landing.why
        order = self._ordered() if landing.then is Then.ORDER_AGAIN else None
        known = [line.data for line in run.journal.of(LandingRefused)][-1:]
        said = LandingRefused(onto=self.train.branch, base=landing.tip, found=found, then=then, why=why, order=order)
        if landing.found is not Found.WAITS and known != [said]:
            run.journal.append(said)
            self._keep(run)
        self.train.say(f"    not landed, {found.replace('_', ' ')}: {'; '.join(why[:1])}")
        status = "refused" if landing.found in _REFUSED else "waits"
        facts = {"found": landing.found, "then": landing.then, "why": why, "order": order}
        return self.candidate.line(status, **facts, safe_next_actions=self._next(landing))

    def _ordered(self) -> str:
        """Place an order for the issue, from the tip and with this run's patch; return it. Twice is the same one."""
        result, cause = self.candidate.result, key_of_run(self.candidate.place.folder)
        options = RunWords(base=self.train.branch, previous=self.candidate.name)
        wanted = Wanted(via="landing", issue=result.issue, key=f"landing {cause}", cause=(cause,), options=options)
        return place(self.here, self.environ, wanted)[0].id

    def _drop_order(self) -> None:
        """Drop the order that an earlier landing placed, and that nobody drives: its issue is done."""
        log, issue = log_of(self.here, self.environ), self.candidate.result.issue
        if not log.is_there:
            return
        with suppress(NotNowError), log.locked():
            placed = [one for one in log.orders.values() if one.is_open and one.placed.via == "landing"]
            idle = [one for one in placed if one.placed.issue == issue and not one.is_driven]
            log.add(*(OrderDropped(order=one.id, why=f"{issue} has landed") for one in idle))

    def _keep(self, run: Run) -> None:
        keep(self.here.at(self.candidate.place.worktree), run, whole=True)

    def _next(self, landing: Landing) -> tuple[str, ...]:
        """Return the commands that are safe now."""
        name, onto = self.candidate.name, shlex.quote(self.train.branch)
        again = f"redfirst land {name} --onto {onto}"
        match landing.then:
            case Then.ORDER_AGAIN:
                issue = self.candidate.result.issue
                by_hand = f"redfirst run {issue} --worktree --base {onto} --previous {name}"
                varies = f"{again}   # where a test varies by itself: name it in [[quarantine]] first"
                return ("redfirst work --once", by_hand, *([varies] if landing.found is Found.REGRESSION else []))
            case Then.WAIT:
                return (again,)
            case _ if landing.found is Found.IN_THE_WAY:
                there = place_of(self.here, self.train.branch)
                status = (f"git -C {shlex.quote(str(there.worktree))} status",) if there is not None else ()
                return (*status, again)
            case _:
                return (f"redfirst explain {name} --last", f"redfirst diff {name}", again)


def tried(here: Repository, choice: Choice, environ: Mapping[str, str]) -> LandDocument:
    """Return what would become of the chosen runs as far as it can be told without a test: nothing is written."""
    before = tip = here.resolve(f"refs/heads/{choice.onto}") or ""
    who = now_signed(here.identity(), environ.get("SOURCE_DATE_EPOCH", ""))
    lines: list[LandLine] = []
    with scratch_folder("land") as place:
        aside = UntouchedRepository.of(here, place / "objects")
        for each in choice.candidates:
            waits = unmet(aside, each.result.issue, tip)
            if waits:
                lines.append(each.line("waits", found=Found.WAITS, then=Then.WAIT, why=(f"it needs {waits[0]}",)))
                continue
            new = picked(aside, each.result, tip, who, key=None)
            if isinstance(new, Conflict):
                lines.append(each.line("refused", found=Found.CONFLICT, why=new.why))
                continue
            tip = new.commits[-1]
            lines.append(each.line("would_land", filed=new.filed))
    return _document(choice, lines, before, before, dry_run=True)


def _document(choice: Choice, lines: Sequence[LandLine], before: str, after: str, *, dry_run: bool) -> LandDocument:
    every = (*choice.lines, *lines)
    statuses = {line.status for line in every}
    code = 7 if "refused" in statuses else 4 if "waits" in statuses else 0
    return LandDocument.model_validate(
        {
            "ok": not code,
            "exit_code": code,
            "onto": choice.onto or None,
            "before": before or None,
            "after": after or None,
            "dry_run": dry_run,
            "runs": every,
        }
    )
