"""Reads the records of our programs in the box line by line, up to the first line that is not theirs."""

from __future__ import annotations

import io
import json
import secrets
import shutil
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipeline.judge.evidence.observation import CollectionError, Ended, Fault, Layout, Observation, RunState, TestRecord
from pipeline.process import Answer, Command, Completed, Mount
from pipeline.programs import locate
from pipeline.testing.languages.runners.exec_guard import UNWATCHED

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.testing.languages.protocol import Measurement
    from pipeline.trees import Files


class Said(BaseModel):
    """The base of frozen values in which unknown keys are ignored: compilers and runners add some every year."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Line(Said):
    """A record: `nonce` is its program's secret, `n` its number, from 0."""

    nonce: str
    n: int


class ProcessLine(Line):
    """A record of a process that ended, with its output; see `exec_guard.Watch` for the calls that it attempted."""

    code: int
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False
    replaced: bool = False
    unwatched: str = ""


class Start(Line):
    """A record that a test begins."""

    kind: Literal["start"]
    id: str


class OutOfTime(Line):
    """A record that the time for all tests is used up."""

    kind: Literal["out_of_time"]


class End(Line):
    """A record that the program ended in order."""

    kind: Literal["end"]


_Line = TypeVar("_Line", bound=Line)


@dataclass(frozen=True)
class Session:
    """The records of one run of a program. `fault` says why they cannot be used, or is empty."""

    records: tuple[Line, ...]
    fault: str = ""

    def of(self, kind: type[_Line]) -> list[_Line]:
        """Return the records of a kind, in order."""
        return [record for record in self.records if isinstance(record, kind)]

    def first(self, kind: type[_Line]) -> _Line | None:
        """Return the first record of a kind, None if there is none."""
        return next(iter(self.of(kind)), None)

    @property
    def is_whole(self) -> bool:
        """Return whether the program ended in order."""
        return bool(self.records) and isinstance(self.records[-1], End)

    @property
    def is_late(self) -> bool:
        """Return whether the time was used up."""
        return bool(self.of(OutOfTime))

    @property
    def unwatched(self) -> list[str]:
        """Return in words why processes could not be watched, each reason once."""
        return [f"{UNWATCHED}: {why}" for why in sorted({line.unwatched for line in self.of(ProcessLine)} - {""})]

    @property
    def last(self) -> Session:
        """Return the session reduced to its last record, for a run in which no test ran."""
        return Session(self.records[-1:])

    def then(self, following: Session) -> Session:
        """Return the session with the records of a later run of the program added."""
        return Session((*self.records, *following.records), self.fault or following.fault)


def read_session(answer: Answer, nonce: str, adapter: TypeAdapter[_Line]) -> Session:
    """Return the session in an answer; a line that is not ours makes it unusable."""
    return Session(*read_records(answer.data, answer.fault, nonce, adapter, End))


def read_records(
    data: bytes, fault: str, nonce: str, adapter: TypeAdapter[_Line], last: type[Line]
) -> tuple[tuple[_Line, ...], str]:
    """Return the records in *data*, and why they cannot be used (empty if they can).

    The last line may be torn, when the program was killed while it wrote; it is no record then.

    Args:
        data: What came over the socket.
        fault: What is wrong with the way that it came, or nothing.
        nonce: What each record has to have.
        adapter: Reads one record.
        last: What nothing may follow.
    """
    records: list[_Line] = []
    if fault:
        return (), fault
    for number, line in enumerate(io.BytesIO(data)):
        if records and isinstance(records[-1], last):
            return tuple(records), "something was written after the end of the records"
        if not line.endswith(b"\n"):
            break
        try:
            record = adapter.validate_json(line)
        except ValidationError:
            return tuple(records), f"line {number + 1} of the records is not a record"
        if record.nonce != nonce or record.n != number:
            return tuple(records), f"line {number + 1} of the records was not written by the harness"
        records.append(record)
    return tuple(records), ""


TAIL: Final = 8_000
"""The most characters of output that are kept for people."""
COMPILING: Final = "compiling the tests reached the time limit"
_SHOWN: Final = 20
_LARGEST: Final = 8_000_000


@dataclass(frozen=True)
class Unusable:
    """The reason why no test can be run. `errors` are set if the project itself is at fault."""

    state: RunState
    detail: str
    errors: tuple[CollectionError, ...] = ()


@dataclass(frozen=True)
class Compiled:
    """What was compiled before its tests run. `measured` are its files, `workspace` is its path in the box."""

    measured: Files
    workspace: str
    errors: tuple[CollectionError, ...]

    @cached_property
    def files(self) -> dict[str, str]:
        """Return the digest of each file with tests, and of what they read."""
        raise NotImplementedError

    @cached_property
    def layout(self) -> Layout:
        """Return the layout of tests."""
        raise NotImplementedError

    def line(self, path: str, number: int) -> str:
        """Return a line of a file of the workspace, empty if there is none."""
        lines = (self.measured.read(path, _LARGEST) or b"").decode("utf-8", "replace").split("\n") if path else []
        return lines[number - 1] if 0 < number <= len(lines) else ""


