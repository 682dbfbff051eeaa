"""Remembers what the driver of a run wrote last of what only it writes: records, journal, refs of the run.

Several dispatches may be at work at a time, and the driver goes on writing meanwhile. Whoever looks for an escape
compares with this, so that a record of another lane is none, and the same file in other words is one.
"""

from __future__ import annotations

import hashlib
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.engine.journal import JOURNAL
from pipeline.runs.seal import Seal

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
