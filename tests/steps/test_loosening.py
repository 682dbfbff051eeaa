"""Two real trees: what tests no longer notice is told by file, and what serves tests is named when it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs.real import alone
from steps.ground import CARGO, PYTEST, ground

from pipeline.evidence.observation import Layout
from pipeline.measure.loosening import cases_from_production, loosened

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

ONE = "def test_one():\n    assert f(1) == 1\n"
TWO = "def test_two():\n    assert f(2) == 2\n"
NODE = Layout(python_files=("*.test.js",), collected=frozenset({"src/a.test.js"}))
GO = Layout(python_files=("*_test.go",), collected=frozenset({"a_test.go"}))


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


def said(tmp_path: Path, layout: Layout, files: dict[str, str], changes: dict[str, str | None]) -> list[str]:
    place = ground(tmp_path, files)
    return list(loosened(place, layout, place.start, place.tree(changes)))


def test_nothing_is_told_of_nothing_and_of_what_is_new(tmp_path: Path) -> None:
    place = ground(tmp_path, {"tests/test_app.py": ONE})
    assert loosened(place, PYTEST, place.start, place.start) == ()
    more = place.tree(
        {"tests/test_more.py": TWO, "tests/data.json": "{}", "tests/conftest.py": "", "app.py": "x = 1\n"}
    )
    assert loosened(place, PYTEST, place.start, more) == ()


def test_a_loosened_assertion_is_told_by_file(tmp_path: Path) -> None:
    files = {"tests/test_app.py": ONE, "app.py": "def f(x):\n    return x\n"}
    changes: dict[str, str | None] = {
        "tests/test_app.py": ONE.replace("== 1", "> 0"),
        "app.py": "def f(x):\n    return 0\n",
    }
    told_ = said(tmp_path, PYTEST, files, changes)
    assert told_ == ["tests/test_app.py: test_one: an assertion is loosened from == to > (line 2)"]


@pytest.mark.parametrize(
    ("layout", "path", "old", "new", "line"),
    [
        (
            CARGO,
            "src/lib.rs",
            "#[cfg(test)]\nmod t {\n#[test]\nfn a() { assert_eq!(f(), 1); }\n}\n",
            ("f(), 1", "f(), 2"),
            4,
        ),
        (NODE, "src/a.test.js", "test('a', () => {\n  expect(f()).toBe(1);\n});\n", ("toBe(1)", "toBe(2)"), 2),
        (
            GO,
            "a_test.go",
            'package a\n\nfunc TestA(t *testing.T) {\n	if f() != 1 {\n		t.Fatal("x")\n	}\n}\n',
            ("1 {", "2 {"),
            4,
        ),
    ],
)
def test_every_language_is_read(
    tmp_path: Path, layout: Layout, path: str, old: str, new: tuple[str, str], line: int
) -> None:
    (found,) = said(tmp_path, layout, {path: old}, {path: old.replace(*new)})
    assert found.startswith(f"{path}: ")
    assert found.endswith(f"another value is expected: 2 instead of 1 (line {line})")


def test_a_test_that_moves_to_another_file_is_not_gone_and_a_removed_file_is(tmp_path: Path) -> None:
    files = {"tests/test_app.py": ONE + "\n\n" + TWO}
    assert said(tmp_path / "a", PYTEST, files, {"tests/test_app.py": ONE, "tests/test_new.py": TWO}) == []
    assert said(tmp_path / "b", PYTEST, files, {"tests/test_app.py": None}) == [
        "tests/test_app.py: test_one, test_two: the test is removed (line 1)",
    ]


def test_what_serves_tests_is_named_with_how_much_changed(tmp_path: Path) -> None:
    files = {
        "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef cart():\n    return [1]\n",
        "tests/helpers.py": "def check(x):\n    assert x == 1\n",
        "tests/data/cases.json": "[1,\n2,\n3]\n",
        "tests/__snapshots__/test_app.ambr": "a\nb\n",
        "tests/gone.txt": "x\n",
        "src/data.json": "{}\n",
        "pytest.ini": "[pytest]\n",
    }
    changes: dict[str, str | None] = {
        "tests/conftest.py": files["tests/conftest.py"].replace("[1]", "[]"),
        "tests/helpers.py": "def check(x):\n    pass\n",
        "tests/data/cases.json": "[1]\n",
        "tests/__snapshots__/test_app.ambr": "b\na\n",
        "tests/gone.txt": None,
        "src/data.json": "[]\n",
        "pytest.ini": "[pytest]\naddopts = -x\n",
    }
    assert said(tmp_path, PYTEST, files, changes) == [
        "pytest.ini: a file that controls how tests run is changed: 0 of 1 lines are gone, 1 are new",
        "tests/__snapshots__/test_app.ambr: what tests expect (a snapshot) is changed: the same lines in another order",
        "tests/conftest.py: cart: the fixture is emptied (line 5)",
        "tests/conftest.py: a file that controls how tests run is changed: 1 of 6 lines are gone, 1 are new",
        "tests/data/cases.json: data of tests is changed: 3 of 3 lines are gone, 1 are new",
        "tests/gone.txt: data of tests is removed",
        "tests/helpers.py: a file that serves tests is changed: 1 of 2 lines are gone, 1 are new",
    ]


@pytest.mark.parametrize(
    ("head", "cases", "is_told"),
    [
        ("from shop import CASES", "CASES", True),
        ("from shop import CASES", "[*CASES, 1]", True),
        ("import shop", "shop.CASES", True),
        ("from pkg import shop", "shop.CASES.items()", True),
        ("from shop import CASES\nMORE = sorted(CASES)", "MORE", True),
        ("from shop import Cart", "[Cart(1), Cart(2)]", False),
        ("from shop import Cart\nCARTS = [Cart(1)]", "CARTS", False),
        ("from other import CASES", "CASES", False),
        ("import string", "string.digits", False),
        ("", "[1, 2]", False),
    ],
)
def test_cases_that_the_implementer_may_change_are_told(tmp_path: Path, head: str, cases: str, is_told: bool) -> None:
    test = f"import pytest\n{head}\n\n\n@pytest.mark.parametrize('n', {cases})\ndef test_a(n):\n    assert f(n)\n"
    place = ground(tmp_path, {"tests/test_a.py": test, "pkg/shop.py": "CASES = [1]\n"})
    lines = cases_from_production(place, {"pkg/shop.py", "app.py"}, place.start, ["tests/test_a.py", "tests/gone.py"])
    assert bool(lines) is is_told
    assert not is_told or lines[0].startswith(
        f"tests/test_a.py: test_a: its cases ({cases}) are written in pkg/shop.py"
    )


@pytest.mark.parametrize(
    ("path", "text", "file", "line"),
    [
        (
            "shop/shop_test.go",
            (
                'package shop_test\n\nimport "example.com/greet/shop"\n\nfunc TestA(t *testing.T) {\n'
                "\tfor _, c := range shop.Cases {\n\t\tt.Run(c.name, func(t *testing.T) {})\n\t}\n}\n"
            ),
            "shop/shop.go",
            "TestA: its cases (shop.Cases) are written in shop/shop.go, which is to be changed (line 6)",
        ),
        (
            "shop/shop_test.go",
            (
                'package shop_test\n\nimport "example.com/greet/shop"\n\nfunc TestA(t *testing.T) {\n'
                "\tfor _, c := range shop.Cases {\n\t\tcheck(t, c)\n\t}\n}\n"
            ),
            "shop/shop.go",
            "",
        ),
        (
            "src/shop.test.js",
            "import { CASES } from './shop.js';\ntest.each(CASES)('adds %s', (n) => {});\n",
            "src/shop.js",
            "adds %s: its cases (CASES) are written in src/shop.js, which is to be changed (line 2)",
        ),
        (
            "test/shop.test.ts",
            (
                "const { CASES } = require('../src/shop');\nconst MORE = [...CASES, 1];\n"
                "for (const each of MORE) {\n  it(`adds ${each}`, () => {});\n}\n"
            ),
            "src/shop/index.ts",
            "adds ${each}: its cases (MORE) are written in src/shop/index.ts, which is to be changed (line 3)",
        ),
        (
            "src/shop.test.js",
            "import * as shop from './shop.js';\nshop.CASES.forEach((n) => test('adds', () => {}));\n",
            "src/shop.js",
            "adds: its cases (shop.CASES) are written in src/shop.js, which is to be changed (line 2)",
        ),
        (
            "src/shop.test.js",
            (
                "import { Cart, list } from './shop.js';\ntest.each([new Cart(1), new Cart(2)])('a', () => {});\n"
                "test('b', () => { for (const one of list()) { expect(one).toBe(1); } });\n"
            ),
            "src/shop.js",
            "",
        ),
        ("src/shop.test.js", "import { CASES } from 'cases';\ntest.each(CASES)('a', () => {});\n", "cases.js", ""),
        ("src/shop.test.js", "(" * 9_000, "src/shop.js", ""),
        (
            "a.test.js",
            "const a0 = 1;\n"
            + "".join(f"const a{n + 1} = a{n};\n" for n in range(3_000))
            + "test.each(a3000)('a', f);",
            "a.js",
            "",
        ),
        ("a_test.go", 'package a\n\nimport "x.org/b"\n\nfunc TestA(t *testing.T) { b.C.Run(t) }\n', "a.go", ""),
    ],
)
def test_cases_of_other_languages_are_told_too(tmp_path: Path, path: str, text: str, file: str, line: str) -> None:
    place = ground(tmp_path, {path: text, file: ""})
    lines = cases_from_production(place, {file, "app.js"}, place.start, [path])
    assert lines == ((f"{path}: {line}",) if line else ())
