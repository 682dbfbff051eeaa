"""Lists the runs of a repository, and finds the one that is meant. A damaged run costs only its own line.

A run that has ended stays as it is, so its line is kept beside what tells that it is the same: what the file system
says of its journal, or the object of its ref. Nothing of the run is opened then. The index may be thrown away: what is
not in it, or does not fit, is read again.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from pipeline import VERSION
from pipeline.characters import as_utf8
from pipeline.config.user_folders import state_folder
from pipeline.errors import UserError
from pipeline.outcomes import FINAL, Outcome, Reason, status_word
from pipeline.repo import GitError, Repository
from pipeline.run.lease import FileLease
from pipeline.run.records import ARTIFACT_LIMIT
from pipeline.run.runs_of_repository import GONE, RUNNING, Claimant, Roster, claimant, orphans
from pipeline.run.store import RUN_REFS, WORKFLOW, Claim, gone_on, key_of_run
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from pipeline.run.recipe_run import RecipeRun


ELSEWHERE: Final = "elsewhere"
"""How a run stands that another machine goes on with."""
RECORDS: Final = ("run.json", "journal.jsonl")
"""What a line follows from."""


@dataclass(frozen=True, kw_only=True)
class RunLine:
    """One run in a list. `problem` says why it cannot be read; the facts that it hides are null then.

    `queued`: it was answered, and no process has driven it since; it may be driven by now (`live`).
    `driven_s` is how long processes drove it, without what it waited for a person. `cost_usd` and `tokens` are null
    unless every dispatch that asked a model says them; `cost_known_usd` is what is known, null where none was asked.
    `status` is `elsewhere` where another machine goes on with it, as far as this one has heard. `landed` is the branch
    that `land` put it on. `not_before` is when the limit of an account ends that the run waits
    for or is parked by. `removed`: its folder is gone, its ref has the record, and `worktree` is the name in that ref.
    """

    name: str
    worktree: str
    issue: str | None
    live: bool
    status: str
    outcome: Outcome | None
    reason: Reason | None
    step: str | None
    phase: str | None
    task: str | None
    tasks_done: int
    tasks_total: int
    dispatches: int
    started_at: str | None
    last_at: str | None
    age_s: int | None
    driven_s: int | None = None
    cost_usd: float | None = None
    cost_known_usd: float | None = None
    tokens: int | None = None
    problem: str | None
    gate: str | None = None
    gate_place: str | None = None
    queued: bool = False
    landed: str | None = None
    not_before: str | None = None
    removed: bool = False


@dataclass(frozen=True, kw_only=True)
class RunsDocument:
    """What `runs --json` prints, the newest run first, of all worktrees of the repository."""

    schema: Literal["redfirst.runs/1"] = "redfirst.runs/1"
    ok: Literal[True] = True
    runs: tuple[RunLine, ...]


@dataclass(frozen=True)
class Rest:
    """What the runs took together that a list leaves out: the oldest of those that have ended.

    `cost_usd` is what is known; `is_whole` says that nothing of it is unknown.
    """

    runs: int = 0
    driven_s: int = 0
    cost_usd: float | None = None
    is_whole: bool = True


def as_json(document: RunsDocument) -> dict[str, Any]:
    """Return the document as `runs --json` prints it."""
    return cast("dict[str, Any]", json.loads(json.dumps(asdict(document))))


def line_of(folder: Path, now: datetime) -> RunLine:
    """Return the line of a run."""
    live = FileLease.is_held(folder)
    try:
        line = line_from(folder, now if live else None)
    except UserError as error:
        return unread_line(folder, error.message, live=live)
    rests = "queued" if line.queued else "interrupted"
    found = aged(replace(line, live=live, status=RUNNING if live else rests), now)
    return found if live or has_ended(found) or gone_on(folder) is None else replace(found, status=ELSEWHERE)


def aged(line: RunLine, now: datetime) -> RunLine:
    """Return the line of a run as it stands now: an index of ended runs has no ages and no words."""
    status = status_word(line.outcome, line.reason) if line.outcome is not None else line.status
    try:
        begun = datetime.fromisoformat(line.started_at or "")
    except ValueError:
        return replace(line, status=status, age_s=None)
    return replace(line, status=status, age_s=max(int((now - begun.astimezone(UTC)).total_seconds()), 0))


def line_from(folder: Path, now: datetime | None = None) -> RunLine:
    """Return the line of a run as its files say; whether it is driven, and its age, are asked each time.

    Args:
        folder: Of the run.
        now: The time, while a process drives it.

    Raises:
        UserError: the run is damaged.
    """
    # These are heavy, and a run that has ended is known from an index.
    from pipeline.run.gates import gate_of, gate_place  # noqa: PLC0415
    from pipeline.run.records import is_of_recipe  # noqa: PLC0415
    from pipeline.run.run import Run  # noqa: PLC0415
    from pipeline.run.spending import spent  # noqa: PLC0415
    from pipeline.run.summary_facts import driven_s, landed_on, not_before_of, progress_of  # noqa: PLC0415

    if is_of_recipe(folder):
        line, run = _steps_of(folder)
    else:
        run = Run.load(folder, driving=False)
        done, total = progress_of(run)
        line = replace(
            unread_line(folder, None, live=False, issue=run.issue),
            step=run.state.trunk.step.value,
            phase=run.state.trunk.step.phase,
            task=run.state.current,
            tasks_done=done,
            tasks_total=total,
            gate=gate_of(run),
            gate_place=gate_place(run),
            landed=landed_on(run),
        )
    taken = spent(run)
    try:
        driven = int(driven_s(run, now))
    except ValueError:
        driven = None
    return replace(
        line,
        status="",
        outcome=run.state.outcome,
        reason=run.state.reason,
        dispatches=run.state.dispatches,
        started_at=run.info.started_at,
        last_at=run.journal.lines[-1].at if run.journal.lines else None,
        driven_s=driven,
        cost_usd=taken.cost_usd if taken.asked and not taken.unpriced else None,
        cost_known_usd=taken.cost_usd if taken.asked else None,
        tokens=taken.tokens if taken.asked and not taken.uncounted else None,
        queued=run.queued,
        not_before=not_before_of(run, now),
    )


def _steps_of(folder: Path) -> tuple[RunLine, RecipeRun]:
    """Return a run that the steps of a recipe drive, and what its line alone has; each step counts as a task."""
    from pipeline.app.gate_packets import gates_place, open_gates  # noqa: PLC0415  (the same)
    from pipeline.matrix.recipes.step_table import Checkpoint  # noqa: PLC0415  (heavy; an ended run is known)
    from pipeline.run.recipe_run import RecipeRun  # noqa: PLC0415  (the same)

    run = RecipeRun.load(folder, driving=False)
    gates = tuple(gate.step for gate in open_gates(run)) if run.state.reason is Reason.APPROVAL else ()
    names = [name for id_ in run.machine.order for name in run.machine.names(run.state, id_)]
    line = replace(
        unread_line(folder, None, live=False),
        tasks_done=sum(run.state.settled.get(name) is Checkpoint.READY for name in names),
        tasks_total=len(names),
        gate=", ".join(gates) or None,
        gate_place=gates_place(gates) if gates else None,
    )
    return line, run


def unread_line(
    folder: Path, why: str | None, *, live: bool, issue: str | None = None, status: str = "damaged"
) -> RunLine:
    """Return the line of a run that cannot be read, with why."""
    return RunLine(
        name=folder.name,
        worktree=as_utf8(str(folder.parent if folder.name == WORKFLOW else folder.parents[1])),
        issue=issue,
        live=live,
        status=status,
        outcome=None,
        reason=None,
        step=None,
        phase=None,
        task=None,
        tasks_done=0,
        tasks_total=0,
        dispatches=0,
        started_at=None,
        last_at=None,
        age_s=None,
        problem=why,
    )


TICK_NS: Final = 20_000_000
"""What changes twice within a tick of the file system's clock may look the same: what is so new is not kept."""
_MOST: Final = 200
_FORM: Final = [VERSION, *(field.name for field in fields(RunLine))]
"""An index of another form is made anew."""

