"""Two real trees: an old test whose own lines are what they were, and that notices less, is named by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs.real import alone
from steps.ground import CARGO, PYTEST, ground

from pipeline.evidence.observation import Layout, TestRecord
from pipeline.measure.old_tests.changed_helpers import weakened_indirectly
from pipeline.measure.old_tests.loosened import loosened

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

GO = Layout(python_files=("*_test.go",), collected=frozenset({"a_test.go"}))
NODE = Layout(python_files=("*.test.js",), collected=frozenset({"src/a.test.js"}))
APP = """from helpers import LIMIT as MOST, check
import helpers

EPS = 1e-9


def near(a):
    assert abs(a) < EPS


def test_near():
    near(f())


class TestMore:
    def test_limit(self):
        assert g() < MOST

    def test_checked(self):
        check(g())

    def test_module(self):
        assert g() < helpers.LIMIT

    def test_alone(self):
        assert g() == 1
"""
HELPERS = "LIMIT = 5\n\n\ndef check(x):\n    assert x < LIMIT\n"
CONFTEST = "import pytest\n\nPRICES = [1, 2, 3]\n\n\n@pytest.fixture\ndef prices():\n    return list(PRICES)\n"
PRICES = "def test_prices(prices):\n    assert sum(prices) == total(prices)\n"
GO_TEST = """package a

const eps = 1e-9

func TestA(t *testing.T) {
	if math.Abs(f()-1) > eps {
		t.Fatal("x")
	}
}
"""
FILES = {
    "tests/test_app.py": APP,
    "tests/helpers.py": HELPERS,
    "tests/conftest.py": CONFTEST,
    "tests/test_prices.py": PRICES,
    "test_outside.py": PRICES,
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


def records(*functions: str) -> dict[str, TestRecord]:
    return {
        one: TestRecord(id=one, function=one.partition("[")[0], path=one.partition("::")[0], region_sha256="")
        for one in functions
    }


PYTHON = records(
    "tests/test_app.py::test_near",
    "tests/test_app.py::TestMore::test_limit",
    "tests/test_app.py::TestMore::test_checked",
    "tests/test_app.py::TestMore::test_module",
    "tests/test_app.py::TestMore::test_alone",
    "tests/test_prices.py::test_prices",
    "tests/test_prices.py::test_prices[again]",
)


@pytest.mark.parametrize(
    ("path", "old", "new", "named"),
    [
        ("tests/test_app.py", "1e-9", "10.0", ["test_app.py::test_near"]),
        ("tests/test_app.py", "assert abs(a) < EPS", "print(a)", ["test_app.py::test_near"]),
        ("tests/test_app.py", "EPS", "CLOSE", []),
        ("tests/test_app.py", "assert g() == 1", "assert g()", []),  # its own lines changed: that is known already
        (
            "tests/helpers.py",
            "LIMIT = 5",
            "LIMIT = 500",
            [
                "test_app.py::TestMore::test_checked",
                "test_app.py::TestMore::test_limit",
                "test_app.py::TestMore::test_module",
            ],
        ),
        ("tests/helpers.py", "LIMIT = 5", "LIMIT = 5\nMORE = 1", []),
        (
            "tests/conftest.py",
            "[1, 2, 3]",
            "[1]",
            ["test_prices.py::test_prices", "test_prices.py::test_prices[again]"],
        ),
        ("tests/conftest.py", "[1, 2, 3]", "[1, 2, 3, 4]", []),
    ],
)
def test_old_tests_that_notice_less_are_named(tmp_path: Path, path: str, old: str, new: str, named: list[str]) -> None:
    place = ground(tmp_path, FILES)
    after = place.tree({path: FILES[path].replace(old, new)})
    found = weakened_indirectly(place, PYTEST, PYTHON, place.start, after)
    assert found == tuple(f"tests/{one}" for one in named)


def test_a_constant_of_a_helper_is_told_with_the_tests_that_use_it(tmp_path: Path) -> None:
    place = ground(tmp_path, FILES)
    changes: dict[str, str | None] = {
        "tests/helpers.py": HELPERS.replace("= 5", "= 500"),
        "tests/conftest.py": CONFTEST.replace("[1, 2, 3]", "[1]"),
    }
    prices = "tests/test_prices.py::test_prices"
    three = ", ".join(f"tests/test_app.py::TestMore.test_{name}" for name in ("limit", "checked", "module"))
    assert loosened(place, PYTEST, place.start, place.tree(changes)) == (
        "tests/conftest.py: prices: the fixture does less: 2 is gone (line 7)",
        f"tests/conftest.py: constant PRICES: 2 is gone (used by {prices}) (line 1)",
        "tests/conftest.py: a file that controls how tests run is changed: 1 of 8 lines are gone, 1 are new",
        f"tests/helpers.py: constant LIMIT: 5 is 500 now (used by {three}) (line 1)",
        "tests/helpers.py: a file that serves tests is changed: 1 of 5 lines are gone, 1 are new",
    )


def test_a_constant_of_a_helper_that_only_new_tests_use_is_not_told(tmp_path: Path) -> None:
    place = ground(tmp_path, {**FILES, "tests/test_app.py": PRICES})
    after = place.tree({"tests/helpers.py": HELPERS.replace("= 5", "= 500"), "tests/test_app.py": APP})
    lines = loosened(place, PYTEST, place.start, after)
    assert [line for line in lines if "constant" in line] == []


@pytest.mark.parametrize(
    ("layout", "path", "text", "change", "entry", "function"),
    [
        (
            GO,
            "a_test.go",
            GO_TEST,
            ("1e-9", "10.0"),
            ".::TestA",
            ".::TestA",
        ),
        (
            CARGO,
            "src/lib.rs",
            "#[cfg(test)]\nmod tests {\nconst MOST: i32 = 5;\n#[test]\nfn a() { assert_eq!(f(), MOST); }\n}\n",
            ("= 5", "= 6"),
            "app::lib::tests::a",
            "app::lib::tests::a",
        ),
        (
            NODE,
            "src/a.test.js",
            "const most = 5;\ndescribe('a', () => {\n  test('b.c', () => {\n    expect(f()).toBe(most);\n  });\n});\n",
            ("= 5", "= 6"),
            "src/a.test.js::a > b.c",
            "src/a.test.js::a > b.c",
        ),
    ],
)
def test_in_other_languages_too(
    tmp_path: Path, layout: Layout, path: str, text: str, change: tuple[str, str], entry: str, function: str
) -> None:
    place = ground(tmp_path, {path: text})
    known = {entry: TestRecord(id=entry, function=function, path=path, region_sha256="")}
    after = place.tree({path: text.replace(*change)})
    assert weakened_indirectly(place, layout, known, place.start, after) == (entry,)
    assert weakened_indirectly(place, layout, known, place.start, place.tree({path: f"{text}\n\n"})) == ()
