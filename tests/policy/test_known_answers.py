"""Values and examples that production and new tests share."""

from __future__ import annotations

import pytest

from pipeline.testing.languages.sources.known_answers import added, notes, unused

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
        "    # if cents == 1370 it is refused",
        "    // if cents == 1370",
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


PAIRS = "assert slug('Donald E', 8) == 'donald-e'\nassert slug('A bc def', 5) == 'a_bc'\n"


@pytest.mark.parametrize(
    "table",
    [
        'KNOWN = {\n    ("donald-e-knuth", 8): "donald-e",\n    ("a_bc_def", 5): "a_bc",\n}\n',
        'KNOWN = {("x", 8): "donald-e", ("y", 5): "a_bc"}\n',
    ],
)
def test_a_table_of_results_that_only_tests_have_is_told(table: str) -> None:
    (line,) = told(OLD + table, test=PAIRS)
    assert line.endswith('gives "donald-e", "a_bc" by table, which only the new tests have')


@pytest.mark.parametrize(
    "code",
    [
        'WORDS = {"error": "donald-e"}\n',  # one is a word like any
        'ERRORS = {1: "a name is needed", 2: "a price is needed"}\n',
        'return "donald-e" if short else "a_bc"\n',
    ],
)
def test_other_tables_are_not_told(code: str) -> None:
    assert told(OLD + code, test=PAIRS) == ()
    assert told(OLD + 'K = {1: "donald-e", 2: "a_bc"}\n', test=PAIRS, known=(OLD, "donald-e, and then a_bc")) == ()


def test_values_of_a_criterion_that_no_test_has_are_told() -> None:
    criteria = {"1 C1": '`initials("donald knuth")` returns `"DK"`', "1 C2": "greet('') raises ValueError"}
    weak = ["assert isinstance(initials('donald knuth'), str)"]
    assert unused(criteria, weak) == ('task 1 C1 names "DK", which no test of this run has',)
    assert unused(criteria, [*weak, "assert initials(name) == 'DK'"]) == ()
    assert unused({"1 C1": 'it returns `"a\\n"`'}, ["x = 1"]) == (), "an escaped text can be written in many ways"
    short = {"1 C1": '"%61" counts as "a" and "+" as a blank; an item without "=" is its name'}
    assert unused(short, ["assert names('%61') == ['a']"]) == (), "a quote of one character is a quote, too"
    assert unused(criteria, []) == (), "where there are no tests of text, nothing is said of text"


PYTHON = ((3, "def price(total, member):"), (4, "    return 190"))
RUST = ((1, "pub fn price(total: u32) -> u32 {"),)
GO = ((1, "func Price(total int) int {"),)
SCRIPT = ((1, "export async function price(total) {"),)


def example(lines: tuple[tuple[int, str], ...], *tests: str) -> tuple[str, ...]:
    return notes({"shop": lines}, tests, tests)


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
    found = example(lines, test)
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
    assert example(PYTHON, *tests) == ()


def test_the_same_example_twice_is_one() -> None:
    (found,) = example(PYTHON, "    assert price(200,  True) == 190", "    assert price(200, True) > 0")
    assert found.startswith("shop:3 `price` is called by the new tests with one example only")


def test_what_is_defined_nowhere_in_the_change_is_not_told() -> None:
    assert notes({"shop": ((1, "    return 190"),)}, ["price(200)"], ()) == ()
