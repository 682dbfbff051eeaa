"""Chooses finished runs, puts them onto the base one after the other, writes down what became of each (ADR-R205).

They are ordered by what their issues depend on, then by when they ended.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.app.next_lines import removal, unfinished_on
from pipeline.app.run_list import lines_of
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.outcomes import COMPLETED, Outcome, Reason
from pipeline.progress import counted
from pipeline.queue.order_lines import NotNowError, OrderDropped, RunWords
from pipeline.queue.orders import Wanted, log_of
from pipeline.queue.orders import place as place_order
from pipeline.repo import Repository, SigningError, UntouchedRepository
from pipeline.run import tracker
from pipeline.run.journal_kinds import Landed, LandingIntended, LandingRefused, Published
from pipeline.run.lease import FileLease
from pipeline.run.run import Run
from pipeline.run.run_ref import keep
from pipeline.run.runs_of_repository import Roster, RunPlace
from pipeline.run.store import base_tip, is_on, is_remote, issue_of, key_of_run, order_of_runs, owner_of, push_of
from pipeline.run.summary_facts import commits_of, landed_on
from pipeline.scratch import scratch_folder
from pipeline.steps.landing import (
    Conflict,
    Found,
    Landing,
    Result,
    Then,
    Train,
    now_signed,
    picked,
    place_of,
    settle,
    unmet,
)
from todo import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from pipeline.matrix.engine.journal import Line
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
    from pipeline.testing.verification.recheck import recheck  # noqa: PLC0415  (heavy, and who only chooses measures nothing)

    train = Train(here, choice.onto, lambda commit: recheck(ctx, commit), say)
    with _alone(here):
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
        with lease:
            run = Run.load(self.candidate.place.folder, driving=True)
            return self._settled(run) or await self._picked(run)

    def _settled(self, run: Run) -> LandLine | None:
        """Return what a kill left of an earlier landing, where that is brought to its end; else None."""
        begun = _open_landing(run)
        if begun is None or begun.data.onto != self.train.branch:
            return None
        said, since = begun.data, datetime.fromisoformat(begun.at).timestamp()
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
        is_ours = owner_of(worktree.git_dir) is not None
        made = ("redfirst gc   # says until when its worktree is kept",) if is_ours else ()
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
        return place_order(self.here, self.environ, wanted)[0].id

    def _drop_order(self) -> None:
        """Drop the order that an earlier landing placed, and that nobody drives: its issue is done."""
        log, issue = log_of(self.here, self.environ), self.candidate.result.issue
        if not log.rows.is_there:
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


def tried(here: Repository, choice: Choice, environ: Mapping[str, str], *, dry_run: bool) -> LandDocument:
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
                status = "refused" if new.found in _REFUSED else "waits"
                lines.append(each.line(status, found=new.found, why=new.why))
                continue
            tip = new.commits[-1]
            lines.append(each.line("would_land", filed=new.filed))
    return _document(choice, lines, before, before, dry_run=dry_run)


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


_GIVEN_UP: Final = frozenset({Outcome.FAILED, Outcome.CANCELLED, Outcome.REJECTED})


class LandLine(Frozen):
    """One run. `commits` are those on the base; `found` and `then` say what came of the pick, `why` what is in the way.

    `already`: it had landed before. `passed_over`: it was not named, and something else counts in its place. `waits`:
    for an issue that it depends on, for a person, or for what is in the way. `order` was placed for its issue.
    """

    run: str
    issue: str
    branch: str
    status: Literal["landed", "would_land", "already", "refused", "waits", "passed_over"]
    found: Found | None = None
    then: Then | None = None
    commits: tuple[str, ...] = ()
    filed: tuple[str, ...] = ()
    order: str | None = None
    why: tuple[str, ...] = ()
    safe_next_actions: tuple[str, ...] = ()


class LandDocument(Frozen):
    """What came of all of them, in the order in which they were picked; `before` and `after` are the tip of `onto`.

    `ok`: nothing was refused and nothing waits. The exit code is 0 then, 7 where a result was refused, else 4.
    """

    schema_: Literal["redfirst.land/1"] = Field(default="redfirst.land/1", alias="schema")
    ok: bool
    exit_code: Literal[0, 4, 7]
    onto: str | None
    before: str | None
    after: str | None
    dry_run: bool
    runs: tuple[LandLine, ...]


@dataclass(frozen=True)
class Candidate:
    """A finished run that may land.

    Attributes:
        place: Where it is.
        name: What it is called in any worktree.
        result: Its commits.
        start: Where it began, and `base` the branch that it is for.
        ended_at: When its commits were published.
        ordered: Whether its issue was ordered again already, with it or after it.
        begun: Whether a landing of it was begun, and is not known to have ended.
        landed: The branch that it has landed on.
        passed_over: Why it lands only where somebody names it; "" where nothing speaks against it.
    """

    place: RunPlace
    name: str
    result: Result
    start: str
    base: str
    ended_at: str
    ordered: bool
    begun: bool
    landed: str | None
    passed_over: str = ""

    def line(self, status: str, **facts: object) -> LandLine:
        """Return what is told of it."""
        said = {"run": self.name, "issue": self.result.issue, "branch": self.result.branch, "status": status}
        return LandLine.model_validate({**said, **facts})

    def pass_over(self, why: str, by_name: str) -> LandLine:
        """Return why it lands only where somebody names it."""
        return self.line("passed_over", why=(why,), safe_next_actions=(by_name,))


@dataclass(frozen=True)
class Choice:
    """What is to land on `onto`, in order; `lines` are the runs of which it is clear already what comes of them."""

    onto: str
    candidates: tuple[Candidate, ...]
    lines: tuple[LandLine, ...] = ()


def chosen_runs(here: Repository, names: Sequence[str], onto: str | None) -> Choice:
    """Return what is to land; where nothing is, on no branch.

    Args:
        here: The repository, from any worktree.
        names: Runs; none: all finished ones.
        onto: The base; by default the one that they all have.

    Raises:
        UserError: there is no such run or branch, one is not finished, or they have several bases.
    """
    roster = Roster(here)
    found = [_named(roster, name) for name in dict.fromkeys(names)] if names else [*_finished(roster)]
    lines: list[LandLine] = []
    if not names:
        found = [*_without_names(here, found, lines)] if onto is None else [each for each in found if each.base == onto]
    bases = sorted({each.base for each in found}) if onto is None else [onto]
    if len(bases) > 1:
        raise UserError(
            f"These runs have several bases ({', '.join(bases)}). Say which one: --onto BRANCH.",
            Reason.USAGE,
            actions=tuple(f"redfirst land --onto {shlex.quote(base)}" for base in bases),
        )
    if not bases:
        return Choice("", (), tuple(lines))
    tip = here.resolve(f"refs/heads/{bases[0]}")
    if is_remote(here, bases[0]):
        pushes = "; ".join(dict.fromkeys(push_of(each.result.branch, each.base) for each in found))
        raise UserError(
            f"{bases[0]} is a branch of a remote, and `land` pushes nothing. Push what is to land: {pushes}",
            Reason.USAGE,
        )
    if tip is None:
        raise UserError(f"There is no branch {bases[0]} to land on.", Reason.USAGE, actions=("git branch --list",))
    waiting: list[Candidate] = []
    first = unfinished_on(here, bases[0])
    for each in found:
        line = _settled(here, each, bases[0], tip, named=bool(names))
        if line is None and first is not None:
            why = f"{first} is at work on {bases[0]}, and publishes there: finish it first"
            line = each.line("waits", why=(why,), safe_next_actions=(f"redfirst show {first}",))
        if line is None:
            waiting.append(each)
        elif names or line.status != "already":
            lines.append(line)
    return Choice(bases[0], in_order(waiting, _needed(here, waiting, tip)), tuple(lines))


def _without_names(here: Repository, found: Iterable[Candidate], lines: list[LandLine]) -> Iterator[Candidate]:
    """Yield what may be landed where nothing is said; what is on its base already is no reason to ask for the base."""
    for each in found:
        tip = base_tip(here, each.base)
        if tip is not None and (each.begun or not is_on(here, each.result.commits, each.start, tip)):
            yield each
        elif tip is None and each.landed != each.base:
            lines.append(each.pass_over(f"its base {each.base} is gone", f"redfirst land {each.name} --onto BRANCH"))


def _settled(here: Repository, each: Candidate, base: str, tip: str, *, named: bool) -> LandLine | None:
    """Return what is told of a run that is not picked, None of one that is."""
    if is_on(here, each.result.commits, each.start, tip):
        return None if each.begun else each.line("already", why=(f"{base} has its commits already",))
    if here.resolve(f"{each.result.commits[-1]}^{{commit}}") is None:
        return each.line("waits", why=("its commits are not in this repository any more",))
    if named:
        return None
    issues = tracker.in_tree(here, here.tree_of(tip))
    with tracker.as_user_errors(issues):
        done = any(one.id == each.result.issue and one.status is Status.DONE for one in issues.issues())
    there = here.resolve(f"refs/heads/{each.result.branch}")
    kept = there is not None and here.is_ancestor(each.result.commits[-1], there)
    why = each.passed_over if kept else f"its branch {each.result.branch} does not have its commits any more"
    why = f"{each.result.issue} is Done on {base}, by other commits" if done else why
    return each.pass_over(why, f"redfirst land {each.name}") if why else None


def _needed(here: Repository, found: Iterable[Candidate], tip: str) -> dict[str, frozenset[str]]:
    """Return what each issue depends on, as the base has it."""
    issues = tracker.in_tree(here, here.tree_of(tip))
    with tracker.as_user_errors(issues):
        there = [each.result.issue for each in found if each.result.issue in issues.ids]
        return {issue: frozenset(issues.read(issue).depends_on) for issue in there}


def in_order(found: Iterable[Candidate], needed: dict[str, frozenset[str]]) -> tuple[Candidate, ...]:
    """Return the runs so that each comes behind those that its issue depends on, else the one that ended first."""
    waiting = sorted(found, key=lambda each: (each.ended_at, each.name))
    ordered: list[Candidate] = []
    while waiting:
        open_ = {each.result.issue for each in waiting}
        free = (each for each in waiting if not (needed.get(each.result.issue, frozenset()) & open_))
        first = next(free, waiting[0])  # a circle: the tracker refuses it
        waiting.remove(first)
        ordered.append(first)
    return tuple(ordered)


def _named(roster: Roster, name: str) -> Candidate:
    """Return the run of this name; of an issue the newest one that is finished, where its newest one is not."""
    place = roster.find(name)
    of_issue = [run for run in roster.runs if (issue_of(run.name) or "").casefold() == name.casefold()]
    tried = (place, *sorted(of_issue, key=lambda run: order_of_runs(run.name), reverse=True))
    found = next((one for run in tried if (one := _candidate(roster, run)) is not None), None)
    if found is None:
        raise UserError(
            f"{place.name} has no commits to land: it is not finished, or changed nothing.",
            Reason.USAGE,
            actions=(f"redfirst show {roster.spoken(place.folder)}",),
        )
    return found


def _finished(roster: Roster) -> Iterator[Candidate]:
    """Yield the newest finished run of each issue; one with blockers, or with a newer run, is passed over."""
    every = zip(roster.runs, lines_of([place.folder for place in roster.runs]), strict=True)
    counting = [each for each in every if each[1].issue is not None and each[1].outcome not in _GIVEN_UP]
    counting.sort(key=lambda each: (each[1].started_at or "", roster.spoken(each[0].folder)))
    newest = {line.issue: place for place, line in counting}
    ended = [each for each in counting if each[1].outcome in COMPLETED and not (each[1].problem or each[1].live)]
    for place, line in {each[1].issue: each for each in ended}.values():
        why = "it has blockers on record" if line.outcome is Outcome.COMPLETED_WITH_BLOCKERS else ""
        if newest[line.issue] is not place:
            why = f"{roster.spoken(newest[line.issue].folder)} of the same issue began later, and is not finished"
        if (candidate := _candidate(roster, place, why)) is not None:
            yield candidate


def _candidate(roster: Roster, place: RunPlace, passed_over: str = "") -> Candidate | None:
    run = Run.load(place.folder, driving=False)
    commits = commits_of(run)
    if run.state.outcome not in COMPLETED or not commits:
        return None
    refused = run.journal.of(LandingRefused)
    return Candidate(
        place,
        roster.spoken(place.folder),
        Result(run.info.run_id, run.issue, run.info.branch, commits),
        run.info.start_commit,
        run.info.base_branch,
        run.journal.of(Published)[-1].at,
        ordered=run.info.previous is not None or any(line.data.then == "order_again" for line in refused),
        begun=_open_landing(run) is not None,
        landed=landed_on(run) if _open_landing(run) is None else None,
        passed_over=passed_over,
    )


def _open_landing(run: Run) -> Line[LandingIntended] | None:
    """Return the line of a landing that was begun, and of which none says that it is done."""
    done = max((line.seq for line in run.journal.of(Landed)), default=0)
    return next((line for line in run.journal.of(LandingIntended)[-1:] if line.seq > done), None)
