"""Reads the records that a runner wrote, line by line, up to the first that it cannot have written."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

if TYPE_CHECKING:
    from pipeline.process import Answer


class Numbered(Protocol):
    """A record of any runner."""

    @property
    def nonce(self) -> str: ...  # noqa: D102  (what the runner was told)
    @property
    def n(self) -> int: ...  # noqa: D102  (its place among the records, from 0)


_Record = TypeVar("_Record", bound=Numbered)


def read_records(
    answer: Answer, nonce: str, adapter: TypeAdapter[_Record], last: type[_Record]
) -> tuple[tuple[_Record, ...], str]:
    """Return the records, and why they cannot be believed, or nothing.

    The last line may be torn, when the runner was killed while it wrote; it is no record then.

    Args:
        answer: What came over the socket.
        nonce: What each record has to have.
        adapter: Reads one record.
        last: What nothing may follow.
    """
    records: list[_Record] = []
    for number, line in enumerate(io.BytesIO(answer.data)):
        if not line.endswith(b"\n"):
            break
        try:
            record = adapter.validate_json(line)
        except ValidationError:
            return tuple(records), f"line {number + 1} of the records is not a record"
        if record.nonce != nonce or record.n != number:
            return tuple(records), f"line {number + 1} of the records was not written by the harness"
        if records and isinstance(records[-1], last):
            return tuple(records), "something was written after the end of the records"
        records.append(record)
    return tuple(records), answer.fault
