"""Two real trees: what tests no longer notice is told by file, and what serves tests is named when it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs.real import alone
from steps.ground import CARGO, PYTEST, ground

from pipeline.evidence.observation import Layout
from pipeline.measure.old_tests.loosened import loosened

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
