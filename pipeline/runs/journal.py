"""The append-only journal of a run: one JSON line an event, on disk before anything that depends on it happens.

A torn last line is the mark of a crash and is cut off; a broken line anywhere else is damage, and refused.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final, Generic, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_serializer,
    field_validator,
)
from typing_extensions import TypeVar

from pipeline.errors import UserError
from pipeline.names import Timestamp
from pipeline.outcomes import Reason
from pipeline.runs.events import EVENTS, JournalEvent, Kind
from pipeline.runs.files import disk, to_json
from pipeline.runs.records import MIB, RECORD_LIMIT, open_record, read_record

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "redfirst.journal/1"

_LONGEST_LINE: Final = 8 * MIB


Event_co = TypeVar("Event_co", bound=JournalEvent, default=JournalEvent, covariant=True)


_ANY_OBJECT: Final = {"type": "object", "additionalProperties": True, "title": "Data"}


class Line(BaseModel, Generic[Event_co]):
    """One event. `at` is UTC, to the millisecond; `epoch` counts the drivers that the run has had."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: str = Field(default=SCHEMA, alias="schema")
    seq: int
    at: Timestamp
    host: str
    epoch: int
    kind: Kind
    data: Annotated[Event_co, WithJsonSchema(_ANY_OBJECT)]

    @field_validator("data", mode="before")
    @classmethod
    def _of_its_kind(cls, data: object, said: ValidationInfo) -> object:
        kind: Kind | None = said.data.get("kind")
        return data if kind is None else EVENTS[kind].model_validate(data)

    @field_serializer("data")
    def _as_it_was_said(self, data: JournalEvent) -> dict[str, object]:
        return data.model_dump(mode="json", exclude_unset=True)


Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Return *moment* as the journal writes it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Journal:
    """The journal file of one run; opened by one driver at a time (`lease`), read by anyone."""

    def __init__(self, path: Path, lines: list[Line], *, clock: Clock = utc_now) -> None:
        self.path = path
        self.lines = lines
        self.epoch = lines[-1].epoch if lines else 1
        self._clock = clock

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Return the journal at *path* as far as it is whole; changes nothing on disk.

        Raises:
            UserError: a line other than the last is broken.
        """
        lines, _ = _parse(path)
        return cls(path, lines)

    @classmethod
    def open(cls, path: Path, *, clock: Clock = utc_now) -> Journal:
        """Return the journal at *path* for writing; a torn last line is cut off.

        Raises:
            UserError: a line other than the last is broken, or the disk does not take the cut.
        """
        lines, whole = _parse(path)
        with disk(path):
            if path.exists() and path.stat().st_size > whole:
                with os.fdopen(open_record(path.parent, path.name, os.O_RDWR), "r+b") as stream:
                    stream.truncate(whole)
                    os.fsync(stream.fileno())
        return cls(path, lines, clock=clock)

    def append(self, event: Event_co) -> Line[Event_co]:
        """Write one event and return its line; it is on disk when this returns.

        Raises:
            UserError: the disk does not take it.
        """
        line = Line(
            seq=len(self.lines) + 1,
            at=stamp(self._clock()),
            host=socket.gethostname(),
            epoch=self.epoch,
            kind=event.KIND,
            data=event,
        )
        text = text_of(line)
        with disk(self.path):
            handle = open_record(self.path.parent, self.path.name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                _write_all(handle, text.encode())
                os.fdatasync(handle)
            finally:
                os.close(handle)
        # not model_validate_json: it refuses the lone surrogates that a file name may bring
        self.lines.append(Line.model_validate(json.loads(text)))
        return cast("Line[Event_co]", self.lines[-1])

    def of(self, kind: type[Event_co]) -> list[Line[Event_co]]:
        """Return the lines of one kind, oldest first."""
        return [cast("Line[Event_co]", line) for line in self.lines if isinstance(line.data, kind)]


def text_of(line: Line) -> str:
    """Return *line* as the file has it."""
    return to_json(line.model_dump(mode="json", by_alias=True), pretty=False) + "\n"


def _write_all(handle: int, data: bytes) -> None:
    start = os.fstat(handle).st_size
    try:
        while data:
            data = data[os.write(handle, data) :]
    except OSError:
        os.ftruncate(handle, start)  # a half line would look like a crash
        raise


def readable(content: bytes) -> list[Line]:
    """Return the lines of a journal before the first one that is damaged."""
    lines: list[Line] = []
    for text in content.splitlines():
        try:
            line = _line(text)
        except (ValueError, RecursionError):
            break
        if line.seq != len(lines) + 1:
            break
        lines.append(line)
    return lines


def _parse(path: Path) -> tuple[list[Line], int]:
    """Return the whole lines and how many bytes they take."""
    try:
        raw = read_record(path.parent, path.name, RECORD_LIMIT)
    except FileNotFoundError:
        raw = b""
    except OSError as error:
        raise _damaged(path, 1, f"the file is {error.strerror}") from error
    whole = raw.rfind(b"\n") + 1
    lines: list[Line] = []
    for number, text in enumerate(raw[:whole].splitlines(), 1):
        try:
            line = _line(text)
        except (ValueError, RecursionError) as error:
            raise _damaged(path, number, str(error).splitlines()[0]) from error
        if line.seq != number:
            raise _damaged(path, number, f"seq is {line.seq}")
        lines.append(line)
    return lines, whole


def _line(text: bytes) -> Line:
    if len(text) > _LONGEST_LINE:
        raise ValueError(f"longer than {_LONGEST_LINE // MIB} MiB")
    return Line.model_validate(json.loads(text))


def _damaged(path: Path, number: int, why: str) -> UserError:
    return UserError(
        f"The journal {path} is damaged at line {number} ({why}). Nothing was changed. The run cannot go on; put the "
        f"file back, or: redfirst abandon {path.parent.name} (its ref still holds the work)",
        Reason.USAGE,
        path=str(path),
        pointer=f"/{number - 1}",
        actions=(f"redfirst abandon {path.parent.name}", "git for-each-ref refs/redfirst/runs"),
    )
