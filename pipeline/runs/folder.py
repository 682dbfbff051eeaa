"""Stores a run for the engine, in files that a crash leaves whole."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from pipeline.engine.journal import JOURNAL
from pipeline.runs.files import disk, write_atomic
from pipeline.runs.lease import refuse_other_driver
from pipeline.runs.records import ARTIFACT_LIMIT, open_record, read_record
from pipeline.runs.written import Written

if TYPE_CHECKING:
    from pathlib import Path


class RunFolder:
    """`.workflow/run-<ID>[@n]`, absolute. It may be a stranger's: no link in it is followed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.host = socket.gethostname()
        self.written = Written(path)

    def where(self, name: str) -> str:
        """Return where a person finds a file of the run."""
        return str(self.path / name)

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            OSError: it is not there, or is none that a run writes.
        """
        return read_record(self.path, name, ARTIFACT_LIMIT)

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file: a crash leaves the old content or the new one.

        Raises:
            UserError: the disk does not take it.
        """
        data = content.encode("utf-8", errors="surrogateescape") if isinstance(content, str) else content
        write_atomic(self.path / name, data, below=self.path.parents[1])
        self.written.file(name, data)

    def journal(self) -> bytes:
        """Return the journal as it is, empty where there is none yet.

        Raises:
            OSError: it cannot be read.
        """
        try:
            return read_record(self.path, JOURNAL)
        except FileNotFoundError:
            return b""

    def append(self, line: bytes) -> None:
        """Add a line to the journal, all of it or nothing; it is on disk when this returns.

        Raises:
            UserError: the disk does not take it, or another process took the run over.
        """
        refuse_other_driver(self.path)
        with disk(self.path / JOURNAL):
            handle = open_record(self.path, JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                _write_all(handle, line)
                os.fdatasync(handle)
            finally:
                os.close(handle)
        self.written.line(line)

    def cut(self, size: int) -> None:
        """Leave only the first *size* bytes of the journal.

        Raises:
            UserError: the disk does not take it.
        """
        path = self.path / JOURNAL
        with disk(path):
            if path.exists() and path.stat().st_size > size:
                with os.fdopen(open_record(self.path, JOURNAL, os.O_RDWR), "r+b") as stream:
                    stream.truncate(size)
                    os.fsync(stream.fileno())


def _write_all(handle: int, data: bytes) -> None:
    start = os.fstat(handle).st_size
    try:
        while data:
            data = data[os.write(handle, data) :]
    except OSError:
        os.ftruncate(handle, start)  # a half line would look like a crash
        raise
