"""Stores test runs in the run's own folder, out of reach of every box, until the run is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from pipeline.judge.evidence.compare import FINE
from pipeline.judge.evidence.freeze import canonical
from pipeline.judge.evidence.observation import Observation, Reach, RunState, TestRecord
from pipeline.run.files import write_atomic

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

_FAILED: Final = ".failed"
_VARYING: Final = ".varying"
_REACH: Final = TypeAdapter(dict[str, Reach])
_IDS: Final = TypeAdapter(list[str])
_RECORDS: Final = TypeAdapter(dict[str, TestRecord])


def whole_run(root: Path, tree: str) -> Observation | None:
    """Return the stored run of all tests of a tree; None if there is none that completed."""
    place = _place(root, tree)
    return Observation.model_validate_json(place.read_bytes()) if place.exists() else None


def keep(root: Path, tree: str, observation: Observation, *, whole: bool) -> None:
    """Store what failed in a run of tests of a tree, and a run of all of them that completed.

    Raises:
        UserError: the disk does not take it.
    """
    keep_failures(root, tree, observation.records)
    if whole and observation.state is RunState.COMPLETE:
        write_atomic(_place(root, tree), canonical(observation))


def seen_failing(root: Path, tree: str) -> dict[str, TestRecord]:
    """Return the tests that failed in any measurement of a tree, by id, each as it failed first."""
    place = _place(root, tree, _FAILED)
    return _RECORDS.validate_json(place.read_bytes()) if place.exists() else {}


def keep_failures(root: Path, tree: str, records: Mapping[str, TestRecord]) -> None:
    """Store which tests failed over a tree: no later measurement of the same bytes clears that.

    Raises:
        UserError: the disk does not take it.
    """
    failed = {entry: one for entry, one in records.items() if one.ran and one.outcome not in FINE}
    known = seen_failing(root, tree) if failed else {}
    if failed.keys() - known.keys():
        write_atomic(_place(root, tree, _FAILED), _RECORDS.dump_json(failed | known))


def seen_varying(root: Path, tree: str) -> frozenset[str]:
    """Return the new tests on which two runs of a tree disagreed, in any measurement of it."""
    place = _place(root, tree, _VARYING)
    return frozenset(_IDS.validate_json(place.read_bytes())) if place.exists() else frozenset()


def keep_varying(root: Path, tree: str, ids: Collection[str]) -> None:
    """Store on which new tests two runs of a tree disagree.

    Raises:
        UserError: the disk does not take it.
    """
    known = seen_varying(root, tree)
    if not known.issuperset(ids):
        write_atomic(_place(root, tree, _VARYING), _IDS.dump_json(sorted(known.union(ids))))


def forget(root: Path, tree: str) -> None:
    """Forget what was measured of a tree, for it was measured in an environment that was at fault."""
    for what in (_FAILED, _VARYING, ""):
        _place(root, tree, what).unlink(missing_ok=True)


def reach(root: Path) -> dict[str, Reach]:
    """Return the last traced reach of each test by id; it orders tests, and is no evidence."""
    place = root / "reach.json"
    return _REACH.validate_json(place.read_bytes()) if place.exists() else {}


def keep_reach(root: Path, traced: Observation) -> None:
    """Store the reach of traced tests, replacing older reach of the same tests.

    Raises:
        UserError: the disk does not take it.
    """
    found = {entry: record.reach for entry, record in traced.records.items() if record.reach is not None}
    if found:
        write_atomic(root / "reach.json", _REACH.dump_json(reach(root) | found))


def _place(root: Path, tree: str, what: str = "") -> Path:
    """Return the file with the whole run of a tree, or with *what* else is kept of it."""
    return root / "observations" / f"{tree}{what}.json"
