"""Lists and names every run of a repository, whichever worktree keeps it, and tells which has claimed an issue."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason, status_word
from pipeline.repo import GitError, Repository, Worktree
from pipeline.run.lease import FileLease
from pipeline.run.records import read_record
from pipeline.run.store import (
    RUN_REFS,
    WORKFLOW,
    Claim,
    claims,
    issue_of,
    key_of_worktree,
    order_of_runs,
    run_folders,
    worktree_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NEAR: Final = 0.75


@dataclass(frozen=True)
class RunPlace:
    """A run, and the worktree that keeps it."""

    worktree: Worktree
    name: str

    @property
    def folder(self) -> Path:
        """Return the folder of the run."""
        return self.worktree.path / WORKFLOW / self.name


class Roster:
    """The runs of all worktrees of a repository, as they lie on disk.

    Attributes:
        repository: As seen from where somebody asks.
        worktrees: All of them, also those whose folder is gone.
        folders: What is called as runs are, by the folder that it lies in.
        runs: Their runs, in no order that means anything.
        problems: The folders of runs that are not to be looked into, and why.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.worktrees = repository.worktrees()
        self.here = repository.worktree.resolve()
        self.problems: dict[Path, UserError] = {}
        self.folders: dict[Path, list[str]] = {}
        for worktree in self.worktrees:
            folder = worktree.path / WORKFLOW
            if not worktree.is_there or not os.path.lexists(folder):
                continue
            try:
                self.folders[folder] = run_folders(repository.at(worktree))
            except UserError as error:
                self.problems[folder] = error
            except GitError as error:
                said = f"git refuses to look into {worktree.path}: {error.stderr.strip()}"
                self.problems[folder] = UserError(said, Reason.USAGE, path=str(folder))

    @cached_property
    def runs(self) -> list[RunPlace]:
        """Return the runs; a folder without run.json is none."""
        of = {worktree.path / WORKFLOW: worktree for worktree in self.worktrees}
        return [
            RunPlace(of[folder], name)
            for folder, names in self.folders.items()
            for name in sorted(names, key=order_of_runs)
            if os.path.isfile(f"{folder}/{name}/run.json")  # noqa: PTH113  (there may be ten thousand)
        ]

    def find(self, name: str) -> RunPlace:
        """Return the run called *name*; an exact match beats a prefix, and a run of this worktree one of another.

        Args:
            name: `run-GAL-39@2`, `GAL-39` (its newest run), a unique prefix of either; before it, with a slash, the
                worktree where more than one has a run of the name: `shop-gal-39/run-GAL-39`. Upper and lower case are
                the same where nothing else fits.

        Raises:
            UserError: no run, or more than one; or this worktree keeps strangers' files where its runs belong.
        """
        self._refuse_strange()
        found = self.fitting(name)
        here = [run for run in found if run.worktree.path == self.here]
        if len(found) == 1:
            return found[0]
        if len(here) == 1 and len({run.name for run in found}) == 1:
            return here[0]
        if found:
            raise self._ambiguous(name, found)
        raise self._unknown(name)

    def fitting(self, name: str) -> list[RunPlace]:
        """Return the runs that *name* could mean."""
        label, _, wanted = name.rpartition("/")
        known = [run for run in self.runs if not label or label in labels(run.worktree.path)]
        return _named(known, wanted, str) or _named(known, wanted, str.casefold)

    def newest(self, began: Callable[[RunPlace], float | None] = lambda _: None) -> list[RunPlace]:
        """Return the runs of this worktree, the newest first, then those of the others, the newest first.

        Args:
            began: Returns when a run began, in seconds since the epoch; None where its files are to be asked.

        Raises:
            UserError: this worktree keeps strangers' files where its runs belong.
        """
        self._refuse_strange()

        def age(run: RunPlace) -> tuple[bool, float]:
            known = began(run)
            return run.worktree.path == self.here, _moment(run.folder) if known is None else known

        return sorted(self.runs, key=age, reverse=True)

    def _refuse_strange(self) -> None:
        problem = self.problems.get(self.here / WORKFLOW)
        if problem is not None:
            raise problem

    def spoken(self, folder: Path) -> str:
        """Return what a run is called in any worktree: with its own worktree before it where two runs have one name."""
        place = next((run for run in self.runs if run.folder == folder), None)
        if place is None or sum(run.name == place.name for run in self.runs) == 1:
            return folder.name
        return f"{self.label(place.worktree)}/{place.name}"

    def label(self, worktree: Worktree) -> str:
        """Return the name of a worktree's folder; with a part of a hash where two are called so."""
        alike = [each for each in self.worktrees if each.path.name == worktree.path.name]
        return worktree.path.name if len(alike) == 1 else key_of_worktree(worktree.path)

    def _ambiguous(self, name: str, found: Sequence[RunPlace]) -> UserError:
        names = [self.spoken(run.folder) for run in found]
        return UserError(
            f"{name!r} fits more than one run (runs: {', '.join(names)}).",
            Reason.USAGE,
            details={"runs": names},
            actions=("redfirst runs",),
        )

    def _unknown(self, name: str) -> UserError:
        from difflib import get_close_matches  # noqa: PLC0415  (only for who has mistyped a name)

        for issue, claim in orphans(self.repository).items():
            if is_named(claim, issue, name):
                return UserError(
                    f"The folder of {claim.name} in {claim.worktree} is gone, and {issue} is still claimed by it. "
                    f"Free the issue: redfirst abandon {issue}",
                    Reason.USAGE,
                    path=claim.worktree,
                    actions=(f"redfirst abandon {issue}",),
                )
        if (record := self._record_of(name)) is not None:
            return UserError(
                f"{record.rpartition('/')[2]} is over, and its folder is gone. Its results are kept in its ref: "
                f"git show {record}:run/summary.md",
                Reason.USAGE,
                path=record,
                actions=(f"git show {record}:run/summary.md", f"git ls-tree -r --name-only {record} run/"),
            )
        names = [self.spoken(run.folder) for run in self.runs]
        alike = [spoken for spoken in names if _numbers(spoken) == _numbers(name)]  # another number: another run
        words = {word.casefold(): spoken for spoken in alike for word in (spoken, spoken.replace("run-", "", 1))}
        near = next(iter(get_close_matches(name.casefold(), words, n=1, cutoff=_NEAR)), None)
        hint = f" Did you mean {words[near]}?" if near is not None else ""
        return UserError(
            f"{name!r} is not a run of this repository (runs: {', '.join(names) or 'none yet'}).{hint}",
            Reason.USAGE,
            details={"runs": names, "did_you_mean": words.get(near or "")},
            actions=("redfirst runs",),
        )

    def _record_of(self, name: str) -> str | None:
        """Return the ref of the newest run of this name or issue whose folder the ref holds; None where none does."""
        word = name.rpartition("/")[2].casefold()
        runs = {ref: ref.rpartition("/")[2] for ref in self.repository.refs(RUN_REFS)}
        meant = [ref for ref, run in runs.items() if word in {run.casefold(), (issue_of(run) or "").casefold()}]
        kept = [ref for ref in meant if self.repository.resolve(f"{ref}:run/summary.md")]
        return max(kept, key=lambda ref: order_of_runs(runs[ref]), default=None)


