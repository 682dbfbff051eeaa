"""Translates paths, ids and observations between a project's folder and the whole repository.

An id that begins with a path gets the folder in front, `web/a.test.js::x`; one that names packages is told apart from
those of another folder, `web::crate::lib::x`. Both are undone by taking the same text away again.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.evidence.observation import (
    CollectionError,
    Fault,
    Frame,
    Observation,
    Reach,
    TestRecord,
)
from pipeline.languages.projects import layouts
from pipeline.languages.protocol import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Place:
    """A folder of the repository, and the prefix of its test ids.

    `marks` is what an id has in front outside: the folder with a slash, or with two colons. Without a folder all is the
    same on both sides.
    """

    folder: str
    marks: str

    def outer_path(self, path: str) -> str:
        """Return a path inside the folder as one of the repository; an empty path stays empty."""
        if not path or not self.folder:
            return path
        whole = f"{self.folder}/{path}"
        return posixpath.normpath(whole) if path.startswith("../") else whole

    def inner_path(self, path: str) -> str | None:
        """Return a path of the repository relative to the folder, None if it lies elsewhere."""
        return path.removeprefix(f"{self.folder}/") if self.has(path) else None

    def has(self, path: str) -> bool:
        """Return whether a path of the repository lies below the folder."""
        return not self.folder or path.startswith(f"{self.folder}/")

    def outer_id(self, entry: str) -> str:
        """Return the repository's id of a test."""
        return f"{self.marks}{entry}"

    def inner_id(self, entry: str) -> str | None:
        """Return the runner's id of a test, None for a test of another folder."""
        return entry.removeprefix(self.marks) if entry.startswith(self.marks) else None

    def selected(self, selection: Selection | None) -> Selection | None:
        """Return the selection in the runner's ids and paths; tests elsewhere are left out."""
        if selection is None:
            return None
        return Selection(
            ids=None if selection.ids is None else _those(map(self.inner_id, selection.ids)),
            files=None if selection.files is None else _those(map(self.inner_path, selection.files)),
        )

    def observed(self, seen: Observation) -> Observation:
        """Return the observation in paths and ids of the repository."""
        records = {self.outer_id(entry): self._record(record) for entry, record in seen.records.items()}
        errors = (
            CollectionError(path=self.outer_path(error.path), fault=self._fault(error.fault))
            for error in seen.collection_errors
        )
        return seen.model_copy(
            update={
                "records": records,
                "collection_errors": tuple(errors),
                "files": {self.outer_path(path): digest for path, digest in seen.files.items()},
                "layout": layouts.below(seen.layout, self.folder),
                "modules": {name: self.outer_path(path) for name, path in seen.modules.items()},
                "command": ("(cd", self.folder, "&&", *seen.command[:-1], f"{seen.command[-1]})")
                if seen.command
                else (),
            }
        )

    def _record(self, record: TestRecord) -> TestRecord:
        update: dict[str, object] = {
            "id": self.outer_id(record.id),
            "function": self.outer_id(record.function),
            "path": self.outer_path(record.path),
        }
        if record.fault is not None:
            update["fault"] = self._fault(record.fault)
        if record.reach is not None:
            update["reach"] = self._reach(record.reach)
        return record.model_copy(update=update)

    def _fault(self, fault: Fault) -> Fault:
        return fault.model_copy(update={"frames": tuple(map(self._frame, fault.frames))})

    def _frame(self, frame: Frame) -> Frame:
        return frame.model_copy(update={"path": self.outer_path(frame.path)})

    def _reach(self, reach: Reach) -> Reach:
        return Reach(
            functions=tuple(map(self.outer_path, reach.functions)),
            references=tuple(map(self.outer_path, reach.references)),
            named=tuple(map(self.outer_path, reach.named)),
            doors=tuple(door if door == "process" else self.outer_path(door) for door in reach.doors),
        )


def _those(entries: Iterable[str | None]) -> frozenset[str]:
    return frozenset(entry for entry in entries if entry is not None)
