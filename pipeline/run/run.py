"""Reads and writes a run on disk: run.json, its dispatches, and what its machine decided, from its journal."""

from __future__ import annotations

import abc
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeAlias

from pipeline.errors import UserError
from pipeline.matrix.engine import run as engine
from pipeline.matrix.engine.journal import JOURNAL, Clock, Journal, Line, readable, utc_now
from pipeline.matrix.engine.journal_kinds import RunStarted
from pipeline.matrix.engine.protocols import TRUNK, DecisionT, EventT, Machine, StateT
from pipeline.matrix.routing.advance import Decision, MatrixMachine
from pipeline.matrix.routing.state import PARALLEL, Event, RunState, Settings
from pipeline.outcomes import Reason
from pipeline.run.files import to_json
from pipeline.run.folder import RunFolder
from pipeline.run.info import DispatchRecord, DispatchResult, RunInfo
from pipeline.run.journal_kinds import ChangeAdmitted, ChangeRejected, DispatchFinished, DispatchStarted, GatesAsked
from pipeline.run.records import read_record, refuse_strange, remove_temporaries
from pipeline.run.store import issue_of
from pipeline.vocabulary import Loop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


Decided: TypeAlias = engine.Decided[RunState, Event, Decision]


class KeptRun(engine.MachineRun[StateT, EventT, DecisionT], abc.ABC):
    """A run of any machine, with its dispatches, that is read, or (under its lease) driven.

    Attributes:
        folder: `.workflow/run-<ID>[@n]`, absolute.
        written: What this driver wrote last of what only it writes.
        info: run.json.
        records: The last start of each dispatch, by number.
        results: The finished dispatches, by name.
        at_work: The dispatches that this driver has begun and that are not over, and how many attempts of each were
            lost before.
        resting: Those of them that wait for a service, so that nobody is at work for them.
    """

    def __init__(self, folder: RunFolder, info: RunInfo, journal: Journal) -> None:
        self.folder = folder.path
        self.written = folder.written
        self.info = info
        self.records: dict[int, DispatchRecord] = {}
        self.results: dict[str, DispatchResult] = {}
        self.at_work: dict[str, int] = {}
        self.resting: set[str] = set()
        self._said: set[str] = set()
        super().__init__(folder, journal, self.machine_of(info), program=f"redfirst {info.redfirst_version}")

    @staticmethod
    @abc.abstractmethod
    def machine_of(info: RunInfo) -> Machine[StateT, EventT, DecisionT]:
        """Return the machine that drives what run.json says.

        Raises:
            ValueError: it says nothing that this kind of run can be driven by.
        """

    @property
    def of_issue(self) -> dict[str, str]:
        """Return what the first line says of the issue; nothing of a run that works on none."""
        return {} if self.info.issue is None else {"issue": self.info.issue}

    @classmethod
    def create(
        cls, folder: Path, info: RunInfo, *, clock: Clock = utc_now, sandbox: Mapping[str, str] | None = None
    ) -> Self:
        """Make the run folder with run.json and the journal's first line, which names the sandbox.

        Raises:
            UserError: the disk does not take it.
        """
        if folder.exists():
            refuse_strange(folder)
            remove_temporaries(folder)
        store = RunFolder(folder)
        store.write("run.json", to_json(info.model_dump(mode="json", by_alias=True)))
        run = cls(store, info, Journal(store, [], clock=clock))
        said = {"run_id": info.run_id, "start_commit": info.start_commit}
        more = {} if sandbox is None else {"sandbox": dict(sandbox)}
        run.journal.append(RunStarted.model_validate({**said, **run.of_issue, **more}))
        return run

    @classmethod
    def load(cls, folder: Path, *, driving: bool) -> Self:
        """Return the run in *folder*; `driving` (under the lease) also repairs what a crash left half said.

        Raises:
            UserError: the run is damaged, or was written by a version that decides otherwise.
        """
        store, info = RunFolder(folder), _info(folder, cls.machine_of)
        run = cls(store, info, Journal.open(store) if driving else Journal.read(store))
        if driving:
            run.recover()
        return run

    @classmethod
    def salvage(cls, folder: Path) -> Self:
        """Return a damaged run as far as it can be read, so that it can be given up; its journal is set aside.

        Raises:
            UserError: run.json cannot be read either, or the disk does not take it.
        """
        store = RunFolder(folder)
        run = cls(store, _info(folder, cls.machine_of), Journal(store, []))
        damaged = store.journal()
        for line in readable(damaged):
            try:
                run.fold(line)
            except UserError:
                break
            run.journal.lines.append(line)
            run.journal.epoch = line.epoch
        aside = sum(1 for _ in folder.glob("journal.damaged-*")) + 1
        store.write(f"journal.damaged-{aside}.jsonl", damaged)
        store.write(JOURNAL, "".join(map(str, run.journal.lines)))
        return run

    def recover(self) -> None:
        """Say in the journal what happened before a crash but was not said: finished dispatches, effects."""
        remove_temporaries(self.folder)
        if not self.journal.lines:
            self.journal.append(RunStarted.model_validate({"run_id": self.info.run_id, **self.of_issue}))
        for record in list(self.records.values()):
            path = self.folder / "dispatches" / record.dispatch / "result.json"
            if record.dispatch not in self.results and path.exists():
                self.finish_dispatch(self._result(record.dispatch))
        for name, result in self.results.items():
            if name not in self._said:
                self._say_changes(result)
        super().recover()

    def start_dispatch(self, record: DispatchRecord) -> None:
        """Journal that a dispatch starts; it counts against DISPATCHES from here on, unless a desk is offered again."""
        unsaid = {"lane"} if record.lane == TRUNK else set[str]()
        unsaid |= set[str]() if record.offered_again else {"offered_again"}
        said = record.model_dump(mode="json", exclude=unsaid)
        self.tell(DispatchStarted.model_validate(said))
        folder = self.folder / "dispatches" / record.dispatch
        self.at_work[record.dispatch] = folder.is_dir() + sum(1 for _ in folder.parent.glob(f"{folder.name}.lost-*"))

    def lose_dispatch(self, name: str) -> None:
        """Take it that a dispatch ended without a result: its slot is asked again, and it has no share any more."""
        self.at_work.pop(name, None)

    def finish_dispatch(self, result: DispatchResult) -> None:
        """Journal that a dispatch is finished; its result.json is on disk already."""
        said = {"dispatch", "signal", "gate", "tree", "usage", "complaint"}
        said |= set[str]() if result.not_before is None else {"not_before"}
        data = result.model_dump(mode="json", include=said)
        self.tell(DispatchFinished.model_validate(data))
        self.at_work.pop(result.dispatch, None)
        self._say_changes(result)

    def _say_changes(self, result: DispatchResult) -> None:
        if result.gate is None:
            return
        said = ChangeAdmitted if result.gate == "admitted" else ChangeRejected
        paths = tuple(change.path for change in result.changes)
        self.tell(said(dispatch=result.dispatch, paths=paths, dropped=result.dropped, violations=result.violations))

    def fold(self, line: Line) -> None:
        """Take a line of the journal into the state, the records and the results.

        Raises:
            UserError: a result is missing, or the matrix decides otherwise today.
        """
        match line.data:
            case DispatchStarted() as record:
                self.records[record.number] = record
                self.state = replace(self.state, dispatches=self.state.dispatches + (not record.offered_again))
            case DispatchFinished(dispatch=name):
                self.results[name] = self._result(name)
            case ChangeAdmitted(dispatch=name) | ChangeRejected(dispatch=name):
                self._said.add(name)
            case _:
                super().fold(line)

    def _result(self, name: str) -> DispatchResult:
        path = f"dispatches/{name}/result.json"
        try:
            content = read_record(self.folder, path)
            return DispatchResult.model_validate(json.loads(content.decode("utf-8", "surrogateescape")))
        except (OSError, ValueError, RecursionError) as error:
            why = str(error).splitlines()[0]
            raise UserError(
                f"{self.info.run_id} is damaged: the result of {name} cannot be read ({why}). Put the file back, or: "
                f"redfirst abandon {self.info.run_id}",
                Reason.USAGE,
                path=str(self.folder / path),
                actions=(f"redfirst abandon {self.info.run_id}",),
            ) from error


