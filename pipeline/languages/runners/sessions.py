"""Reads the records of our programs in the box line by line, up to the first line that is not theirs."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

if TYPE_CHECKING:
    from pipeline.process import Answer


class Said(BaseModel):
    """The base of frozen values in which unknown keys are ignored: compilers and runners add some every year."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Line(Said):
    """A record: `nonce` is its program's secret, `n` its number, from 0."""

    nonce: str
    n: int


class ProcessLine(Line):
    """A record of a process that ended, with its output."""

    code: int
    stdout: str = ""
    stderr: str = ""
    timed_out: bool = False


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
