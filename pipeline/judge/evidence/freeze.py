"""Freezes the judged tests that @make must not change: their bytes, and the set of test ids (matrix 5, GREEN)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping  # noqa: TC003  (pydantic reads it at run time)

from pydantic import BaseModel, Field

from pipeline.judge.evidence.observation import Case, Observation, TestRecord, Value


class Frozen(Value):
    """The frozen state of a RED tree: sha256 of each judged test's region and of each test file, and all test ids.

    `uncollected` are the files that could not be collected then; their ids are unknown. `cases` are the values of
    parametrised tests, of those ids that have plain ones: an id may be a name that says nothing of them.
    """

    regions: Mapping[str, str]
    files: Mapping[str, str]
    ids: frozenset[str] = frozenset()
    uncollected: frozenset[str] = frozenset()
    cases: Mapping[str, Case] = Field(default_factory=dict[str, Case])


class Thaw(Value):
    """The differences from a frozen state; all empty when nothing changed.

    `changed_cases` have other values although these stand in the test's own file. `other_cases` have other values too,
    but such as production code may have a part in: that it changes is what a task is for, so nothing follows from it.
    """

    changed_regions: tuple[str, ...] = ()
    changed_cases: tuple[str, ...] = ()
    other_cases: tuple[str, ...] = ()
    changed_files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether the frozen tests are unchanged; added ids may come from parameters in production code."""
        return not (self.changed_regions or self.changed_cases or self.changed_files or self.missing)


def freeze(observation: Observation, ids: Collection[str], again: Observation | None = None) -> Frozen:
    """Return the frozen state of the judged ids, their files, and all collected ids.

    Args:
        observation: The run.
        ids: What is judged.
        again: The same run repeated: values of a case that it saw otherwise (a random number) are not kept.
    """
    records = [observation.records[entry] for entry in ids if entry in observation.records]
    files = {record.path for record in records} | {entry for entry in ids if entry in observation.files}
    return Frozen(
        regions={record.id: record.region_sha256 for record in records},
        files={path: observation.files[path] for path in sorted(files) if path in observation.files},
        ids=frozenset(observation.records),
        uncollected=observation.unread,
        cases={record.id: record.case for record in records if record.case is not None and _is_steady(record, again)},
    )


def thaw(frozen: Frozen, observation: Observation) -> Thaw:
    """Return the differences of a run from the frozen state. Ids in files uncollectable at RED are no additions."""
    now = observation.records
    others = sorted(entry for entry, case in frozen.cases.items() if entry in now and not _is_same(case, now[entry]))
    return Thaw(
        changed_cases=tuple(entry for entry in others if frozen.cases[entry].written),
        other_cases=tuple(entry for entry in others if not frozen.cases[entry].written),
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


def _is_steady(record: TestRecord, again: Observation | None) -> bool:
    second = again.records.get(record.id) if again is not None else None
    return second is None or second.case == record.case


def _is_same(case: Case, record: TestRecord) -> bool:
    """Return whether a test case has the frozen values; values that can no longer be read count as changed."""
    return record.case is not None and record.case.sha256 == case.sha256


def canonical(evidence: BaseModel | Mapping[str, object]) -> str:
    """Return the evidence as canonical JSON, with sorted keys and sets: the same facts give the same bytes."""
    value = evidence.model_dump(mode="python") if isinstance(evidence, BaseModel) else evidence
    return json.dumps(value, default=_plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(evidence: BaseModel | Mapping[str, object]) -> str:
    """Return the sha256 of the evidence's canonical JSON, in hex."""
    return hashlib.sha256(canonical(evidence).encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Mapping[str, object] | frozenset[object] | set[object]) -> object:
    return sorted(map(str, value)) if isinstance(value, frozenset | set) else dict(value)