class Run(KeptRun[RunState, Event, Decision]):
    """A run of an issue: the routing matrix drives it."""

    @staticmethod
    def machine_of(info: RunInfo) -> MatrixMachine:
        """Return the matrix, routed as run.json says.

        Raises:
            ValueError: the run is none of the issue that its name says, or has a limit of another machine.
        """
        if info.steps is not None:
            raise _OfRecipeError(info.run_id)
        if info.issue is None or info.issue != issue_of(info.run_id):
            raise ValueError(f"it is of {info.run_id}, which works on {info.issue or 'no issue'}")
        limits = {Loop(name): limit for name, limit in info.limits.items() if name != PARALLEL}
        parallel = info.limits.get(PARALLEL, 1)
        settings = Settings(
            limits, frozenset(info.gates), frozenset(info.points), info.park_on_blockers, parallel, info.phases
        )
        return MatrixMachine(info.start_tree, settings)

    def fold(self, line: Line) -> None:
        """Apply a line of the journal to the state; gates that a person asked for later hold from there on."""
        super().fold(line)
        if isinstance(line.data, GatesAsked):
            self.state = replace(self.state, gates=self.state.gates | {*line.data.gates})

    @property
    def issue(self) -> str:
        """Return the id of the issue."""
        if self.info.issue is None:
            raise LookupError(f"{self.info.run_id} works on no issue")
        return self.info.issue


class _OfRecipeError(ValueError):
    """The steps of a recipe drive the run."""


def _info(folder: Path, check: Callable[[RunInfo], object]) -> RunInfo:
    refuse_strange(folder)
    try:
        info = RunInfo.model_validate_json(read_record(folder, "run.json"))
        if info.run_id != folder.name:
            raise ValueError(f"it is of {info.run_id}")  # noqa: TRY301  (told as any other)
        check(info)
        return info  # noqa: TRY300  (the same)
    except _OfRecipeError as error:
        raise UserError(
            f"{folder.name} is of a recipe's own steps, and this command is for runs of issues. Look at it: "
            f"redfirst show {folder.name}",
            Reason.USAGE,
            actions=(f"redfirst show {folder.name}",),
        ) from error
    except (OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise UserError(
            f"{folder.name} cannot be read: run.json: {why}. Put the file back. If it is lost, remove {folder} and "
            "free the issue: git for-each-ref refs/redfirst/claims",
            Reason.USAGE,
            path=str(folder / "run.json"),
            actions=("git for-each-ref refs/redfirst/claims",),
        ) from error
