"""What the final review reads of a task's RED: what many tests say alike stands there once, with their ids."""

from __future__ import annotations

from pipeline.judge.evidence.red_classes import RedClass
from pipeline.judge.evidence.red_tests import RedEntry, RedTests
from pipeline.judge.policy.rights import Action
from pipeline.judge.reports.fields import FileChange, OldTest
from pipeline.judge.reports.tasks import Task
from pipeline.steps.asking.artifacts import counted_cases, evidence_md
from pipeline.testing.measure.task_evidence import TaskEvidence

TASK = Task(
    id="1",
    title="Reject empty names",
    files=(FileChange(path="greet.py", action=Action.MODIFY),),
    test_files=(FileChange(path="tests/test_greet.py", action=Action.MODIFY),),
    tests_to_change=(OldTest(id="tests/test_old.py::test_a", reason="its name"),),
)


def red(function: str, message: str, cls: RedClass = RedClass.ASSERTION_MISMATCH) -> RedEntry:
    return RedEntry(function=function, cls=cls, legal=True, message=message, region_sha256="r", tree="t")


def words(entries: dict[str, RedEntry]) -> list[str]:
    ledger = RedTests(task="1", tree="t", red=entries, guards={})
    evidence = TaskEvidence(task="1", tests_tree="t", production="p", test_paths=(), command=(), ledger=ledger)
    return evidence_md(evidence, TASK, {}).partition("## RED\n\n")[2].strip().splitlines()


def test_what_twelve_tests_say_with_other_values_stands_there_once_with_each_id() -> None:
    names = [f"t.py::test_{n}" for n in range(12)]
    alike = {name: red(name, f"assert 'the long text {n * 7}' == 'the lon...") for n, name in enumerate(names)}
    other = {"t.py::test_no": red("t.py::test_no", "no attribute 'x'", RedClass.MISSING_BEHAVIOR)}
    assert words({**alike, **other}) == [
        f"- 12 tests fail alike: {', '.join(names)}: wrong result or exception, such as {alike[names[0]].message}",
        "- t.py::test_no: MISSING_BEHAVIOR: no attribute 'x'",
    ]


def test_two_tests_and_what_is_not_alike_keep_their_own_lines() -> None:
    assert len(words({f"t.py::test_{n}": red(f"t.py::test_{n}", f"assert {n} == 2") for n in range(2)})) == 2
    unlike = ("isn't a", "isn't b", "isn't c", "d")
    assert len(words({f"t.py::{word}": red(f"t.py::{word}", f"assert {word}") for word in unlike})) == 4


def test_cases_of_one_function_are_named_by_it() -> None:
    cases = {f"t.py::test_cents[{n}]": red("t.py::test_cents", f"{n} is not 0") for n in range(4)}
    alike = "- 4 tests fail alike: t.py::test_cents (4 cases): wrong result or exception, such as 0 is not 0"
    assert words(cases) == [alike]


def test_test_files_that_the_task_does_not_name_are_told() -> None:
    paths = ("greet.py", "tests/helpers.py", "tests/test_greet.py", "tests/test_old.py")
    evidence = TaskEvidence(task="1", tests_tree="t", production="p", test_paths=paths, command=())
    told = evidence_md(evidence, TASK, {}).partition("## Test Files That the Task Does Not Name\n\n")[2]
    assert told.strip() == "- `tests/helpers.py`"


def test_the_most_that_is_named_are_functions_and_cases_are_a_number() -> None:
    many = {f"t.py::test_words[{n}]": "t.py::test_words" for n in range(90)}
    nearest = {f"t.py::test_ordinal[{n}]": "t.py::test_ordinal" for n in range(61)}
    functions = {**many, **nearest, "t.py::test_one[a]": "t.py::test_one", "t.py::test_last": "t.py::test_last"}
    assert counted_cases(functions, functions, 3) == [
        "t.py::test_words (90 cases)",
        "t.py::test_ordinal (61 cases)",
        "t.py::test_one[a]",
    ]


def test_guards_that_are_cases_of_one_function_are_one_line() -> None:
    functions = {f"t.py::test_words[{n}]": "t.py::test_words" for n in range(50)}
    ledger = RedTests(task="1", tree="t", red={}, guards={**dict.fromkeys(functions, "r"), "t.py::test_one": "r"})
    evidence = TaskEvidence(task="1", tests_tree="t", production="p", test_paths=(), command=(), ledger=ledger)
    told = evidence_md(evidence, TASK, functions).partition("## Guards\n\n")[2]
    assert told.strip().splitlines() == ["- t.py::test_words (50 cases)", "- t.py::test_one"]
