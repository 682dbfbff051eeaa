"""What one writer's work comes to, of its report and what was measured; what it may change."""

from __future__ import annotations

import pytest

from pipeline.judge.policy.rights import Change, ChangeKind, TestScope, judge
from pipeline.judge.policy.roles import Writes
from pipeline.judge.reports import signal_of_report
from pipeline.judge.reports.signal_of_report import ImplementFacts
from pipeline.judge.reports.work_reports import Built, Unbuilt
from pipeline.matrix.scheduling.patterns import EVERYTHING, parsed
from pipeline.vocabulary import Signal

BUILT = Built(result="COMPLETE")
UNBUILT = Unbuilt(result="INCOMPLETE", blocking_issue="two things")


@pytest.mark.parametrize(
    ("of_tests", "built", "unbuilt"),
    [
        ("RED", None, None),
        ("TESTS_KEPT", None, None),
        ("TESTS_DOUBTFUL", None, None),
        ("DISPUTED", None, None),
        ("CHANGED_OLD_TEST", None, None),
        ("UNNOTICED_FAULTS", "PASSES_ALREADY", "INCOMPLETE"),
        ("PASSES_ALREADY", "PASSES_ALREADY", "INCOMPLETE"),
        ("ILLEGAL_RED", "ILLEGAL_RED", "INCOMPLETE"),
        ("STRUCTURAL_ONLY", "STRUCTURAL_ONLY", "INCOMPLETE"),
        ("RED_UNSTABLE", "RED_UNSTABLE", "INCOMPLETE"),
        ("ENV_BROKEN", "ENV_BROKEN", "ENV_BROKEN"),
    ],
)
def test_what_is_wrong_with_its_tests(of_tests: str, built: str | None, unbuilt: str | None) -> None:
    assert signal_of_report.red_of_build(BUILT, Signal(of_tests)) == built
    assert signal_of_report.red_of_build(UNBUILT, Signal(of_tests)) == unbuilt


@pytest.mark.parametrize(
    ("facts", "shown", "structural", "built", "unbuilt"),
    [
        (ImplementFacts(green=True), True, False, "GREEN", "GREEN_INCOMPLETE"),
        (ImplementFacts(green=True), False, False, "ILLEGAL_RED", "INCOMPLETE"),
        (ImplementFacts(regression=True, hidden=True), True, False, "REGRESSION", "REGRESSION"),
        (ImplementFacts(hidden=True, unstable=True), True, False, "HIDDEN_REGRESSION", "HIDDEN_REGRESSION"),
        (ImplementFacts(unstable=True), True, True, "GREEN_UNSTABLE", "GREEN_UNSTABLE"),
        (ImplementFacts(), True, True, "STRUCTURAL_ONLY", "STRUCTURAL_ONLY"),
        (ImplementFacts(stale_xfail=True), True, False, "NOT_GREEN", "INCOMPLETE"),
    ],
)
def test_what_the_whole_comes_to(
    facts: ImplementFacts, shown: bool, structural: bool, built: str, unbuilt: str
) -> None:
    assert signal_of_report.build(BUILT, facts, shown=shown, structural=structural) == built
    assert signal_of_report.build(UNBUILT, facts, shown=shown, structural=structural) == unbuilt


def test_probes_turn_green_into_what_they_found() -> None:
    found = {one: signal_of_report.green_of_build(Signal.GREEN_INCOMPLETE, one) for one in Signal}
    assert found[Signal.GREEN] is Signal.GREEN_INCOMPLETE
    assert found[Signal.TEST_DESIGN] is Signal.ILLEGAL_RED
    assert found[Signal.UNNOTICED_FAULTS] is Signal.UNNOTICED_FAULTS


@pytest.mark.parametrize(
    ("path", "area", "rule"),
    [
        ("greet.py", EVERYTHING, "in-area"),
        ("tests/test_greet.py", EVERYTHING, "in-area"),
        ("tests/test_new.py", EVERYTHING, "in-area"),
        ("tests/conftest.py", EVERYTHING, "control-file"),
        ("tests/conftest.py", "tests/conftest.py", "control-file-named"),
        ("pyproject.toml", EVERYTHING, "control-file"),
        (".github/workflows/ci.yml", EVERYTHING, "control-file"),
        ("redfirst.toml", EVERYTHING, "control-file"),
        ("TODO/GAL-1.md", EVERYTHING, "tracker-file"),
        ("greet.py", "src", "outside-area"),
    ],
)
def test_it_may_change_tests_and_code_and_nothing_that_controls_them(path: str, area: str, rule: str) -> None:
    tests = TestScope(folders=("tests",), known=frozenset({"tests/test_greet.py"}), writable=True)
    found = judge(Writes.AREA, Change(path, ChangeKind.MODIFIED), tests=tests, area=(parsed(area),))
    assert (found.rule, found.allowed) == (rule, rule in {"in-area", "control-file-named"})
