"""Reads on in a journal as it grows: nothing is read twice, and a line that is not whole yet waits."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from pipeline.engine.journal import JOURNAL, whole_lines
from pipeline.runs.folder import RunFolder
from pipeline.runs.lease import FileLease
from pipeline.runs.records import RECORD_LIMIT, open_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.engine.journal import Line

POLL_S: Final = 0.1
"""Seconds between two looks at a journal that is followed."""


class Tail:
    """Reads on from where it was in the journal of a run."""

    def __init__(self, folder: Path) -> None:
        self._store = RunFolder(folder)
        self._read = 0
        self._offset = 0

    def lines(self) -> list[Line]:
        """Return the lines that are there since the last time.

        Raises:
            UserError: one of them is damaged.
        """
        try:
            handle = open_record(self._store.path, JOURNAL, os.O_RDONLY)
        except FileNotFoundError:
            return []
        try:
            there = os.fstat(handle).st_size - self._offset
            content = os.pread(handle, min(max(there, 0), RECORD_LIMIT), self._offset)
        finally:
            os.close(handle)
        found, size = whole_lines(self._store, content, self._read + 1)
        self._read += len(found)
        self._offset += size
        return found


def followed(folder: Path) -> Iterator[Line]:
    """Yield every line of a run's journal, and what is added, until no process drives the run any more.

    Raises:
        UserError: the journal is damaged.
    """
    tail = Tail(folder)
    while True:
        live = FileLease.is_held(folder)  # asked before the file is read: what its last act wrote is not missed
        found = tail.lines()
        yield from found
        if not found and not live:
            return
        time.sleep(POLL_S)
