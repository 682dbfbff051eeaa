"""Caches, in a file of the user's state, what was read of runs that have not changed since (ADR-R146).

What is kept follows from files of the run: as long as lstat says the same of them, it is the same, and nothing that
reads journals has to be loaded. Who changes a file cannot set its change time back (`runs/seal.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline import VERSION
from pipeline.config.folders import state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

T = TypeVar("T")

Facts = list[int] | list[str]
"""What something was made from; the same facts, the same thing."""


class RunCache:
    """Something of each run, by its folder. The file may be lost, or not be written, at any time."""

    def __init__(self, what: str, common_dir: Path, shape: Iterable[str], most: int | None = None) -> None:
        """Read what is kept.

        Args:
            what: Its kind, which is the name of a folder.
            common_dir: Of the repository.
            shape: The names of its fields; what has others is of another program.
            most: Of so many runs it is kept, the last ones.
        """
        name = hashlib.sha256(os.fsencode(common_dir)).hexdigest()[:16]
        self._file = state_folder(os.environ) / what / f"{name}.json"
        self._shape = [VERSION, *shape]
        self._most = most
        self._kept = self._read()
        self._changed = False

    def _read(self) -> dict[str, Any]:
        try:
            said = json.loads(self._file.read_bytes())
            if said["shape"] == self._shape:
                return dict(said["kept"])
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            pass
        return {}

    def get(self, folder: Path, facts: Facts | None, read: Callable[[dict[str, Any]], T]) -> T | None:
        """Return what is kept of the run in *folder*, as *read* makes it, if its facts are the same."""
        try:
            found = self._kept[str(folder)]
            return read(found["is"]) if facts is not None and found["facts"] == facts else None
        except (KeyError, TypeError, ValueError):  # nothing is kept, or somebody has spoilt it
            return None

    def put(self, folder: Path, facts: Facts, value: dict[str, Any]) -> None:
        """Keep something of a run; *facts* were taken before."""
        self._kept.pop(str(folder), None)
        self._kept[str(folder)] = {"facts": facts, "is": value}
        self._changed = True

    def save(self) -> None:
        """Write what is new, without the runs whose folder is gone; a disk that does not take it costs nothing."""
        if not self._changed:
            return
        there = [(folder, kept) for folder, kept in self._kept.items() if os.path.lexists(folder)]
        text = json.dumps({"shape": self._shape, "kept": dict(there[-self._most :] if self._most else there)})
        aside = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            aside.write_text(text, encoding="utf-8")
            aside.replace(self._file)
