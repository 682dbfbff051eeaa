"""The GREEN verdict against the RED ledger and the baseline, on observations written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from evidence.observed import NO_IMPORT, context, endings, observations, observed, record
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.evidence.compare import (
    RepeatResult,
    confirm_regression,
    expectations,
    judge_green,
    judge_stubs,
    kept_under_new_names,
    still_passing,
)
from pipeline.judge.evidence.observation import PASSING, CollectionError, Ended, Observation, RunState, TestRecord
from pipeline.judge.evidence.red import judge_red
from pipeline.judge.evidence.renamed_tests import moved

if TYPE_CHECKING:
    from pipeline.judge.evidence.red_tests import RedTests

OLD, NEW = "tests/test_old.py::test_old", "tests/test_a.py::test_new"
BASE = observed({OLD: Ended.PASSED})


def red_ledger(after: Observation, before: Observation = BASE) -> RedTests:
    found = judge_red(before, after, None, context("tests/test_old.py"), task="1", tree="abc")
    assert found.legal, found
    return found.ledger


LEDGER = red_ledger(observed({OLD: Ended.PASSED, f"{NEW}[1]": Ended.FAILED, f"{NEW}[2]": Ended.PASSED}))


def green(
    after: Observation, ledger: RedTests | None = LEDGER, base: Observation = BASE, **may: frozenset[str]
) -> dict[str, object]:
    found = judge_green(ledger, after, expectations(base), tests_to_change=may.get("may", frozenset()))
    facts = found.model_dump(exclude_defaults=True)
    assert found.green == (not set(facts) - {"new_ids", "whole_file_ids"})
    return facts


def test_red_and_guard_ids_that_pass_are_green() -> None:
    assert green(observed({OLD: Ended.PASSED, f"{NEW}[1]": Ended.PASSED, f"{NEW}[2]": Ended.PASSED})) == {}


def test_a_red_id_that_still_fails_and_a_guard_that_fails_are_not_green() -> None:
    found = green(observed({OLD: Ended.PASSED, f"{NEW}[1]": Ended.SKIPPED, f"{NEW}[2]": Ended.FAILED}))
    assert found == {"not_green": (f"{NEW}[1]", f"{NEW}[2]")}


@pytest.mark.parametrize("state", [RunState.CRASHED, RunState.TIMED_OUT])
def test_a_run_that_did_not_come_to_its_end_shows_nothing_unless_a_test_explains_it(state: RunState) -> None:
    passing = {OLD: Ended.PASSED, f"{NEW}[1]": Ended.PASSED, f"{NEW}[2]": Ended.PASSED}
    cut = (f"the test run did not come to its end ({state}): ",)
    assert green(observed(passing, state=state)) == {"cut_short": cut}
    assert green(observed({OLD: Ended.PASSED}, state=state), None) == {"cut_short": cut}
    assert green(observed({**passing, OLD: Ended.CRASHED}, state=state)) == {"regressions": (OLD,)}


def test_what_failed_in_another_run_of_the_same_bytes_is_not_cleared_by_passing_now() -> None:
    now = observed({OLD: Ended.PASSED, f"{NEW}[1]": Ended.PASSED, f"{NEW}[2]": Ended.PASSED})
    failed = observed(
        {OLD: Ended.FAILED, f"{NEW}[2]": Ended.TIMED_OUT, "tests/test_old.py::gone": Ended.FAILED}
    ).records
    found = judge_green(LEDGER, now, expectations(BASE), seen_failing=failed)
    assert (found.regressions, found.unstable, found.green) == ((OLD,), (f"{NEW}[2]",), False)
    red_before = expectations(observed({OLD: Ended.FAILED}))
    assert judge_green(None, now, red_before, seen_failing=failed).green, "what failed before may fail"


def test_a_red_id_that_is_gone_is_missing() -> None:
    assert green(observed({OLD: Ended.PASSED, f"{NEW}[2]": Ended.PASSED})) == {"missing": (f"{NEW}[1]",)}


def test_a_test_whose_region_or_file_changed_after_red_is_not_green() -> None:
    after = observed(
        {OLD: Ended.PASSED, f"{NEW}[1]": record(f"{NEW}[1]", Ended.PASSED, region="other"), f"{NEW}[2]": Ended.PASSED}
    )
    assert green(after) == {"changed_regions": (f"{NEW}[1]",)}
    moved = after.model_copy(update={"files": {**after.files, "tests/test_a.py": "other bytes"}})
    assert green(moved)["changed_files"] == ("tests/test_a.py",)


def test_further_parameters_from_production_must_pass() -> None:
    passing = {OLD: Ended.PASSED, f"{NEW}[1]": Ended.PASSED, f"{NEW}[2]": Ended.PASSED}
    assert green(observed({**passing, f"{NEW}[3]": Ended.PASSED})) == {"new_ids": (f"{NEW}[3]",)}
    assert green(observed({**passing, f"{NEW}[3]": Ended.FAILED}))["not_green"] == (f"{NEW}[3]",)


@pytest.mark.parametrize(
    ("before", "allowed"),
    [
        (Ended.PASSED, {Ended.PASSED, Ended.XPASSED}),
        (Ended.XPASSED, {Ended.PASSED, Ended.XPASSED}),
        (Ended.SKIPPED, {Ended.SKIPPED, Ended.PASSED, Ended.XPASSED}),
        (Ended.XFAILED, {Ended.XFAILED, Ended.PASSED, Ended.XPASSED}),
        (Ended.FAILED, set(Ended)),
        (Ended.STRICT_XPASS, set(Ended)),
        (Ended.CRASHED, set(Ended)),
        (Ended.TIMED_OUT, set(Ended)),
    ],
)
def test_what_a_baseline_outcome_may_become(before: Ended, allowed: set[Ended]) -> None:
    kept = {after for after in Ended if green(observed({OLD: after}), None, observed({OLD: before})) == {}}
    assert kept == allowed


def test_a_strict_xfail_that_passes_now_is_stale_and_no_regression() -> None:
    found = green(observed({OLD: Ended.STRICT_XPASS}), None, observed({OLD: Ended.XFAILED}))
    assert found == {"stale_xfail": (OLD,)}


def test_a_baseline_test_that_is_gone_or_did_not_run_is_lost() -> None:
    assert green(observed({}), None) == {"missing": (OLD,)}
    assert green(observed({OLD: None}), None) == {"regressions": (OLD,)}


def test_a_test_that_the_task_may_change_passes_or_is_gone() -> None:
    may = frozenset({OLD})
    assert green(observed({OLD: Ended.FAILED}), None, may=may) == {"regressions": (OLD,)}
    assert green(observed({OLD: Ended.SKIPPED}), None, may=may) == {"regressions": (OLD,)}
    assert green(observed({OLD: Ended.PASSED}), None, may=may) == {}
    assert green(observed({}), None, may=may) == {}


def test_a_test_in_a_file_that_cannot_be_collected_is_not_gone() -> None:
    error = CollectionError(path="tests/test_old.py", fault=NO_IMPORT)
    hidden = {"uncollected": ("tests/test_old.py",), "missing": (OLD,)}
    assert green(observed({}, errors=(error,)), None, may=frozenset({OLD})) == hidden


def test_a_file_that_cannot_be_collected_is_never_green_unless_it_was_so_before() -> None:
    error = CollectionError(path="tests/test_else.py", fault=NO_IMPORT)
    after = observed({OLD: Ended.PASSED}, errors=(error,))
    assert green(after, None) == {"uncollected": ("tests/test_else.py",)}
    assert judge_green(None, after, expectations(BASE), unread_before={"tests/test_else.py"}).green


def test_red_evidence_is_never_gone_with_leave() -> None:
    after = observed({OLD: Ended.PASSED, f"{NEW}[2]": Ended.PASSED})
    listed = {**BASE.records, f"{NEW}[1]": record(f"{NEW}[1]", Ended.FAILED)}
    may = frozenset({f"{NEW}[1]"})
    assert judge_green(LEDGER, after, listed, tests_to_change=may).missing == (f"{NEW}[1]",)


def test_what_still_passes_is_counted_from_outcomes() -> None:
    expected = expectations(observed({OLD: Ended.PASSED, "t.py::b": Ended.FAILED, f"{NEW}[2]": Ended.PASSED}))
    assert still_passing(expected, observed({OLD: Ended.PASSED, "t.py::b": Ended.PASSED}), None) == 1
    assert still_passing(expected, observed({OLD: Ended.FAILED}), None) == 0
    assert still_passing(expected, observed({OLD: Ended.PASSED, f"{NEW}[2]": Ended.PASSED}), LEDGER) == 1


def test_a_task_is_also_held_to_what_earlier_tasks_made_green() -> None:
    baseline = observed({OLD: Ended.FAILED})
    kept = expectations(baseline, [observed({OLD: Ended.PASSED, NEW: Ended.PASSED})])
    assert judge_green(None, observed({OLD: Ended.FAILED, NEW: Ended.FAILED}), kept).regressions == (NEW, OLD)


def test_a_file_that_was_red_as_a_whole_is_green_when_it_has_tests_and_they_pass() -> None:
    error = CollectionError(path="tests/test_a.py", fault=NO_IMPORT)
    ledger = red_ledger(observed({OLD: Ended.PASSED}, errors=(error,)))
    after = observed({OLD: Ended.PASSED, NEW: Ended.PASSED})
    same = after.model_copy(update={"files": {**after.files, "tests/test_a.py": "broken"}})
    assert green(same, ledger) == {"whole_file_ids": (NEW,)}
    assert green(observed({OLD: Ended.PASSED}), ledger)["not_green"] == ("tests/test_a.py",)
    case, other = f"{NEW}[native]", f"{NEW}[plain]"
    skipped = observed({OLD: Ended.PASSED, case: Ended.SKIPPED, other: Ended.PASSED})
    same = skipped.model_copy(update={"files": {**skipped.files, "tests/test_a.py": "broken"}})
    assert green(same, ledger) == {"whole_file_ids": (other,)}, "RED leaves a skipped case beside others out, too"
    assert green(observed({OLD: Ended.PASSED, case: Ended.SKIPPED}), ledger)["not_green"] == (case,)


def test_tests_of_such_a_file_that_pass_on_stubs_are_named() -> None:
    stubbed = observed({NEW: Ended.PASSED, f"{NEW}2": Ended.FAILED})
    assert judge_stubs((NEW, f"{NEW}2", f"{NEW}3"), stubbed) == (NEW,)


@given(st.lists(endings, min_size=1, max_size=3), st.lists(endings, min_size=1, max_size=3))
def test_a_regression_fails_twice_and_held_twice(candidate: list[Ended], baseline: list[Ended]) -> None:
    found = confirm_regression(
        OLD, [observed({OLD: one}) for one in candidate], [observed({OLD: one}) for one in baseline]
    )
    if found is RepeatResult.REGRESSION:
        assert min(len(candidate), len(baseline)) >= 2
        assert not PASSING.intersection(candidate)
        assert {Ended.PASSED, Ended.XPASSED, Ended.SKIPPED, Ended.XFAILED}.issuperset(baseline)
    clear = (
        len(candidate) >= 2
        and len(baseline) >= 2
        and set(candidate) == {Ended.FAILED}
        and set(baseline) == {Ended.PASSED}
    )
    assert found is RepeatResult.REGRESSION or not clear


@given(observations)
def test_a_run_compared_with_itself_has_no_regression(run: Observation) -> None:
    found = judge_green(None, run, expectations(run))
    assert found.green


@given(observations, observations)
def test_green_means_that_every_expectation_is_kept(before: Observation, after: Observation) -> None:
    found = judge_green(None, after, expectations(before))
    fell = [
        test
        for test, one in before.records.items()
        if one.outcome in PASSING and (test not in after.records or after.records[test].outcome not in PASSING)
    ]
    assert set(fell) <= {*found.regressions, *found.missing}
    assert found.green or fell or any(one.outcome not in PASSING for one in before.records.values())


# --- what must be kept: the baseline, then what the accepted tasks made of it (matrix 5)


A, B, C = "tests/test_a.py::test_x", "tests/test_b.py::test_x", "tests/test_c.py::test_x"


def outcomes(*runs: dict[str, Ended]) -> dict[str, Ended | None]:
    baseline, *accepted = (observed(run) for run in runs)
    return {entry: record.outcome for entry, record in expectations(baseline, accepted).items()}


def test_a_test_that_an_accepted_task_removed_is_not_kept_any_longer() -> None:
    passed = Ended.PASSED
    assert outcomes({A: passed, B: passed}, {A: passed, C: passed}) == {A: passed, C: passed}


def test_a_failure_that_was_forgiven_as_flaky_does_not_lower_what_is_expected() -> None:
    assert outcomes({A: Ended.PASSED}, {A: Ended.FAILED}) == {A: Ended.PASSED}


def test_a_test_that_failed_and_was_mended_is_kept_from_then_on() -> None:
    assert outcomes({A: Ended.FAILED}, {A: Ended.PASSED}) == {A: Ended.PASSED}


# --- tests whose file got another name


def records(path: str, *entries: str, region: str = "a", outcome: Ended = Ended.PASSED) -> dict[str, TestRecord]:
    """Return tests of one file by id."""
    return {
        entry: TestRecord(id=entry, function=entry, path=path, region_sha256=region, outcome=outcome)
        for entry in entries
    }


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        (
            "tests/test_a.py",
            "tests/test_b.py",
            "tests/test_a.py::TestX::test_y[1]",
            "tests/test_b.py::TestX::test_y[1]",
        ),
        ("tests/slow.rs", "tests/late.rs", "greet::test/slow::inner::ends", "greet::test/late::inner::ends"),
        ("a_test.go", "b_test.go", "example.com/shop.TestA", "example.com/shop.TestA"),
        ("test/a.test.js", "spec/a.test.js", "test/a.test.js > sum > adds", "spec/a.test.js > sum > adds"),
    ],
)
def test_a_test_is_found_in_its_renamed_file(old: str, new: str, before: str, after: str) -> None:
    assert moved(records(old, before), records(new, after), {old: new}) == {before: after}


def test_what_is_elsewhere_or_still_there_has_not_moved() -> None:
    old, new = "tests/test_a.py", "tests/test_b.py"
    before = records(old, f"{old}::test_x")
    assert moved(before, records(new, f"{new}::test_x"), {}) == {}
    assert moved(before, records("tests/test_c.py", "tests/test_c.py::test_x"), {old: new}) == {}
    assert moved(before, {**before, **records(new, f"{new}::test_x")}, {old: new}) == {}


def test_only_the_same_test_that_holds_is_carried_on() -> None:
    old, new = "tests/test_a.py", "tests/test_b.py"
    before, entry = records(old, f"{old}::test_x"), f"{new}::test_x"
    renames = {old: new}
    assert kept_under_new_names(before, records(new, entry), renames) == {f"{old}::test_x"}
    assert kept_under_new_names(before, records(new, entry, outcome=Ended.SKIPPED), renames) == set()
    assert kept_under_new_names(before, records(new, entry, outcome=Ended.FAILED), renames, frozenset({entry})) == set()
    other = records(new, entry, region="b")
    assert kept_under_new_names(before, other, renames) == set()
    assert kept_under_new_names(before, other, renames, frozenset({entry})) == {f"{old}::test_x"}
