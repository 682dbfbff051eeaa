"""Chooses the finished runs that `land` takes, ordered by what their issues depend on, then by when they ended."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.app.next_lines import unfinished_on
from pipeline.app.run_list import lines_of
from pipeline.data_types import Frozen
from pipeline.errors import UserError
from pipeline.outcomes import COMPLETED, Outcome, Reason
from pipeline.run import tracker
from pipeline.run.journal_kinds import LandingRefused, Published
from pipeline.run.run import Run
from pipeline.run.runs_of_repository import Roster, RunPlace
from pipeline.run.store import is_on, is_remote, push_of
from pipeline.run.summary_facts import commits_of
from pipeline.steps.landing.table import Found, Then
from pipeline.steps.landing.train import Result
from todo import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipeline.repo import Repository

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
        passed_over: Why it lands only where somebody names it; "" where nothing speaks against it.
    """

    place: RunPlace
    name: str
    result: Result
    start: str
    base: str
    ended_at: str
    ordered: bool
    passed_over: str = ""

    def line(self, status: str, **facts: object) -> LandLine:
        """Return what is told of it."""
        said = {"run": self.name, "issue": self.result.issue, "branch": self.result.branch, "status": status}
        return LandLine.model_validate({**said, **facts})


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
    found = [_named(roster, name) for name in dict.fromkeys(names)] if names else _finished(roster)
    if onto is not None and not names:
        found = [each for each in found if each.base == onto]
    bases = sorted({each.base for each in found}) if onto is None else [onto]
    if len(bases) > 1:
        raise UserError(
            f"These runs have several bases ({', '.join(bases)}). Say which one: --onto BRANCH.",
            Reason.USAGE,
            actions=tuple(f"redfirst land --onto {shlex.quote(base)}" for base in bases),
        )
    if not bases:
        return Choice("", ())
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
    lines: list[LandLine] = []
    first = unfinished_on(here, bases[0])
    for each in found:
        line = _settled(here, each, bases[0], tip, named=bool(names)) or _behind(each, bases[0], first)
        if line is None:
            waiting.append(each)
        elif names or line.status != "already":
            lines.append(line)
    return Choice(bases[0], in_order(waiting, _needed(here, waiting, tip)), tuple(lines))


def _settled(here: Repository, each: Candidate, base: str, tip: str, *, named: bool) -> LandLine | None:
    """Return what is told of a run that is not picked, None of one that is."""
    if is_on(here, each.result.commits, each.start, tip):
        return each.line("already", why=(f"{base} has its commits already",))
    if here.resolve(f"{each.result.commits[-1]}^{{commit}}") is None:
        return each.line("waits", why=("its commits are not in this repository any more",))
    if named:
        return None
    done = _statuses(here, tip).get(each.result.issue) is Status.DONE
    why = f"{each.result.issue} is Done on {base}, by other commits" if done else each.passed_over
    again = (f"redfirst land {each.name}",)
    return each.line("passed_over", why=(why,), safe_next_actions=again) if why else None


def _behind(each: Candidate, base: str, first: str | None) -> LandLine | None:
    """Return what is told of a run whose base another run is still at work on: that one is finished first."""
    if first is None:
        return None
    why = f"{first} is at work on {base}, and publishes there: finish it first"
    return each.line("waits", why=(why,), safe_next_actions=(f"redfirst show {first}",))


def _statuses(here: Repository, tip: str) -> dict[str, Status]:
    issues = tracker.in_tree(here, here.tree_of(tip))
    with tracker.as_user_errors(issues):
        return {issue.id: issue.status for issue in issues.issues()}


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
    place = roster.find(name)
    found = _candidate(roster, place)
    if found is None:
        raise UserError(
            f"{place.name} has no commits to land: it is not finished, or changed nothing.",
            Reason.USAGE,
            actions=(f"redfirst show {roster.spoken(place.folder)}",),
        )
    return found


def _finished(roster: Roster) -> list[Candidate]:
    """Return the finished runs that are the last word on their issue; one with blockers is passed over."""
    lines = lines_of([place.folder for place in roster.runs])
    last: dict[str, tuple[str, str]] = {}
    for place, line in zip(roster.runs, lines, strict=True):
        if line.issue is not None and line.outcome not in _GIVEN_UP:
            last[line.issue] = max(last.get(line.issue, ("", "")), (line.started_at or "", roster.spoken(place.folder)))
    found: list[Candidate] = []
    for place, line in zip(roster.runs, lines, strict=True):
        if line.outcome not in COMPLETED or line.issue is None or line.problem is not None or line.live:
            continue
        if last[line.issue][1] != roster.spoken(place.folder):
            continue
        why = "it has blockers on record" if line.outcome is Outcome.COMPLETED_WITH_BLOCKERS else ""
        candidate = _candidate(roster, place, why)
        found += [candidate] if candidate is not None else []
    return found


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
        passed_over=passed_over,
    )
