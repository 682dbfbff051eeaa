"""A run of some tests proves only what the run of all would prove, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from evidence.observed import MISMATCH, NO_IMPORT, context, observations, observed, record
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.evidence.compare import SHARE, WORTH_S, expectations, first_stage, is_long, judge_green
from pipeline.judge.evidence.observation import CollectionError, Ended, Observation
from pipeline.judge.evidence.red import judge_red

if TYPE_CHECKING:
    from pipeline.judge.evidence.red_tests import RedTests

BASE = observed({"tests/test_b.py::test_x": Ended.PASSED, "tests/test_c.py::test_x": Ended.PASSED})
RED = {"tests/test_a.py::test_y[1]": Ended.FAILED, "tests/test_a.py::test_y[2]": Ended.PASSED}
NO_FILE = CollectionError(path="tests/test_c.py", fault=NO_IMPORT)


def ledger_of(after: Observation, base: Observation = BASE) -> RedTests:
    found = judge_red(base, after, None, context("tests/test_b.py"), task="1", tree="abc")
    assert found.legal, found
    return found.ledger


BY_ID = ledger_of(observed({**dict.fromkeys(BASE.records, Ended.PASSED), **RED}))
BY_FILE = ledger_of(
    observed({"tests/test_b.py::test_x": Ended.PASSED}, errors=(NO_FILE,)),
    observed({"tests/test_b.py::test_x": Ended.PASSED}),
)


def part_of(whole: Observation, files: frozenset[str]) -> Observation:
    """Return what a run of the tests of some files would have shown."""
    nothing = {"outcome": None, "fault": None}
    records = {
        entry: found if found.path in files else found.model_copy(update=nothing)
        for entry, found in whole.records.items()
    }
    return whole.model_copy(update={"records": records})


FILES = st.frozensets(st.sampled_from([f"tests/test_{name}.py" for name in "abc"]))


@given(observations, observations, FILES, st.sampled_from([None, BY_ID, BY_FILE]))
def test_what_a_part_proves_the_whole_proves(
    base: Observation, whole: Observation, files: frozenset[str], ledger: RedTests | None
) -> None:
    kept = expectations(base)
    judged, proven = judge_green(ledger, whole, kept), judge_green(ledger, part_of(whole, files), kept, is_part=True)
    for field in ("not_green", "regressions", "stale_xfail", "whole_file_ids"):
        assert set(getattr(proven, field)) <= set(getattr(judged, field)), field
    for field in ("missing", "changed_regions", "changed_files", "new_ids"):
        assert getattr(proven, field) == getattr(judged, field), field
    assert proven.own_green or not judged.own_green


@given(observations, observations, st.sampled_from([None, BY_ID, BY_FILE]))
def test_a_part_that_is_everything_is_the_whole(base: Observation, whole: Observation, ledger: RedTests | None) -> None:
    kept = expectations(base)
    everything = frozenset(found.path for found in whole.records.values())
    assert judge_green(ledger, part_of(whole, everything), kept, is_part=True) == judge_green(ledger, whole, kept)


def test_a_part_condemns_what_ran_and_nothing_else() -> None:
    whole = observed(
        {
            "tests/test_a.py::test_y[1]": Ended.FAILED,
            "tests/test_a.py::test_y[2]": Ended.PASSED,
            "tests/test_b.py::test_x": record("tests/test_b.py::test_x", Ended.FAILED, fault=MISMATCH),
            "tests/test_b.py::test_new": Ended.FAILED,
        }
    )
    found = judge_green(BY_ID, part_of(whole, frozenset({"tests/test_a.py"})), expectations(BASE), is_part=True)
    assert found.not_green == ("tests/test_a.py::test_y[1]",)
    assert found.missing == ("tests/test_c.py::test_x",)
    assert found.regressions == ()


SECONDS = {"own.py": 1.0, "near.py": 2.0, "next.py": 9.0, "far.py": 28.0}


@pytest.mark.parametrize(
    ("own", "near", "seconds", "expected"),
    [
        (["own.py"], ["near.py", "next.py", "far.py"], SECONDS, {"own.py", "near.py", "next.py"}),
        (["own.py"], ["next.py", "near.py", "far.py"], SECONDS, {"own.py", "next.py", "near.py"}),
        (["own.py"], ["far.py", "near.py"], SECONDS, {"own.py", "near.py"}),
        (["new.py"], [], SECONDS, {"new.py"}),
        (["far.py"], ["near.py"], SECONDS, set[str]()),
        ([], ["near.py"], SECONDS, set[str]()),
        (["own.py"], ["near.py"], {"own.py": 0.1, "far.py": WORTH_S - 0.2}, set[str]()),
        (["own.py"], ["near.py"], {}, set[str]()),
    ],
)
def test_a_first_stage_is_the_own_files_and_the_nearest(
    own: list[str], near: list[str], seconds: dict[str, float], expected: set[str]
) -> None:
    found = first_stage(own, near, seconds)
    assert found == expected
    assert is_long(seconds) or not found
    assert sum(seconds.get(path, 0) for path in found) <= SHARE * sum(seconds.values())
