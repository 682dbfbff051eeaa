"""Reads the records of a JavaScript test run's processes as they come.

This file travels with `node.runner` and lies beside it in the box: the standard library only.
"""

from __future__ import annotations

import json
import os
import select
import time
from pathlib import Path
from typing import Any

_LINE = 4_000_000
_SETTLED = ("end", "crashed", "limit")
_HINTS = ("start", "left", "loading", "loaded")


class Progress:
    """The progress of one job, over all its processes."""

    def __init__(self, ids: list[str] | None, files: list[str] | None) -> None:
        self._ids = None if ids is None else set(ids)
        self._files = None if files is None else set(files)
        self.items: set[str] = set()
        self.settled: set[str] = set()
        self.bad_files: set[str] = set()
        self.open: dict[str, float] = {}
        self.pids: dict[str, int] = {}
        self.left: set[str] = set()
        self.loading: set[str] = set()
        self.done = False
        self.forged = ""

    def begin(self) -> None:
        """Reset what belongs to one process."""
        self.open, self.pids, self.left, self.loading, self.done = {}, {}, set(), set(), False

    def take(self, record: dict[str, Any]) -> None:
        """Count one record or hint."""
        kind = record["kind"]
        name = str(record.get("id") or record.get("path") or "")
        if kind == "item":
            self.items.add(name)
        elif kind == "start":
            self.open[name] = time.monotonic()
            self.pids[name] = record["pid"] if isinstance(record.get("pid"), int) else 0
        elif kind in ("left", *_SETTLED):
            self.open.pop(name, None)
            self.left.add(name)
            if kind != "left":
                self.settled.add(name)
        elif kind == "loading":
            self.loading.add(name)
        elif kind in ("loaded", "uncollected", "file"):
            self.loading.discard(name)
            if kind == "uncollected":
                self.bad_files.add(name)
        elif kind == "done":
            self.done = True

    @property
    def remaining(self) -> bool:
        """Return whether a requested test has not ended."""
        return any(self._is_asked(name) for name in self.items - self.settled)

    def _is_asked(self, name: str) -> bool:
        by_id = self._ids is None or name in self._ids
        return by_id and (self._files is None or name.partition("::")[0] in self._files)

    @property
    def known(self) -> tuple[int, int]:
        """Return the number of settled tests and files; a process that adds none will not do better the next time."""
        return len(self.settled), len(self.bad_files)

    def gone(self) -> list[str]:
        """Return the tests that were running in a process that has ended."""
        return sorted(name for name in self.open if self.pids[name] > 0 and not is_alive(self.pids[name]))

    def suspects(self) -> list[str]:
        """Return the tests that may have ended the process: the running ones, else those whose body had just ended."""
        return sorted(self.open) or ([] if self.done else sorted(self.left - self.settled))


class Channel:
    """The records of one process, and the hints that its child processes leave in a file.

    Hints say which test is running where the runner itself learns that too late; they carry no result, and are believed
    only about what then has none.
    """

    def __init__(self, descriptor: int, nonce: str, hints: int | None) -> None:
        self._descriptor = descriptor
        self._nonce = nonce
        self._hints = hints
        self._buffer = b""
        self._hint_buffer = b""
        self._number = 0
        self._is_open = True

    def read(self, wait_s: float) -> tuple[list[dict[str, Any]], str]:
        """Return the new records and hints, and why a line is not ours (empty if all are)."""
        found = self._read_hints()
        if not self._is_open:
            time.sleep(wait_s)
            return found, ""
        ready = select.select([self._descriptor], [], [], wait_s)[0]
        if not ready:
            return found, ""
        part = os.read(self._descriptor, 1 << 20)
        self._is_open = bool(part)
        *lines, self._buffer = (self._buffer + part).split(b"\n")
        if len(self._buffer) > _LINE:
            return found, "a record is too long"
        for line in lines:
            record = self._record(line)
            if record is None:
                return found, f"line {self._number + 1} of the records was not written by the harness"
            found.append(record)
        return found, ""

    def _record(self, line: bytes) -> dict[str, Any] | None:
        nonce, _, rest = line.decode("utf-8", "replace").partition(" ")
        number, _, text = rest.partition(" ")
        if nonce != self._nonce or number != str(self._number):
            return None
        self._number += 1
        return json_of(text)

    def _read_hints(self) -> list[dict[str, Any]]:
        if self._hints is None:
            return []
        *lines, rest = (self._hint_buffer + os.read(self._hints, 1 << 20)).split(b"\n")
        self._hint_buffer = rest[-_LINE:]
        found = [json_of(line.decode("utf-8", "replace")) for line in lines]
        return [one for one in found if one and one["kind"] in _HINTS and isinstance(one.get("id"), str)]


def is_alive(pid: int) -> bool:
    """Return whether a process exists and has not ended; a zombie has."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def json_of(line: str) -> dict[str, Any] | None:
    """Return the JSON object with a `kind` on a line, None if there is none."""
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("kind"), str) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