Facts = list[int | str]
"""What tells that a run is the same as it was."""


class RunIndex:
    """The lines of ended runs, as far as they are known.

    Args:
        of: What it is an index of: `.workflow` of a worktree, or the refs of a repository.
    """

    def __init__(self, of: Path) -> None:
        digest = blake2b(os.fsencode(of), digest_size=16).hexdigest()
        self._place = state_folder(os.environ) / "runs" / f"{digest}.json"
        self._changed = False
        self._rows: dict[str, Any] = {}
        with suppress(OSError, ValueError, LookupError, TypeError):  # it is not there, or somebody has spoilt it
            kept = json.loads(self._place.read_bytes())
            self._rows = {**kept["runs"]} if kept["form"] == _FORM else {}

    def line(self, name: str, facts: Facts | None) -> RunLine | None:
        """Return the line of a run with these facts, None where it is to be read."""
        try:
            known, line = self._rows[name]
            if facts is None or known != facts:
                return None
            told: dict[str, Any] = {**line, "outcome": Outcome(line["outcome"]), "reason": None}
            told |= {"reason": Reason(line["reason"])} if line["reason"] else {}
            return RunLine(**told)
        except (LookupError, TypeError, ValueError):  # it is not there, or somebody has spoilt it
            return None

    def add(self, name: str, facts: Facts | None, line: RunLine) -> None:
        """Keep the line of a run that was read now, if it has ended."""
        if facts is not None and not line.live and line.problem is None and has_ended(line):
            self._rows[name] = (facts, asdict(line))
            self._changed = True

    def keep(self, names: Collection[str]) -> None:
        """Write the index down if it is another one, for the runs that there are; a disk that is full costs nothing."""
        there = frozenset(names)
        if not self._changed and self._rows.keys() <= there:
            return
        rows = {name: row for name, row in self._rows.items() if name in there}
        aside = self._place.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            aside.write_text(json.dumps({"form": _FORM, "runs": rows}, separators=(",", ":")), encoding="utf-8")
            aside.chmod(0o600)
            aside.replace(self._place)
            older = sorted(self._place.parent.glob("*.json"), key=lambda one: one.stat().st_mtime_ns)
            for one in older[:-_MOST]:
                one.unlink()


