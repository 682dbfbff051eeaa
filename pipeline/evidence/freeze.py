"""What @make must find again: the judged tests, byte for byte, and the same set of ids (matrix 5, GREEN)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping

from pydantic import BaseModel

from pipeline.evidence.observation import Observation, Value


class Frozen(Value):
    """The fixed part of a RED tree: per id the region's sha256, per test file the file's, and every collected id.

    `uncollected` are the files that could not be collected then; their ids are unknown.
    """

    regions: Mapping[str, str]
    files: Mapping[str, str]
    ids: frozenset[str] = frozenset()
    uncollected: frozenset[str] = frozenset()


class Thaw(Value):
    """What is no longer as it was frozen; all empty when nothing moved."""

    changed_regions: tuple[str, ...] = ()
    changed_files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether the frozen tests are as they were; further ids may come from parameters in production code."""
        return not (self.changed_regions or self.changed_files or self.missing)


def freeze(observation: Observation, ids: Collection[str]) -> Frozen:
    """Return the frozen form of the judged ids, their files, and the id set of the whole collection."""
    records = [observation.records[entry] for entry in ids if entry in observation.records]
    files = {record.path for record in records} | {entry for entry in ids if entry in observation.files}
    return Frozen(
        regions={record.id: record.region_sha256 for record in records},
        files={path: observation.files[path] for path in sorted(files) if path in observation.files},
        ids=frozenset(observation.records),
        uncollected=frozenset(error.path for error in observation.collection_errors),
    )


def thaw(frozen: Frozen, observation: Observation) -> Thaw:
    """Return what differs now. Ids of files that could not be collected at RED are not additions."""
    now = observation.records
    return Thaw(
        changed_regions=tuple(
            sorted(
                entry for entry, digest in frozen.regions.items() if entry in now and now[entry].region_sha256 != digest
            )
        ),
        changed_files=tuple(
            sorted(path for path, digest in frozen.files.items() if observation.files.get(path) != digest)
        ),
        missing=tuple(sorted(frozen.ids - set(now))),
        added=tuple(sorted(entry for entry in set(now) - frozen.ids if now[entry].path not in frozen.uncollected)),
    )


def canonical(evidence: BaseModel | Mapping[str, object]) -> str:
    """Return the evidence as JSON with sorted keys and sets in order: the same facts give the same bytes."""
    value = evidence.model_dump(mode="python") if isinstance(evidence, BaseModel) else evidence
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(evidence: BaseModel | Mapping[str, object]) -> str:
    """Return the sha256 of the canonical JSON, in hex."""
    return hashlib.sha256(canonical(evidence).encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        pairs: list[tuple[object, object]] = list(value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  isinstance cannot narrow type arguments
        return {str(key): _plain(entry) for key, entry in pairs}
    if isinstance(value, frozenset | set):
        members: list[object] = list(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  the same
        return sorted(map(str, members))
    if isinstance(value, list | tuple):
        entries: list[object] = list(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  the same
        return [_plain(entry) for entry in entries]
    return value
