"""A journal as it grows: what was read is not read again, and a line that is not whole yet waits."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from pipeline.engine.journal import JOURNAL, Line, damaged, line_of
from pipeline.runs.folder import RunFolder
from pipeline.runs.lease import FileLease
from pipeline.runs.records import RECORD_LIMIT, open_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POLL_S: Final = 0.1
"""Seconds between two looks at a journal that is followed."""


class Tail:
    """Reads on from where it was in the journal of a run."""

    def __init__(self, folder: Path) -> None:
        self.store = RunFolder(folder)
        self.read = 0
        """Lines."""
        self._offset = 0

    def lines(self) -> list[Line]:
        """Return the lines that are there since the last time.

        Raises:
            UserError: one of them is damaged.
        """
        try:
            handle = open_record(self.store.path, JOURNAL, os.O_RDONLY)
        except FileNotFoundError:
            return []
        try:
            there = os.fstat(handle).st_size - self._offset
            content = os.pread(handle, min(max(there, 0), RECORD_LIMIT), self._offset)
        finally:
            os.close(handle)
        whole = content[: content.rfind(b"\n") + 1]
        found: list[Line] = []
        for text in whole.splitlines():
            try:
                found.append(line_of(text, self.read + 1))
            except (ValueError, RecursionError) as error:
                raise damaged(self.store, self.read + 1, str(error).splitlines()[0]) from error
            self.read += 1
        self._offset += len(whole)
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
