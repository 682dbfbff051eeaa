"""The values of a test's cases, from RED to GREEN: other ones where they are written down are another test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from evidence.observed import context, observed, record

from pipeline.judge.evidence.compare import expectations, judge_green
from pipeline.judge.evidence.observation import Case, Ended, Observation
from pipeline.judge.evidence.red import judge_red
from pipeline.judge.evidence.red_tests import RedTests

if TYPE_CHECKING:
    from pipeline.judge.evidence.compare import GreenFacts

TEST = "tests/test_a.py::test_new[first]"
BASE = observed({})


def run(outcome: Ended, case: Case | None) -> Observation:
    return observed({TEST: record(TEST, outcome).model_copy(update={"case": case})})


def red(case: Case | None, again: Case | None = None) -> RedTests:
    second = run(Ended.FAILED, again) if again is not None else None
    return judge_red(BASE, run(Ended.FAILED, case), second, context(), task="1", tree="abc").ledger


def green(ledger: RedTests, case: Case | None) -> GreenFacts:
    return judge_green(ledger, run(Ended.PASSED, case), expectations(BASE))


ONE, OTHER = Case(sha256="1", written=True), Case(sha256="2", written=True)
MADE, MADE_OTHERWISE = (one.model_copy(update={"written": False}) for one in (ONE, OTHER))


def test_the_same_values_are_the_same_test() -> None:
    for case in (None, ONE, MADE):
        assert green(red(case), case) == judge_green(red(None), run(Ended.PASSED, None), expectations(BASE))


@pytest.mark.parametrize("now", [OTHER, MADE_OTHERWISE, None])
def test_other_values_of_written_cases_are_another_test(now: Case | None) -> None:
    found = green(red(ONE), now)
    assert found.changed_regions == (TEST,)
    assert not found.own_green


@pytest.mark.parametrize("now", [OTHER, MADE_OTHERWISE, None])
def test_other_values_that_production_may_have_made_are_told(now: Case | None) -> None:
    found = green(red(MADE), now)
    assert found.other_cases == (TEST,)
    assert found.green, "what is computed may be computed otherwise now: that is what tasks are for"


def test_values_that_differ_from_run_to_run_are_not_kept() -> None:
    assert red(MADE, again=MADE_OTHERWISE).frozen.cases == {}
    assert red(MADE, again=MADE).frozen.cases == {TEST: MADE}
    assert red(MADE).frozen.cases == {TEST: MADE}


def test_a_ledger_without_values_has_the_digest_that_it_always_had_and_one_with_them_has_another() -> None:
    bare = red(None)
    assert RedTests.model_validate_json(bare.model_dump_json()).digest() == bare.digest()
    assert "cases" not in bare.model_dump(mode="json", exclude_defaults=True)["frozen"]
    assert len({bare.digest(), red(ONE).digest(), red(OTHER).digest(), red(MADE).digest()}) == 4


TABLE = Case(sha256="1", written=True, around="body")
ADDED = "tests/test_a.py::test_new[added]"


def changed(now: Case | None, before: Case | None = TABLE) -> tuple[str, ...]:
    """Return the old tests that count as changed when the lines of one are others, and a case is added to it."""
    first = observed({TEST: record(TEST, Ended.PASSED, region="old").model_copy(update={"case": before})})
    kept = record(TEST, Ended.PASSED, region="new").model_copy(update={"case": now})
    after = observed({TEST: kept, ADDED: record(ADDED, Ended.FAILED, region="new")})
    return judge_red(first, after, None, context(), task="1", tree="abc").changed_old


def test_a_case_that_is_added_changes_no_old_one() -> None:
    assert changed(TABLE) == ()


@pytest.mark.parametrize(
    "now",
    [
        None,
        TABLE.model_copy(update={"sha256": "2"}),
        TABLE.model_copy(update={"around": "another body"}),
        TABLE.model_copy(update={"around": ""}),
    ],
)
def test_an_old_case_with_other_values_or_another_body_is_changed(now: Case | None) -> None:
    assert changed(now) == (TEST,)


def test_what_nothing_is_known_of_is_changed() -> None:
    assert changed(ONE, ONE) == (TEST,)
