"""What summary.md says of a task's evidence: a line for each function, however many cases it has."""

from __future__ import annotations

from pipeline.evidence.red_classes import RedClass
from pipeline.evidence.red_tests import RedEntry, RedTests
from pipeline.steps.publication.summary import ledger_lines


def red(function: str, message: str, cls: RedClass = RedClass.ASSERTION_MISMATCH) -> RedEntry:
    return RedEntry(function=function, cls=cls, legal=True, message=message, region_sha256="r", tree="t")


def test_cases_of_one_function_are_one_line() -> None:
    cases = {f"t.py::test_cents[{n}]": red("t.py::test_cents", f"{n} is not 0") for n in range(1, 10)}
    other = {"t.py::test_cents[x]": red("t.py::test_cents", "no such name", RedClass.MISSING_BEHAVIOR)}
    lone = {"t.py::test_sum": red("t.py::test_sum", "1 is not 2\n(really)")}
    guards = {"t.py::test_old": "r", "t.py::test_kept[1]": "r", "t.py::test_kept[2]": "r"}
    assert ledger_lines(RedTests(task="1", tree="t", red={**cases, **other, **lone}, guards=guards)) == [
        "RED `t.py::test_cents` (9 cases): ASSERTION_MISMATCH: 1 is not 0",
        "RED `t.py::test_cents[x]`: MISSING_BEHAVIOR: no such name",
        "RED `t.py::test_sum`: ASSERTION_MISMATCH: 1 is not 2 (really)",
        "passes before and after: `t.py::test_kept` (2 cases)",
        "passes before and after: `t.py::test_old`",
    ]
