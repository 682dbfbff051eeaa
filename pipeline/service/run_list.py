"""Lists the runs of a repository, and finds the one that is meant. A damaged run costs only its own line."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.git import GitError
from pipeline.outcomes import Reason
from pipeline.runs.lease import FileLease
from pipeline.runs.records import ARTIFACT_LIMIT
from pipeline.runs.roster import GONE, Roster, claimant, orphans
from pipeline.runs.store import RUN_REFS, key_of_run
from pipeline.scratch import scratch_folder
from pipeline.service.ended_runs import RunIndex, facts_of, has_ended
from pipeline.service.run_line import RECORDS, Rest, RunLine, RunsDocument, aged, line_from, line_of, unread_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pipeline.git import Repository
    from pipeline.runs.roster import Claimant
    from pipeline.runs.store import Claim

_KEPT: Final = frozenset({*RECORDS, "recipe.json", "result.json"})
"""What a line is read from, of a record in a ref."""


def list_runs(repository: Repository, *, now: datetime | None = None) -> RunsDocument:
    """Return the runs of all worktrees of the repository, the newest first.

    Args:
        repository: Seen from any of them.
        now: What ages are counted to.
    """
    moment = now or datetime.now(UTC)
    roster = Roster(repository)
    return _document(_all_lines(roster, moment) + _lines_of_strangers(roster, repository))


def with_removed(repository: Repository, document: RunsDocument, most: int | None = None) -> RunsDocument:
    """Return a list with the ended runs that only their refs have, at most so many: the newest.

    Nothing can be done with them, so that only who reads a list of runs is told of them.
    """
    found = _document(list(_removed(Roster(repository), datetime.now(UTC)))).runs
    return _document([*document.runs, *found[:most]])


def newest_runs(repository: Repository, most: int, *, now: datetime | None = None) -> tuple[RunsDocument, Rest]:
    """Return the runs that have not ended and the newest of the others, at most so many, and what the rest took."""
    runs = list_runs(repository, now=now).runs
    ended = [line for line in runs if line.problem is None and has_ended(line)]
    left_out = ended[most:]
    names = {(line.worktree, line.name) for line in left_out}
    known = [line.cost_known_usd for line in left_out if line.cost_known_usd is not None]
    rest = Rest(
        runs=len(left_out),
        driven_s=sum(line.driven_s or 0 for line in left_out),
        cost_usd=sum(known) if known else None,
        is_whole=all(line.cost_usd is not None for line in left_out if line.cost_known_usd is not None),
    )
    return RunsDocument(runs=tuple(line for line in runs if (line.worktree, line.name) not in names)), rest


def _document(lines: list[RunLine]) -> RunsDocument:
    return RunsDocument(runs=tuple(sorted(lines, key=lambda line: line.started_at or "", reverse=True)))


def _lines_of_strangers(roster: Roster, repository: Repository) -> list[RunLine]:
    """Return the lines of folders that are not looked into, and of claims of runs that are gone."""
    lines = [unread_line(folder, error.message, live=False) for folder, error in roster.problems.items()]
    lines += [
        unread_line(claim.folder, _gone(claimant(roster, issue, claim)), live=False, issue=issue, status=GONE)
        for issue, claim in orphans(repository).items()
    ]
    return lines


def _all_lines(roster: Roster, now: datetime) -> list[RunLine]:
    """Return the lines of all runs; of those that have ended nothing is opened but an index."""
    found: list[RunLine] = []
    for folder, names in roster.folders.items():
        index = RunIndex(folder)
        for name in names:
            facts = facts_of(folder / name)
            line = index.line(name, facts)
            if line is not None:
                found.append(aged(line, now))
            elif (folder / name / "run.json").is_file():
                found.append(line_of(folder / name, now))
                index.add(name, facts, found[-1])
        index.keep(names)
    return found


def _removed(roster: Roster, now: datetime) -> Iterator[RunLine]:
    """Yield the lines of ended runs that only a ref has: a worktree was removed as advised, or `gc` took the record.

    A run that has not ended is not among them: whoever holds its claim is told as `gone`.
    """
    repository = roster.repository
    there = {key_of_run(run.folder) for run in roster.runs}
    index = RunIndex(repository.common_dir)
    refs = {ref.removeprefix(RUN_REFS): oid for ref, oid in repository.refs(RUN_REFS).items()}
    for key in refs.keys() - there:
        line = index.line(key, [refs[key]])
        if line is None and (line := _read_ref(repository, key, refs[key])) is not None:
            index.add(key, [refs[key]], line)
        if line is not None and has_ended(line):
            yield aged(line, now)
    index.keep(refs)


def _read_ref(repository: Repository, key: str, oid: str) -> RunLine | None:
    """Return the line of a run as its ref has it, None where that has no record of it."""
    worktree, _, name = key.partition("/")
    try:
        with scratch_folder("record") as place:
            for entry in repository.entries(oid, "run"):
                path = place / worktree / ".workflow" / name / entry.path.removeprefix("run/")
                content = repository.blob(entry.oid, ARTIFACT_LIMIT) if path.name in _KEPT else None
                if content is not None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
            line = line_from(place / worktree / ".workflow" / name)
    except (UserError, GitError, OSError, ValueError):
        return None
    return replace(line, worktree=worktree, removed=True)


def find(roster: Roster, name: str | None, *, of_issue: bool = False) -> Path:
    """Return the folder of the run called *name*; without a name the newest one here, else of the other worktrees.

    Args:
        roster: The runs of the repository.
        name: As it was given, None where none was.
        of_issue: Without a name only runs of issues are meant.

    Raises:
        UserError: there is no such run, or no run at all.
    """
    if name is not None:
        return roster.find(name).folder
    folder = newest(roster, of_issue=of_issue)
    if folder is None:
        raise UserError(
            "There are no runs in this repository yet.", Reason.USAGE, actions=("redfirst run ISSUE", "redfirst runs")
        )
    return folder


def newest(roster: Roster, *, of_issue: bool = False) -> Path | None:
    """Return the folder of the run that was started last, in this worktree if any; readable ones first."""
    ended, first = _ended(roster), None
    for place in roster.newest(lambda run: _began(ended.get(run.folder))):
        folder = place.folder
        if of_issue:
            from pipeline.runs.records import is_of_recipe  # noqa: PLC0415  (heavy; `show` does without it)

            if is_of_recipe(folder):
                continue
        first = first or folder
        if lines_of([folder])[0].problem is None:
            return folder
    return first  # none can be read: whoever opens it says what is wrong with it


def _ended(roster: Roster) -> dict[Path, RunLine]:
    """Return the lines of ended runs that are known, by folder: nothing is opened of such a run."""
    found: dict[Path, RunLine] = {}
    for folder, names in roster.folders.items():
        index = RunIndex(folder)
        lines = ((folder / name, index.line(name, facts_of(folder / name))) for name in names)
        found |= {place: line for place, line in lines if line is not None}
    return found


def _began(line: RunLine | None) -> float | None:
    started = line.started_at if line is not None else None
    return datetime.fromisoformat(started).timestamp() if started is not None else None


def running_beside(roster: Roster, shown: Path) -> list[str]:
    """Return the runs that are driven now, but for the one that is shown: each with the name of its worktree."""
    ended = _ended(roster)
    live = [run for run in roster.runs if run.folder not in ended and run.folder != shown]
    return [
        f"{roster.spoken(run.folder)} in {roster.label(run.worktree)}" for run in live if FileLease.is_held(run.folder)
    ]


def lines_of(folders: Iterable[Path], now: datetime | None = None) -> list[RunLine]:
    """Return the lines of some runs, as they are now."""
    moment = now or datetime.now(UTC)
    return [line_of(folder, moment) for folder in folders]


def _gone(claimed: Claimant) -> str:
    refusal = claimed.refusal()
    return f"{refusal.message} ({refusal.actions[-1]})"


def claimants(repository: Repository, claims: Mapping[str, Claim]) -> dict[str, Claimant]:
    """Return who has each of these issues, and how its run stands."""
    roster = Roster(repository)
    there = {claim.folder for claim in claims.values()} & {run.folder for run in roster.runs}
    lines = dict(zip(there, lines_of(there), strict=True))
    return {
        issue: claimant(roster, issue, claim, lines[claim.folder].status if claim.folder in lines else None)
        for issue, claim in claims.items()
    }