@dataclass(frozen=True)
class Told:
    """What people are told of a run of what is compiled first: what they would type, and what the compiler said."""

    command: tuple[str, ...]
    tail: str

    def nothing(self, why: Unusable, completed: Completed) -> Observation:
        """Return the observation of a project none of whose tests could be run."""
        tail = (self.tail or completed.stderr.decode("utf-8", "replace"))[-TAIL:]
        return Observation(
            state=why.state, detail=why.detail, collection_errors=why.errors, command=self.command, tail=tail
        )

    def observation(
        self,
        project: Compiled,
        session: Session,
        records: dict[str, TestRecord],
        end: tuple[RunState, str],
        said: Iterable[str],
        stack: re.Pattern[str],
    ) -> Observation:
        """Return the observation of a run of chosen tests.

        Args:
            project: What was compiled.
            session: The records of the run.
            records: The tests as they ended.
            end: How the run did.
            said: What the tests printed.
            stack: What of that is a stack, which people are not shown.
        """
        text = stack.sub("", "\n".join((self.tail, *session.unwatched, *said)))
        return Observation(
            state=end[0],
            detail=end[1],
            records=with_last_outcome(records, session, end[0]),
            collection_errors=project.errors,
            files=project.files,
            layout=project.layout,
            command=self.command,
            tail=text.replace(f"{project.workspace}/", "")[-TAIL:],
        )


def unfinished(session: Session, completed: Completed, detail: str = COMPILING) -> Unusable:
    """Return why a session did not complete; `detail` is used if the session has no reason."""
    state = RunState.TIMED_OUT if completed.timed_out or session.is_late else RunState.UNUSABLE
    return Unusable(state, session.fault or detail)


def state_of(session: Session, *, timed_out: bool) -> tuple[RunState, str]:
    """Return the state of a run of tests, and why it cannot be used; `timed_out` if the box ended it."""
    if session.fault:
        return RunState.UNUSABLE, session.fault
    if timed_out or session.is_late:
        return RunState.TIMED_OUT, "the test run reached its time limit"
    if not session.is_whole:
        return RunState.CRASHED, "the test run died"
    return RunState.COMPLETE, ""


def with_last_outcome(records: dict[str, TestRecord], session: Session, state: RunState) -> dict[str, TestRecord]:
    """Return the records, with the run's own end added to the test that was running then."""
    started = [line.id for line in session.of(Start) if line.id in records]
    if state not in {RunState.CRASHED, RunState.TIMED_OUT} or not started or records[started[-1]].outcome is not None:
        return records
    ended = Ended.TIMED_OUT if state is RunState.TIMED_OUT else Ended.CRASHED
    return {**records, started[-1]: records[started[-1]].model_copy(update={"outcome": ended})}


_WORST_FIRST: Final = (
    Ended.CRASHED, Ended.TIMED_OUT, Ended.FAILED, Ended.STRICT_XPASS, Ended.SKIPPED, Ended.XFAILED, Ended.XPASSED,
    Ended.PASSED,
)  # fmt: skip


def badness(outcome: Ended) -> int:
    """Return the place of an outcome among all of them, the worst first: of several ends of a test it counts."""
    return _WORST_FIRST.index(outcome)


def relative(fault: Fault, workspace: str) -> Fault:
    """Return a fault whose messages name files of the workspace from there on."""
    chain = (
        raised.model_copy(update={"message": raised.message.replace(f"{workspace}/", "")}) for raised in fault.chain
    )
    return fault.model_copy(update={"chain": tuple(chain)})


def shortened(words: Sequence[str]) -> tuple[str, ...]:
    """Return the first words of a long list, and the number of the others."""
    rest = () if len(words) <= _SHOWN else (f"... and {len(words) - _SHOWN} more",)
    return (*words[:_SHOWN], *rest)


_LANGUAGES: Final = Path(__file__).parents[1]
_COMMON: Final = ("runners/exec_guard.py", "runners/processes.py")
_MAIN: Final = "from pipeline.testing.languages.{}.runner import main\n\nmain()\n"
_ANSWER: Final = 512_000_000
_GRACE_S: Final = 20.0
_Record = TypeVar("_Record", bound=Line)


@dataclass(frozen=True)
class BoxedRunner:
    """A measurement's request, and the folder of our program."""

    asked: Measurement
    program: Path

    async def ask(
        self,
        request: Mapping[str, object],
        limit_s: float,
        adapter: TypeAdapter[_Record],
        variables: Mapping[str, str],
        *mounts: Mount,
        packages: Sequence[Mount] = (),
    ) -> tuple[Session, Completed]:
        """Run our program with a request, and return the records that it wrote.

        Args:
            request: What it is asked; the nonce and the limit are added.
            limit_s: How long it may take by its own clock.
            adapter: Reads one of its records.
            variables: Its environment.
            mounts: What it is shown beside the view, the language and itself.
            packages: What is shown inside the view, and over which the language's own mounts may lie.
        """
        nonce = secrets.token_hex(16)
        python = locate(sys.executable)
        asked = self.asked
        completed = await asked.box.run(
            Command(
                argv=python.argv("-I", "-S", str(self.program)),
                cwd=asked.view.workspace,
                mounts=(
                    asked.view.mount,
                    *packages,
                    *asked.env.mounts,
                    *(mount for mount in python.mounts if mount not in asked.env.mounts),
                    Mount(self.program, self.program),
                    *mounts,
                ),
                env=dict(variables),
                request=json.dumps({**request, "nonce": nonce, "timeout_s": limit_s}).encode(),
                timeout_s=limit_s + _GRACE_S,
                answer_limit=_ANSWER,
            )
        )
        return read_session(completed.answer, nonce, adapter), completed


def lay_out(place: Path, language: str) -> Path:
    """Create the folder of our program, from the runner of a language and common files.

    They lie as in the package, so that they find each other by the same names.
    """
    program = place / "program"
    package = program / "pipeline" / "testing" / "languages"
    for name in (*_COMMON, f"{language}/runner.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_LANGUAGES / name, package / name)
    (program / "__main__.py").write_text(_MAIN.format(language), encoding="utf-8")
    return program