def facts_of(folder: Path) -> Facts | None:
    """Return what lstat says of a run's journal, None where there is none, or it may still change and look the same."""
    try:
        of = os.lstat(folder / RECORDS[-1])
    except OSError:
        return None
    return None if of.st_ctime_ns >= time.time_ns() - TICK_NS else [of.st_ctime_ns, of.st_size, of.st_ino]


def has_ended(line: RunLine) -> bool:
    """Return whether a run stands so that it can never go on."""
    return line.outcome in FINAL or line.reason is Reason.ABANDONED


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
    return _document([*_all_lines(roster, moment), *_lines_of_strangers(roster, repository)])


def with_removed(repository: Repository, document: RunsDocument, most: int | None = None) -> RunsDocument:
    """Return a list with the ended runs that only their refs have, at most so many: the newest.

    Nothing can be done with them, so that only who reads a list of runs is told of them.
    """
    found = _document(list(_removed(Roster(repository), datetime.now(UTC)))).runs
    return _document([*document.runs, *found[:most]])


def newest_runs(repository: Repository, most: int) -> tuple[RunsDocument, Rest]:
    """Return the runs that have not ended and the newest of the others, at most so many, and what the rest took."""
    runs = list_runs(repository).runs
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


def _lines_of_strangers(roster: Roster, repository: Repository) -> Iterator[RunLine]:
    """Yield the lines of folders that are not looked into, and of claims of runs that are gone."""
    yield from (unread_line(folder, error.message, live=False) for folder, error in roster.problems.items())
    for issue, claim in orphans(repository).items():
        refusal = claimant(roster, issue, claim).refusal()
        why = f"{refusal.message} ({refusal.actions[-1]})"
        yield unread_line(claim.folder, why, live=False, issue=issue, status=GONE)


def _all_lines(roster: Roster, now: datetime) -> Iterator[RunLine]:
    """Yield the lines of all runs; of those that have ended nothing is opened but an index."""
    for folder, names in roster.folders.items():
        index = RunIndex(folder)
        for name in names:
            facts = facts_of(folder / name)
            line = index.line(name, facts)
            if line is not None:
                yield aged(line, now)
            elif (folder / name / "run.json").is_file():
                index.add(name, facts, line := line_of(folder / name, now))
                yield line
        index.keep(names)


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
        if line is None and (line := line_at(repository, key, refs[key])) is not None:
            index.add(key, [refs[key]], line)
        if line is not None and has_ended(line):
            yield aged(line, now)
    index.keep(refs)


def line_at(repository: Repository, key: str, oid: str) -> RunLine | None:
    """Return the line of a run as its ref or a checkpoint has it, None where that has no record of it."""
    worktree, _, name = key.partition("/")
    try:
        with scratch_folder("record") as place:
            for entry in repository.entries(oid, "run"):
                path = place / worktree / ".workflow" / name / entry.path.removeprefix("run/")
                is_kept = path.name in _KEPT and ".." not in path.parts  # a stranger may have made that tree
                content = repository.blob(entry.oid, ARTIFACT_LIMIT) if is_kept else None
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
            from pipeline.run.records import is_of_recipe  # noqa: PLC0415  (heavy; `show` does without it)

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


def claimants(repository: Repository, claims: Mapping[str, Claim]) -> dict[str, Claimant]:
    """Return who has each of these issues, and how its run stands."""
    roster = Roster(repository)
    there = {claim.folder for claim in claims.values()} & {run.folder for run in roster.runs}
    lines = dict(zip(there, lines_of(there), strict=True))
    return {
        issue: claimant(roster, issue, claim, lines[claim.folder].status if claim.folder in lines else None)
        for issue, claim in claims.items()
    }
