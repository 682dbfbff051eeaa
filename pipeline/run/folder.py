"""Stores a run for the engine in files that a crash leaves whole; remembers what its driver wrote; follows its journal.

Several dispatches may be at work at a time, and the driver goes on writing meanwhile. Whoever looks for an escape
compares with what the driver wrote last of what only it writes, so that a record of another lane is none, and the same
file in other words is one.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.matrix.engine.journal import JOURNAL, Line, whole_lines
from pipeline.run.files import Seal, disk, write_atomic
from pipeline.run.lease import FileLease, refuse_other_driver
from pipeline.run.records import ARTIFACT_LIMIT, RECORD_LIMIT, open_record, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_RECORDS: Final = ("run.json", "evidence")
"""What no person edits; plan and tasks are left out, which one may."""


@dataclass(frozen=True)
class Standing:
    """How the records stood at one moment; `moment` counts the writes until then."""

    moment: int
    seal: Seal


class Written:
    """The writes of one driver, newest first by name. Nothing here awaits, so that a write and its note are one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._moment = 0
        self._files: dict[str, tuple[int, str]] = {}
        self._refs: dict[str, tuple[int, str]] = {}
        self._journal = hashlib.sha256()
        self._length = 0
        self._is_known = False

    @property
    def run_id(self) -> str:
        """Return the name of the run."""
        return self.folder.name

    def file(self, name: str, content: bytes) -> None:
        """Note that a file of the run has this content now."""
        self._moment += 1
        path = self.folder / name
        self._files[str(path)] = (self._moment, hashlib.sha256(content).hexdigest())

    def line(self, line: bytes) -> None:
        """Note that the journal has one more line."""
        self._journal.update(line)
        self._length += len(line)

    def ref(self, name: str, oid: str) -> None:
        """Note that a ref points there now, "" where it is gone."""
        self._moment += 1
        self._refs[name] = (self._moment, oid)

    def standing(self) -> Standing:
        """Return how the records stand now. What is in the journal when this is first asked was there before us."""
        if not self._is_known:
            content = self._read_journal()
            self._journal, self._length, self._is_known = hashlib.sha256(content), len(content), True
        return Standing(self._moment, Seal.of(*(self.folder / name for name in _RECORDS)))

    def changed(self, since: Standing) -> Iterator[Path]:
        """Yield the records that are neither as they stood nor as we wrote them since."""
        for path in map(Path, since.seal.broken()):
            if not self._is_ours(path, since.moment):
                yield path

    def refs(self, before: Mapping[str, str], since: Standing) -> dict[str, str]:
        """Return where refs have to point now: as before, or where we have pointed them since."""
        moved = {name: oid for name, (moment, oid) in self._refs.items() if moment > since.moment}
        return {name: oid for name, oid in {**before, **moved}.items() if oid}

    def journal(self) -> tuple[str, str] | None:
        """Return the hash that the journal has to have and the one that it has; None where they are one."""
        content = self._read_journal()
        if len(content) == self._length and hashlib.sha256(content).digest() == self._journal.digest():
            return None
        return self._journal.hexdigest(), hashlib.sha256(content).hexdigest() if content else ""

    def _is_ours(self, path: Path, moment: int) -> bool:
        try:
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                return any(
                    Path(name).is_relative_to(path) for name, (written, _) in self._files.items() if written > moment
                )
            written, digest = self._files.get(str(path), (0, ""))
            is_newer = written > moment and stat.S_ISREG(mode)
            return is_newer and hashlib.sha256(path.read_bytes()).hexdigest() == digest
        except OSError:
            return False

    def _read_journal(self) -> bytes:
        try:
            return (self.folder / JOURNAL).read_bytes()
        except OSError:
            return b""


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