def find_run(repository: Repository, name: str) -> Path:
    """Return the folder of the run called *name*, in whichever worktree it is.

    Raises:
        UserError: as `Roster.find`.
    """
    return Roster(repository).find(name).folder


def seen_from(repository: Repository, folder: Path) -> Repository:
    """Return the repository as seen from the worktree that keeps the run in *folder*."""
    if folder.parents[1] == repository.worktree:
        return repository
    return next((repository.at(each) for each in repository.worktrees() if each.path == folder.parents[1]), repository)


def orphans(repository: Repository) -> dict[str, Claim]:
    """Return the claims, by issue, of runs whose folder is gone."""
    found = {issue: claim for issue, claim in claims(repository).items() if isinstance(claim, Claim)}
    return {issue: claim for issue, claim in found.items() if not (claim.folder / "run.json").is_file()}


def is_named(claim: Claim, issue: str, name: str) -> bool:
    """Return whether *name* means the run that has the claim: its name or its issue, perhaps after its worktree."""
    label, _, wanted = name.rpartition("/")
    fits = wanted.casefold() in {issue.casefold(), claim.name.casefold()}
    return fits and (not label or label in {*labels(Path(claim.worktree)), claim.run.partition("/")[0]})


def labels(worktree: Path) -> set[str]:
    """Return what a worktree may be called before the name of a run."""
    return {worktree.name, key_of_worktree(worktree), str(worktree)}


def next_name(repository: Repository, issue: str) -> str:
    """Return the name of the next run of *issue*: `run-GAL-39`, `run-GAL-39@2` ...

    No other worktree has, or had, a run of that name: so it means one run wherever it is typed. A folder without
    run.json is no run: its driver died before it began, or is about to begin (the lease tells).
    """
    here = f"{RUN_REFS}{worktree_key(repository)}/"
    kept = [
        ref
        for ref in repository.refs(RUN_REFS)
        if not ref.startswith(here) or repository.resolve(f"{ref}:run/run.json")
    ]
    taken = {ref.rpartition("/")[2] for ref in kept} | {run.name for run in Roster(repository).runs}
    attempt = 1
    while (name := f"run-{issue}" + (f"@{attempt}" if attempt > 1 else "")) in taken:
        attempt += 1
    return name


def started_at(folder: Path) -> str | None:
    """Return when a run began, as its run.json says; None where that cannot be read."""
    try:
        said = json.loads(read_record(folder, "run.json")).get("started_at")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return said if isinstance(said, str) else None


def _numbers(name: str) -> list[str]:
    return re.findall(r"\d+", name.rpartition("/")[2])


