"""The append-only journal of a run: one JSON line for each event, on disk before anything that depends on it happens.

A torn last line is the mark of a crash and is cut off; a broken line anywhere else is damage, and refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, cast

from pydantic import Field, ValidationInfo, WithJsonSchema, field_serializer, field_validator
from typing_extensions import TypeVar

from pipeline.data_types import Frozen, Timestamp
from pipeline.errors import UserError
from pipeline.matrix.engine.journal_kinds import EVENTS, JournalEvent
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from pipeline.matrix.engine.protocols import Store

JOURNAL: Final = "journal.jsonl"
SCHEMA: Final = "redfirst.journal/1"
_LONGEST_LINE: Final = 8 * 1024 * 1024

Event_co = TypeVar("Event_co", bound=JournalEvent, default=JournalEvent, covariant=True)

_ANY_OBJECT: Final = {"type": "object", "additionalProperties": True, "title": "Data"}


def _one_of_the_kinds(schema: dict[str, Any]) -> None:
    schema["enum"] = sorted(EVENTS)


class Line(Frozen, Generic[Event_co]):
    """A line of the journal: an event with its number, time and origin.

    `at` is UTC, to the millisecond; `epoch` counts the drivers that the run has had.
    """

    schema_: str = Field(default=SCHEMA, alias="schema")
    seq: int
    at: Timestamp
    host: str
    epoch: int
    kind: str = Field(json_schema_extra=_one_of_the_kinds)
    data: Annotated[Event_co, WithJsonSchema(_ANY_OBJECT)]

    @field_validator("kind")
    @classmethod
    def _is_known(cls, kind: str) -> str:
        if kind not in EVENTS:
            raise ValueError(f"no event is called {kind!r}")
        return kind

    @field_validator("data", mode="before")
    @classmethod
    def _of_its_kind(cls, data: object, said: ValidationInfo) -> object:
        kind: str | None = said.data.get("kind")
        return data if kind is None else EVENTS[kind].model_validate(data)

    @field_serializer("data")
    def _as_it_was_said(self, data: JournalEvent) -> dict[str, object]:
        return data.model_dump(mode="json", exclude_unset=True)

    def __str__(self) -> str:
        """Return the line as JSON, as it stands in the journal."""
        value = self.model_dump(mode="json", by_alias=True)
        return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")) + "\n"


Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Return *moment* as the journal writes it: ISO 8601 in UTC with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Journal:
    """The journal of one run; written by one driver at a time (`Lease`), read by anyone."""

    def __init__(self, store: Store, lines: list[Line], *, clock: Clock = utc_now) -> None:
        self.lines = lines
        self.epoch = lines[-1].epoch if lines else 1
        self._store = store
        self._clock = clock

    @classmethod
    def read(cls, store: Store) -> Journal:
        """Return the journal up to its last whole line, without changing the file.

        Raises:
            UserError: a line other than the last is broken.
        """
        lines, _ = _parse(store)
        return cls(store, lines)

    @classmethod
    def open(cls, store: Store, *, clock: Clock = utc_now) -> Journal:
        """Return the journal for writing; an incomplete last line is cut off.

        Raises:
            UserError: a line other than the last is broken, or the disk does not take the cut.
        """
        lines, whole = _parse(store)
        store.cut(whole)
        return cls(store, lines, clock=clock)

    def append(self, event: Event_co) -> Line[Event_co]:
        """Append an event and return its line; it is on disk when this returns.

        Raises:
            UserError: the disk does not take it.
        """
        line = Line(
            seq=len(self.lines) + 1,
            at=stamp(self._clock()),
            host=self._store.host,
            epoch=self.epoch,
            kind=event.KIND,
            data=event,
        )
        text = str(line)
        self._store.append(text.encode())
        # not model_validate_json: it refuses the lone surrogates that a file name may bring
        self.lines.append(Line.model_validate(json.loads(text)))
        return cast("Line[Event_co]", self.lines[-1])

    def of(self, kind: type[Event_co]) -> list[Line[Event_co]]:
        """Return the lines of one kind, oldest first."""
        return [cast("Line[Event_co]", line) for line in self.lines if isinstance(line.data, kind)]


def readable(content: bytes) -> list[Line]:
    """Return the journal's lines up to the first damaged one."""
    lines: list[Line] = []
    for text in content.splitlines():
        try:
            line = _line(text, len(lines) + 1)
        except (ValueError, RecursionError):
            break
        lines.append(line)
    return lines


def _parse(store: Store) -> tuple[list[Line], int]:
    """Return the whole lines of a journal and their size in bytes."""
    try:
        content = store.journal()
    except OSError as error:
        raise _damaged(store, 1, f"the file is {error.strerror}") from error
    return whole_lines(store, content, 1)


def whole_lines(store: Store, content: bytes, first: int) -> tuple[list[Line], int]:
    """Return the whole lines of a part of a journal, and their size in bytes; its first line has number *first*.

    Raises:
        UserError: one of them is broken; the last one may be torn, and is none yet.
    """
    whole = content.rfind(b"\n") + 1
    lines: list[Line] = []
    for number, text in enumerate(content[:whole].splitlines(), first):
        try:
            lines.append(_line(text, number))
        except (ValueError, RecursionError) as error:
            raise _damaged(store, number, str(error).splitlines()[0]) from error
    return lines, whole


def _line(text: bytes, number: int) -> Line:
    if len(text) > _LONGEST_LINE:
        raise ValueError(f"longer than {_LONGEST_LINE // 1024**2} MiB")
    line = Line.model_validate(json.loads(text))
    if line.seq != number:
        raise ValueError(f"seq is {line.seq}")
    return line


def _damaged(store: Store, number: int, why: str) -> UserError:
    return UserError(
        f"The journal {store.where(JOURNAL)} is damaged at line {number} ({why}). Nothing was changed. The run cannot "
        f"go on; put the file back, or: redfirst abandon {store.name} (its ref still holds the work)",
        Reason.USAGE,
        path=store.where(JOURNAL),
        pointer=f"/{number - 1}",
        actions=(f"redfirst abandon {store.name}", "git for-each-ref refs/redfirst/runs"),
    )
