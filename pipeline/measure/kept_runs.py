"""Stores test runs in the run's own folder, out of reach of every box, until the run is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from pipeline.evidence.freeze import canonical
from pipeline.evidence.observation import Observation, Reach, RunState
from pipeline.runs.files import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

_REACH: Final = TypeAdapter(dict[str, Reach])


def whole_run(root: Path, tree: str) -> Observation | None:
    """Return the stored run of all tests of a tree; None if there is none that completed."""
    place = _observation(root, tree)
    return Observation.model_validate_json(place.read_bytes()) if place.exists() else None


def keep_whole_run(root: Path, tree: str, observation: Observation) -> None:
    """Store a run of all tests of a tree, if it completed.

    Raises:
        UserError: the disk does not take it.
    """
    if observation.state is RunState.COMPLETE:
        write_atomic(_observation(root, tree), canonical(observation))


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


def _observation(root: Path, tree: str) -> Path:
    return root / "observations" / f"{tree}.json"
