"""Logs each request to a model service as one line of JSON: never a header, a body or a query."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.gateway.prices import Tokens

_LINES: Final = 20_000
"""The most lines of a log: an agent that is refused endlessly must not fill the disk."""
_PATH: Final = 300


@dataclass
class Line:
    """The log entry of one request. `status` is None if nothing was answered; `method` and `path` if unreadable.

    What a model has answered, and only that, has `model`, `tokens` and `cost_usd` as well: null where it is not known.
    """

    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    method: str | None = None
    path: str | None = None
    status: int | None = None
    bytes_up: int = 0
    bytes_down: int = 0
    seconds: float = 0.0
    refused: str | None = None
    answered: bool = False
    model: str | None = None
    tokens: Tokens | None = None
    cost_usd: float | None = None


class RequestLog:
    """The request log of a dispatch, a file that is appended to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = _LINES

    def write(self, line: Line) -> None:
        """Append *line*; the agent's text in it is escaped and cut.

        Raises:
            OSError: the file cannot be written.
        """
        if self._left <= 0:
            return
        self._left -= 1
        record = asdict(line) | {"path": line.path[:_PATH] if line.path else line.path}
        if not record.pop("answered"):
            del record["model"], record["tokens"], record["cost_usd"]
        if self._left == 0:
            record["note"] = "this log is full"
        with self._path.open("a", encoding="ascii") as file:
            file.write(json.dumps(record) + "\n")
