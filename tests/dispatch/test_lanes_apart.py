"""What a role keeps, and which answers of a script are used, belongs to a lane: who is faster decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipeline.agents.dispatch.caches import Cache, remove_caches
from pipeline.agents.dispatch.dispatcher import used_entries
from pipeline.matrix.engine.protocols import TRUNK
from pipeline.run.info import DispatchRecord, DispatchResult
from pipeline.vocabulary import Role

if TYPE_CHECKING:
    from pathlib import Path


def record(number: int, lane: str, role: Role = Role.MAKE, **facts: Any) -> DispatchRecord:
    said = {
        "dispatch": f"{number:03}-implement-{role}",
        "number": number,
        "step": "implement",
        "visit": number,
        "resumes": 0,
        "role": role,
        "kind": "implement",
        "question": None,
        "task": None,
        "attempt": 1,
        "reask": None,
        "base_tree": "0" * 40,
        "backend": "scripted",
        "lane": lane,
    }
    return DispatchRecord.model_validate({**said, **facts})


def finished(one: DispatchRecord, entry: int) -> DispatchResult:
    return DispatchResult(dispatch=one.dispatch, base_tree="0" * 40, entry=entry)


RECORDS = [record(1, TRUNK), record(2, "a"), record(3, "b"), record(4, "a", Role.CHECK)]
RESULTS = {one.dispatch: finished(one, number * 10) for number, one in enumerate(RECORDS, 1)}


@pytest.mark.parametrize(
    ("asks", "used"),
    [
        (record(9, TRUNK), {10, 20, 30, 40}),
        (record(9, "a"), {10, 20, 40}),
        (record(9, "b"), {10, 30}),
        (record(9, "c"), {10}),
    ],
)
def test_a_lane_sees_the_entries_of_the_trunk_and_its_own(asks: DispatchRecord, used: set[int]) -> None:
    assert used_entries(asks, RECORDS, RESULTS, lambda _: "script.yaml") == used


def test_another_script_has_entries_of_its_own() -> None:
    assert used_entries(record(9, TRUNK), RECORDS, RESULTS, lambda role: role.value) == {10, 20, 30}
    assert used_entries(record(9, TRUNK, Role.CHECK), RECORDS, RESULTS, lambda role: role.value) == {40}


def test_caches_of_a_role_are_apart_by_lane_and_go_with_it(tmp_path: Path) -> None:
    folders = {lane: Cache.of(tmp_path, "make", lane).folder for lane in (TRUNK, "make", "1")}
    assert len(set(folders.values())) == len(folders)
    for folder in folders.values():
        (folder / "xdg").mkdir(parents=True)
    remove_caches(tmp_path, "make")
    assert [lane for lane, folder in folders.items() if folder.exists()] == [TRUNK, "1"]
    assert folders[TRUNK] == tmp_path / "make", "where it was before there were lanes"
