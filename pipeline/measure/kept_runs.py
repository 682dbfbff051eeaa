"""Stores measurements of a run in its own folder, out of every box; they are gone with the run."""

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
    """Return what a run of all tests of a tree has shown; None where there was none that went through."""
    place = _observation(root, tree)
    return Observation.model_validate_json(place.read_bytes()) if place.exists() else None


def keep_whole_run(root: Path, tree: str, observation: Observation) -> None:
    """Keep a run of all tests of a tree, if it went through.

    Raises:
        UserError: the disk does not take it.
    """
    if observation.state is RunState.COMPLETE:
        write_atomic(_observation(root, tree), canonical(observation))


def reach(root: Path) -> dict[str, Reach]:
    """Return what each test entered when it was traced last, by id; it orders tests, and is no evidence."""
    place = root / "reach.json"
    return _REACH.validate_json(place.read_bytes()) if place.exists() else {}


def keep_reach(root: Path, traced: Observation) -> None:
    """Keep what traced tests entered, over what was known of them.

    Raises:
        UserError: the disk does not take it.
    """
    found = {entry: record.reach for entry, record in traced.records.items() if record.reach is not None}
    if found:
        write_atomic(root / "reach.json", _REACH.dump_json(reach(root) | found))


def _observation(root: Path, tree: str) -> Path:
    return root / "observations" / f"{tree}.json"
