"""Values that production compares with and that only new tests have."""

from __future__ import annotations

import pytest

from pipeline.policy.special_cases import added, notes

OLD = "def price(cents):\n    return cents\n"
TEST = "assert price(1370) == 0\nassert price('spring') == 1\n"


def told(new: str, *, test: str = TEST, known: tuple[str, ...] = (OLD,)) -> tuple[str, ...]:
    return notes({"a.py": added(OLD, new)}, [line for _, line in added("", test)], known)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("    if cents == 1370:", "1370"),
        ("    if cents == 1_370:", "1370"),
        ("    if cents in {1370, 4}:", "1370"),
        ("    match cents { 1370 => 0,", "1370"),
        ("        case 1370:", "1370"),
        ('    return {"spring": 1}.get("spring")', '"spring"'),
        ("    if name === 'spring' {", '"spring"'),
    ],
)
def test_what_only_tests_have_is_told_with_its_line(line: str, value: str) -> None:
    assert told(f"{OLD}{line}\n") == (f"a.py:3 compares with {value}, which only the new tests have",)


@pytest.mark.parametrize(
    "line",
    [
        "    if cents == 10:",  # too common to say anything
        "    if cents == 1371:",  # no test has it
        "    return 1370",  # it is not compared with
        "    x1370 == 4",
    ],
)
def test_other_lines_are_not_told(line: str) -> None:
    assert told(f"{OLD}{line}\n") == ()


@pytest.mark.parametrize("words", ["A price of 1370 is refused.", "cents = 1370"])
def test_what_somebody_else_said_too_is_not_told(words: str) -> None:
    assert told(f"{OLD}    if cents == 1370:\n", known=(OLD, words)) == ()


def test_several_values_of_one_test_are_told_whoever_said_them() -> None:
    test, code = "assert price(1000, 130) == 0\n", f"{OLD}    if (cents, percent) == (1000, 130):\n"
    assert told(code, test=test, known=(OLD, "price(1000, 130) is 0")) == (
        "a.py:3 compares with 1000, 130, inputs of a new test",
    )
    assert told(code, test="price(1000)\nprice(130)\n", known=(OLD, "1000 130")) == ()


def test_lines_that_were_there_are_not_told() -> None:
    assert told(OLD, test="assert price(cents) == 0\n") == ()
    assert added("a\nb\n", "b\nc\n") == ((2, "c"),)


def test_there_is_an_end_of_it() -> None:
    many = "".join(f"    if cents == {number}:\n" for number in range(4000, 4100))
    assert len(told(OLD + many, test=" ".join(map(str, range(4000, 4100))))) == 12
