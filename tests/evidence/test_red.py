"""The RED verdict and its ledger, on observations written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from evidence.observed import BARE, MISMATCH, NO_IMPORT, NO_LIBRARY, context, observations, observed, record
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.evidence.classify import classify
from pipeline.judge.evidence.freeze import Frozen, canonical
from pipeline.judge.evidence.observation import CollectionError, Ended, Fault, Frame, Observation, Raised, RunState
from pipeline.judge.evidence.red import RedFacts, judge_red
from pipeline.judge.evidence.red_classes import RedClass
from pipeline.judge.evidence.red_tests import RedEntry, RedTests
from pipeline.testing.verification.tdd import late as one_late

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.judge.evidence.red_classes import Expected

OLD = observed({"tests/test_old.py::test_old": Ended.PASSED})
NEW = "tests/test_a.py::test_new"


def verdict(
    after: Observation,
    before: Observation = OLD,
    again: Observation | None = None,
    expected: Mapping[str, Expected] | None = None,
    allowed: frozenset[str] = frozenset(),
    *,
    may_only_remove: bool = False,
) -> RedFacts:
    known = context("tests/test_old.py", expected=expected)
    return judge_red(
        before, after, again, known, task="1", tree="abc", tests_to_change=allowed, may_only_remove=may_only_remove
    )


def plus(more: dict[str, Ended | None]) -> Observation:
    return observed({"tests/test_old.py::test_old": Ended.PASSED, **more})


def test_a_failing_new_test_is_red_and_in_the_ledger() -> None:
    found = verdict(plus({NEW: Ended.FAILED}), again=plus({NEW: Ended.FAILED}))
    assert found.legal
    entry = found.ledger.red[NEW]
    assert (entry.cls, entry.tree, entry.granularity) == (RedClass.ASSERTION_MISMATCH, "abc", "id")
    assert found.ledger.frozen.regions == {NEW: "r"}


def test_new_tests_that_all_pass_are_not_red() -> None:
    found = verdict(plus({NEW: Ended.PASSED}))
    assert found.all_new_pass
    assert not found.legal


def test_a_removal_is_enough_only_where_no_behaviour_changes_and_with_leave() -> None:
    old = "tests/test_old.py::test_old"
    more = plus({NEW: Ended.PASSED})
    left, leave = observed({NEW: Ended.PASSED}), frozenset({"tests/test_old.py"})
    found = verdict(left, more, allowed=leave, may_only_remove=True)
    assert found.legal
    assert found.only_removed == (old,)
    assert verdict(left, more, allowed=leave).illegal, "evidence red wants a test that fails"
    assert verdict(left, more, may_only_remove=True).removed_old == (old,)
    assert verdict(more, more, allowed=leave, may_only_remove=True).illegal, "nothing was removed"
    with_another = observed({NEW: Ended.PASSED, "tests/test_a.py::test_c": Ended.PASSED})
    assert verdict(with_another, more, allowed=leave, may_only_remove=True).all_new_pass


def test_an_old_test_that_fails_since_is_red_where_it_may_change() -> None:
    old = "tests/test_old.py::test_old"
    found = verdict(observed({old: Ended.FAILED}), allowed=frozenset({old}))
    assert found.legal
    assert set(found.ledger.red) == {old}
    assert verdict(observed({old: Ended.FAILED})).new_ids == ()


def test_an_old_test_that_changed_and_still_passes_is_a_guard_that_nobody_announced() -> None:
    old = "tests/test_old.py::test_old"
    after = observed({old: record(old, Ended.PASSED, region="other"), NEW: Ended.FAILED})
    found = verdict(after)
    assert (found.illegal, found.changed_old) == ((), (old,))
    assert set(found.ledger.guards) == {old}
    assert verdict(after, allowed=frozenset({old})).legal


def test_an_old_test_that_is_expected_to_fail_since_is_no_guard() -> None:
    old = "tests/test_old.py::test_old"
    after = observed({old: record(old, Ended.XPASSED, region="other"), NEW: Ended.FAILED})
    assert [refusal.id for refusal in verdict(after).illegal] == [old]


def test_no_new_test_is_refused_and_does_not_count_as_passing() -> None:
    found = verdict(OLD)
    assert (found.all_new_pass, len(found.illegal)) == (False, 1)


def test_one_red_parameter_carries_the_passing_ones_of_its_function() -> None:
    found = verdict(plus({f"{NEW}[1]": Ended.PASSED, f"{NEW}[2]": Ended.FAILED}))
    assert found.legal
    assert (set(found.ledger.red), set(found.ledger.guards)) == ({f"{NEW}[2]"}, {f"{NEW}[1]"})


def test_a_skipped_case_says_nothing_beside_others_of_its_function() -> None:
    keeps = "tests/test_a.py::test_keeps"
    cases: dict[str, Ended | None] = {f"{NEW}[native]": Ended.SKIPPED, f"{NEW}[plain]": Ended.FAILED}
    guards: dict[str, Ended | None] = {f"{keeps}[native]": Ended.SKIPPED, f"{keeps}[plain]": Ended.PASSED}
    after = plus({**cases, **guards})
    found = verdict(after, again=after, expected={keeps: "GUARD"})
    assert found.legal
    assert found.new_ids == (f"{keeps}[plain]", f"{NEW}[plain]")
    assert set(found.ledger.frozen.regions) == {*cases, *guards}, "none of them can be made to count later"
    assert verdict(plus(guards)).all_new_pass
    alone = verdict(plus({**cases, "tests/test_a.py::test_b": Ended.SKIPPED}))
    assert [refusal.id for refusal in alone.illegal] == ["tests/test_a.py::test_b"]


def test_a_passing_function_beside_a_red_one_is_refused_unless_announced_as_guard() -> None:
    after = plus({NEW: Ended.FAILED, "tests/test_a.py::test_keeps": Ended.PASSED})
    assert [refusal.id for refusal in verdict(after).illegal] == ["tests/test_a.py::test_keeps"]
    guarded = verdict(after, expected={"tests/test_a.py::test_keeps": "GUARD"})
    assert guarded.legal
    assert set(guarded.ledger.guards) == {"tests/test_a.py::test_keeps"}


def test_a_guard_is_announced_by_function_for_all_its_cases() -> None:
    keeps = "tests/test_a.py::test_keeps"
    cases = {f"{keeps}[1]": Ended.PASSED, f"{keeps}[2]": Ended.PASSED}
    found = verdict(plus({NEW: Ended.FAILED, **cases}), expected={keeps: "GUARD"})
    assert found.legal
    assert set(found.ledger.guards) == set(cases)


def test_a_guard_that_fails_is_refused_until_the_mark_is_withdrawn() -> None:
    keeps = "tests/test_a.py::test_keeps"
    after = plus({NEW: Ended.FAILED, keeps: Ended.FAILED})
    found = verdict(after, expected={keeps: "GUARD"})
    (refused,) = found.illegal
    assert refused.cls is RedClass.GUARD_FAILS
    assert refused.message.startswith(f"{keeps} was announced as a guard, and it fails: "), refused
    assert set(found.ledger.red) == {NEW}
    assert verdict(after).legal
    alone = verdict(plus({keeps: Ended.FAILED}), expected={keeps: "GUARD"})
    assert [one.id for one in alone.illegal] == [keeps]


def test_guards_alone_are_not_evidence() -> None:
    found = verdict(plus({NEW: Ended.PASSED}), expected={NEW: "GUARD"})
    assert found.all_new_pass
    assert "at least one must fail" in found.illegal[0].message


def test_failures_that_reach_nothing_are_structural_only() -> None:
    after = observed({NEW: record(NEW, Ended.FAILED, fault=BARE)})
    found = verdict(after, before=observed({}))
    assert found.structural_only
    assert found.illegal[0].cls is RedClass.STRUCTURAL


def test_two_runs_that_disagree_are_unstable() -> None:
    assert verdict(plus({NEW: Ended.FAILED}), again=plus({NEW: Ended.PASSED})).unstable == (NEW,)
    assert verdict(plus({NEW: Ended.FAILED}), again=OLD).unstable == (NEW,)


def test_a_timeout_names_the_limit_and_the_key() -> None:
    limit = Fault(chain=(Raised(kind="plugin.TestLimitReached", message="the test ran longer than 60 s"),))
    late = record(NEW, Ended.TIMED_OUT).model_copy(update={"fault": limit})
    slow = observed({NEW: late})
    (refused,) = verdict(slow).illegal
    assert "does not end in time (the test ran longer than 60 s)" in refused.message
    assert "test_timeout_s" in refused.message
    quick = observed({NEW: Ended.FAILED})
    assert "test_timeout_s" in one_late(NEW, quick, slow.records)
    assert one_late(NEW, quick, quick.records) == ""


def test_an_old_test_may_change_or_go_only_by_leave() -> None:
    old, gone = "tests/test_old.py::test_old", "tests/test_old.py::test_gone"
    before = observed({old: Ended.PASSED, gone: Ended.PASSED})
    after = observed({old: record(old, Ended.FAILED, region="changed")})
    found = verdict(after, before)
    assert (found.changed_old, found.removed_old, found.new_ids) == ((old,), (gone,), (old,))
    assert verdict(after, before, allowed=frozenset({old, "tests/test_old.py"})).legal


def test_a_new_file_that_cannot_import_the_tasks_symbol_is_red_as_a_whole() -> None:
    error = CollectionError(path="tests/test_a.py", fault=NO_IMPORT)
    found = verdict(observed({"tests/test_old.py::test_old": Ended.PASSED}, errors=(error,)))
    assert found.legal
    assert found.ledger.whole_files == {"tests/test_a.py"}
    assert found.ledger.frozen.files == {"tests/test_a.py": "broken"}


def test_an_existing_file_that_cannot_import_hides_its_tests_and_is_refused_once() -> None:
    error = CollectionError(path="tests/test_old.py", fault=NO_IMPORT)
    found = verdict(observed({NEW: Ended.FAILED}, errors=(error,)))
    assert [refusal.cls for refusal in found.illegal] == [RedClass.IMPORT_HIDES_TESTS]
    assert found.removed_old == ()


def test_a_file_that_was_broken_before_is_nobodys_fault() -> None:
    error = CollectionError(path="tests/test_b.py", fault=NO_LIBRARY)
    found = verdict(observed({NEW: Ended.FAILED}, errors=(error,)), before=observed({}, errors=(error,)))
    assert found.legal


def test_a_missing_library_breaks_the_environment() -> None:
    found = verdict(observed({NEW: record(NEW, Ended.FAILED, fault=NO_LIBRARY)}), before=observed({}))
    assert found.env_broken == "gone is not installed in the test environment"


def test_a_module_that_a_test_keeps_away_is_missing_on_purpose() -> None:
    halted = "import of gone halted; None in sys.modules"
    kept_away = NO_LIBRARY.model_copy(
        update={
            "chain": (NO_LIBRARY.chain[0].model_copy(update={"message": halted}),),
            "frames": (*NO_LIBRARY.frames, Frame(path="pkg/core.py", line=3, function="load")),
        }
    )
    found = verdict(observed({NEW: record(NEW, Ended.FAILED, fault=kept_away)}), before=observed({}))
    assert found.env_broken is None
    assert found.legal, found


def test_a_session_that_died_while_collecting_says_so() -> None:
    dead = Observation(state=RunState.CRASHED, detail="the test session died (exit code 0)")
    found = verdict(dead)
    assert (found.illegal[0].message, found.removed_old) == ("the test session died (exit code 0)", ())


@given(observations, observations)
def test_a_legal_verdict_rests_on_a_legal_red_of_a_new_id(before: Observation, after: Observation) -> None:
    found = verdict(after, before)
    assert set(found.ledger.red) | set(found.ledger.guards) <= set(found.new_ids)
    if found.legal:
        assert found.ledger.red
        assert all(entry.legal for entry in found.ledger.red.values())
        assert set(found.new_ids) == set(found.ledger.red) | set(found.ledger.guards)


@given(observations, observations)
def test_a_ledger_survives_the_disk_and_keeps_its_digest(before: Observation, after: Observation) -> None:
    ledger = verdict(after, before).ledger
    again = RedTests.model_validate_json(canonical(ledger))
    assert again == ledger
    assert again.digest() == ledger.digest()


@given(st.text(), st.text())
def test_the_digest_does_not_depend_on_messages_nor_on_order(one: str, other: str) -> None:
    def ledger(message: str, *names: str) -> RedTests:
        fault = MISMATCH.model_copy(update={"chain": (MISMATCH.raised.model_copy(update={"message": message}),)})
        tests = {name: record(name, Ended.FAILED, fault=fault) for name in names}
        return verdict(observed(tests), before=observed({})).ledger

    assert ledger(one, NEW, NEW + "2").digest() == ledger(other, NEW + "2", NEW).digest()
    assert ledger(one, NEW).digest() != ledger(one, NEW + "2").digest()


def test_the_digest_of_an_older_trailer_still_holds() -> None:
    entry = RedEntry(
        function="f", cls=RedClass.ASSERTION_MISMATCH, legal=True, message="m", region_sha256="x", tree="t"
    )
    frozen = Frozen(regions={"a": "x"}, files={"p": "q"}, ids=frozenset({"b", "a"}))
    known = RedTests(task="1", tree="t", red={"a": entry}, guards={"g": "1"}, frozen=frozen)

    assert known.digest() == "ab00fb4857320ed12785aa69e88ec834bbfa12ffa0c7ed2b26aff6be7e253f8b"


def test_an_error_of_which_no_line_is_known_says_what_to_assert() -> None:
    faceless = MISMATCH.model_copy(update={"frames": ()})
    found = classify(record("tests/test_a.py::test_x", Ended.FAILED, fault=faceless), context())
    assert found.cls is RedClass.TEST_BROKEN
    assert "call that inside an assertion" in found.message
    elsewhere = MISMATCH.model_copy(update={"frames": (Frame(module="json.decoder", line=3),)})
    found = classify(record("tests/test_a.py::test_x", Ended.FAILED, fault=elsewhere), context())
    assert "inside an assertion" not in found.message


@pytest.mark.parametrize(
    ("kind", "through", "legal"),
    [
        ("IndexError", "pkg/core.py", True),
        ("NameError", "pkg/core.py", False),  # the double is written wrongly
        ("IndexError", "pkg/not_there_before.py", False),
        ("IndexError", "", False),  # the test calls it by itself
        ("KeyError", "pkg/core.py", False),  # old code decorates the test, which raises it by itself
    ],
)
def test_what_a_double_raises_and_old_code_lets_through_is_red(kind: str, through: str, *, legal: bool) -> None:
    test, double = Frame(path="tests/test_a.py", line=3), Frame(path="tests/test_a.py", line=30)
    called = (Frame(path=through, line=9),) if through else ()
    frames = (*called, test) if kind == "KeyError" else (test, *called, double)
    raised = Fault(chain=(Raised(kind=f"builtins.{kind}", message="no"),), frames=frames)
    found = classify(record(NEW, Ended.FAILED, fault=raised), context())
    assert found.legal is legal
    assert found.cls is (RedClass.ASSERTION_MISMATCH if legal else RedClass.TEST_BROKEN)
    if legal:
        assert found.message == "IndexError: no (tests/test_a.py:30), which pkg/core.py:9 lets through"