def _moment(folder: Path) -> float:
    try:
        return datetime.fromisoformat(started_at(folder) or "").astimezone(UTC).timestamp()
    except ValueError:  # the oldest is what cannot be read
        return 0.0


def _named(known: Sequence[RunPlace], wanted: str, same: Callable[[str], str]) -> list[RunPlace]:
    """Return the runs that a name fits: exactly, as an issue (then the newest one), without `run-`, or as a start."""
    name = same(wanted)
    exact = [run for run in known if same(run.name) == name]
    if exact:
        return exact
    attempts = [run for run in known if same(issue_of(run.name) or "") == name] if name else []
    if attempts:  # an issue's id stands for its newest run
        return [max(enumerate(attempts), key=lambda each: (started_at(each[1].folder) or "", each[0]))[1]]
    short = [run for run in known if same(run.name) == f"run-{name}"]
    # run-GAL-39 is no start of run-GAL-39@2, nor of run-GAL-391: these are other runs, and its folder may be gone
    start = re.compile(rf"(?:run-)?{re.escape(name)}(?!@|(?<=\d)\d)")
    return short or [run for run in known if name and start.match(same(run.name))]


RUNNING = "running"
GONE = "gone"
DAMAGED = "damaged"


@dataclass(frozen=True)
class Claimant:
    """The run that has an issue.

    Attributes:
        issue: The issue.
        run: What the run is called from any worktree of the repository.
        worktree: Where it is, or was.
        status: How it stands, in the word of `runs`: an outcome, `paused`, `running`, `queued`, `interrupted`,
            `damaged`, or `gone` with its folder.
        locked: Why git keeps the worktree although it is gone (a disk that is not mounted); None if it does not.
        gate: Where among its gates it waits for an answer; None where it does not.
    """

    issue: str
    run: str
    worktree: str
    status: str
    locked: str | None = None
    gate: str | None = None

    @property
    def actions(self) -> tuple[str, ...]:
        """Return the commands that are safe, wherever in the repository they are typed."""
        if self.status == RUNNING:
            return (f"redfirst show {self.run}", f"redfirst show {self.run} --log --follow")
        if self.status == GONE:
            kept = (f"git worktree unlock {shlex.quote(self.worktree)}",) if self.locked is not None else ()
            return (*kept, f"redfirst abandon {self.issue}")
        if self.status == DAMAGED:
            return (f"redfirst show {self.run}", f"redfirst abandon {self.run}")
        on = "resume" if self.gate is None else "approve"
        return (f"redfirst show {self.run}", f"redfirst {on} {self.run}", f"redfirst abandon {self.run}")

    def refusal(self) -> UserError:
        """Return the error that says so to somebody who wants to start on the issue."""
        return UserError(
            f"{self.issue} is claimed by {self.run} in {self.worktree}, {self._standing()}",
            Reason.CLAIMED_ELSEWHERE,
            details={"holder": self.run, "worktree": self.worktree, "status": self.status},
            actions=self.actions,
        )

    def _standing(self) -> str:
        if self.status == GONE and self.locked is not None:
            why = f" ({self.locked})" if self.locked else ""
            return f"which is not there; git keeps that worktree as locked{why}. Attach its disk, or unlock and abandon"
        where = f" at {self.gate}" if self.gate is not None else ""
        usual = "go on with that run, or give it up" if self.gate is None else "answer it, or give it up"
        known = {
            RUNNING: "running: watch it",
            GONE: "gone with its folder: free the issue",
            DAMAGED: "damaged: give it up",
        }
        return f"which is {known.get(self.status, f'{self.status}{where}: {usual}')}"


def claimant(roster: Roster, issue: str, claim: Claim, status: str | None = None) -> Claimant:
    """Return who has the issue.

    Args:
        roster: Of the repository.
        issue: The issue.
        claim: What it says who has it.
        status: How the run stands, where that is known already.
    """
    if not (claim.folder / "run.json").is_file():
        path = Path(claim.worktree)
        locked = next((each.locked for each in roster.worktrees if each.path == path and not each.is_there), None)
        return Claimant(issue, claim.name, claim.worktree, GONE, locked)
    how, gate = (status, None) if status else _standing_of(claim.folder)
    return Claimant(issue, roster.spoken(claim.folder), claim.worktree, how, gate=gate)


def _standing_of(folder: Path) -> tuple[str, str | None]:
    """Return how the run stands, and where among its gates it waits for an answer."""
    from pipeline.run.gates import gate_place  # noqa: PLC0415  (heavy, and only where somebody is refused)
    from pipeline.run.run import Run  # noqa: PLC0415  (heavy, and only where somebody is refused)

    live = FileLease.is_held(folder)
    try:
        run = Run.load(folder, driving=False)
    except UserError:
        return DAMAGED, None
    outcome, rests = run.state.outcome, "queued" if run.queued else "interrupted"
    if outcome is not None:
        return status_word(outcome, run.state.reason), gate_place(run)
    return RUNNING if live else rests, gate_place(run)
