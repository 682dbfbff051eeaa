"""Which tests do not count, until when, and that none of a task itself is among them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from evidence.observed import record
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.judge.evidence.observation import Ended
from pipeline.judge.evidence.quarantine import Quarantined, standing
from pipeline.judge.evidence.red_tests import RedTests

DAY = date(2026, 3, 1)
OLD, CASE, OWN = "tests/test_a.py::test_old", "tests/test_a.py::test_many[2]", "tests/test_b.py::test_own"
RECORDS = {entry: record(entry, Ended.FAILED) for entry in (OLD, CASE, "tests/test_a.py::test_many[1]", OWN)}
LEDGER = RedTests(task="1", tree="t", guards={OWN: "r"})


def entry(test: str, expires: date = DAY) -> Quarantined:
    return Quarantined(id=test, owner="Ada", expires=expires, why="needs the network")


def test_by_id_or_by_function_until_the_end_of_the_day() -> None:
    entries = (entry(OLD), entry("tests/test_a.py::test_many", DAY + timedelta(1)))
    found = standing(entries, tuple(RECORDS.values()), DAY)
    assert set(found.excused) == set(RECORDS) - {OWN}
    assert set(found.without(RECORDS)) == {OWN}
    later = standing(entries, tuple(RECORDS.values()), DAY + timedelta(1))
    assert set(later.excused) == {CASE, "tests/test_a.py::test_many[1]"}
    assert later.expired == (entries[0],)
    assert set(later.without(RECORDS)) == {OLD, OWN}


def test_a_test_of_the_task_itself_counts_whatever_is_said() -> None:
    found = standing((entry(OWN), entry(OLD)), tuple(RECORDS.values()), DAY, (LEDGER,))
    assert set(found.excused) == {OLD}
    assert found.own == (entry(OWN),)


def test_everything_is_told() -> None:
    entries = (entry(OLD), entry("tests/test_a.py::test_many"), entry(OWN), entry("gone"), entry("x", date(2020, 1, 1)))
    found = standing(entries, tuple(RECORDS.values()), DAY, (LEDGER,))
    assert found.lines() == (
        f"quarantined, does not count: {OLD}: needs the network (owner Ada, until 2026-03-01)",
        "quarantined, does not count: tests/test_a.py::test_many: needs the network (owner Ada, until 2026-03-01)",
        "quarantine expired, counts again: x: needs the network (owner Ada, until 2020-01-01)",
        f"quarantined, and counts all the same, as a test of a task itself: {entry(OWN)}",
        "quarantined, and there is no such test: gone: needs the network (owner Ada, until 2026-03-01)",
    )


@given(
    st.lists(
        st.tuples(st.sampled_from([*RECORDS, "gone", "tests/test_a.py::test_many"]), st.integers(-2, 2)), max_size=6
    ),
    st.booleans(),
)
def test_every_entry_is_one_of_four(wanted: list[tuple[str, int]], with_ledger: bool) -> None:
    entries = tuple(entry(test, DAY + timedelta(days)) for test, days in wanted)
    found = standing(entries, tuple(RECORDS.values()), DAY, (LEDGER,) if with_ledger else ())
    told = [*found.in_force, *found.expired, *found.own, *found.unknown]
    assert sorted(map(str, told)) == sorted(map(str, entries))
    assert len(found.lines()) == len(entries)
    assert {*map(str, found.excused.values())} <= {*map(str, found.in_force)}
    assert not (with_ledger and OWN in found.excused)


@pytest.mark.parametrize("missing", ["id", "owner", "expires", "why"])
def test_an_entry_says_everything(missing: str) -> None:
    said = {"id": OLD, "owner": "Ada", "expires": "2026-03-01", "why": "slow"}
    assert Quarantined.model_validate(said)
    del said[missing]
    with pytest.raises(ValidationError):
        Quarantined.model_validate(said)
    with pytest.raises(ValidationError):
        Quarantined.model_validate({**said, missing: "  "})
