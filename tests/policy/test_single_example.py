"""What is told of a new function that the new tests call with one example only."""

from __future__ import annotations

import pytest

from pipeline.languages.sources.single_example import notes

PYTHON = ((3, "def price(total, member):"), (4, "    return 190"))
RUST = ((1, "pub fn price(total: u32) -> u32 {"),)
GO = ((1, "func Price(total int) int {"),)
SCRIPT = ((1, "export async function price(total) {"),)


def told(lines: tuple[tuple[int, str], ...], *tests: str) -> tuple[str, ...]:
    return notes({"shop": lines}, tests)


@pytest.mark.parametrize(
    ("lines", "test", "call"),
    [
        (PYTHON, "    assert price(200, True) == 190", "price(200, True)"),
        (PYTHON, "    assert shop.price(total=200, member=True) == 190", "price(total=200, member=True)"),
        (RUST, "        assert_eq!(price(200), 190);", "price(200)"),
        (GO, '    if got := Price(200); got != 190 { t.Errorf("price: %d", got) }', "Price(200)"),
        (SCRIPT, "  assert.equal(await price({total: 200}), 190)", None),
        (SCRIPT, "  assert.equal(await price([200, '(']), 190)", "price([200, '('])"),
    ],
)
def test_one_example_is_told(lines: tuple[tuple[int, str], ...], test: str, call: str | None) -> None:
    found = told(lines, test)
    assert [(call or "") in one for one in found] == ([True] if call else []), found


@pytest.mark.parametrize(
    "tests",
    [
        (),
        ("    assert price(200, True) == 190", "    assert price(99, True) == 99"),
        ("    assert price(total, True) == expected",),
        ("    assert price(200, True) == 190", "    assert price(each, True) == 190"),
        ("    assert priced(200) == 190",),
        ("    assert price() == 190",),
        ("    assert price(" + "1, " * 200 + ") == 190",),
        ("def price(200):",),
    ],
)
def test_more_than_one_example_or_one_that_is_not_written_down_is_not(tests: tuple[str, ...]) -> None:
    assert told(PYTHON, *tests) == ()


def test_the_same_example_twice_is_one() -> None:
    (found,) = told(PYTHON, "    assert price(200,  True) == 190", "    assert price(200, True) > 0")
    assert found.startswith("shop:3 `price` is called by the new tests with one example only")


def test_what_is_defined_nowhere_in_the_change_is_not_told() -> None:
    assert notes({"shop": ((1, "    return 190"),)}, ["price(200)"]) == ()
