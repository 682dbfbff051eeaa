"""What tests stand on may not move between RED and GREEN: told from the bytes of two trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs.real import alone
from steps.ground import CARGO, PYTEST, Ground, ground

from pipeline.judge.policy.paths import lies_among_tests
from pipeline.judge.policy.rights import Action, Change, ChangeKind, Grant, TestScope, judge
from pipeline.judge.policy.roles import Writes
from pipeline.testing.measure.old_tests import PinnedChanges, pinned_changes

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

CODE = "pub fn f() -> u8 { 1 }\n"
TESTS = "\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn it() { assert_eq!(super::f(), 1); }\n}\n"
MORE = TESTS.replace("mod tests", "mod more")
FILES = {
    "Cargo.toml": "[package]\n",
    "src/lib.rs": CODE + TESTS,
    "src/a.rs": CODE,
    "tests/a.rs": "// old\n",
    "tests/data/in.json": "{}\n",
}


@pytest.fixture
def rust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    alone(monkeypatch, tmp_path / "home")
    return ground(tmp_path, FILES, rust=True)


def asked(place: Ground, files: dict[str, str | None], *named: str) -> PinnedChanges:
    return pinned_changes(place, CARGO, named, place.start, place.tree(files))


@pytest.mark.broad(but_first=3)
@pytest.mark.parametrize(
    "files",
    [
        {},
        {"src/lib.rs": CODE.replace("1", "2") + TESTS},
        {"src/lib.rs": f"//! Doc.\n{CODE}\n\n{TESTS}"},
        {"src/new.rs": CODE},
        {"src/lib.rs": CODE, "src/a.rs": CODE + TESTS},
        {"src/lib.rs": None, "src/moved.rs": CODE + TESTS},
        {"README.md": "new\n"},
    ],
    ids=["nothing", "code", "blanks", "new-code", "tests-moved", "file-renamed", "documents"],
)
def test_work_on_the_code_moves_nothing(rust: Ground, files: dict[str, str | None]) -> None:
    assert asked(rust, files, *files) == PinnedChanges()


@pytest.mark.broad(but_first=3)
@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"src/lib.rs": CODE + TESTS.replace("f(), 1", "f(), 2")}, "src/lib.rs: the test module tests was changed"),
        ({"src/lib.rs": CODE + TESTS.replace("#[test]", "#[test] #[ignore]")}, "the test module tests was changed"),
        ({"src/lib.rs": CODE}, "src/lib.rs: the test module tests is gone"),
        ({"src/lib.rs": None}, "src/lib.rs: the test module tests is gone"),
        ({"src/lib.rs": CODE + TESTS + MORE}, "src/lib.rs: the test module more is new"),
        ({"src/new.rs": CODE + MORE}, "src/new.rs: the test module more is new"),
        ({"src/lib.rs": f"mod x {{ {TESTS} }}\n{CODE}"}, None),
        ({"src/lib.rs": CODE + TESTS.replace("mod tests", "mod other")}, "the test module tests is gone"),
    ],
)
def test_leave_for_the_code_is_none_for_its_tests(rust: Ground, files: dict[str, str | None], told: str | None) -> None:
    found = asked(rust, files, *files)
    assert found.holds is (told is None)
    assert told is None or told in found.regions[0]


def test_a_file_that_cannot_be_read_for_certain_is_told(rust: Ground) -> None:
    found = asked(rust, {"src/lib.rs": f'{CODE}fn s() {{ "a"r#""#; }}\n{TESTS}'}, "src/lib.rs")
    assert found.holds
    assert "src/lib.rs: line 2 has a literal with a suffix" in found.unsure[0]


def test_what_controls_tests_is_told_if_named_and_refused_if_not(rust: Ground) -> None:
    files: dict[str, str | None] = {"Cargo.toml": "[features]\n", ".cargo/config.toml": "x\n", "src/a.rs": "// a\n"}
    control = "controls how tests are built or run"
    assert asked(rust, files).support == (f".cargo/config.toml {control}", f"Cargo.toml {control}")
    named = asked(rust, files, "Cargo.toml", ".cargo/config.toml", "src/a.rs")
    assert named.holds
    assert named.controls == (f".cargo/config.toml {control}", f"Cargo.toml {control}")


def test_what_serves_tests_is_pinned_too(rust: Ground) -> None:
    files: dict[str, str | None] = {
        "tests/a.rs": None,
        "tests/data/in.json": "[]\n",
        "tests/common/mod.rs": "// new\n",
        "src/snapshots/a.snap": "1\n",
        "testdata/x": "1\n",
    }
    found = asked(rust, files)
    assert not found.holds
    assert {line.partition(" ")[0] for line in found.support} == set(files)


def test_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, tmp_path / "home")
    python = ground(tmp_path, {"app.py": "a = 1\n", "conftest.py": "", "tests/test_app.py": "", "pyproject.toml": ""})
    changed = dict.fromkeys(
        ("app.py", "conftest.py", "tests/test_app.py", "tests/helper.py", "pyproject.toml"), "x = 1\n"
    )
    found = pinned_changes(python, PYTEST, ["app.py", "pyproject.toml"], python.start, python.tree({**changed}))
    assert [line.partition(" ")[0] for line in found.support] == ["conftest.py", "tests/helper.py", "tests/test_app.py"]
    assert found.controls == ("pyproject.toml controls how tests are built or run",)


@pytest.mark.parametrize("path", ["tests/test_app.py", "tests/helper.py", "tests/data/in.json"])
def test_no_task_can_give_an_implementer_leave_for_a_test(path: str) -> None:
    scope = TestScope(folders=("tests",), known=frozenset({"tests/test_app.py"}))
    ruling = judge(Writes.TASK, Change(path, ChangeKind.MODIFIED), (Grant(path, Action.MODIFY),), scope)
    assert (ruling.allowed, ruling.rule) == (False, "test-file")


@pytest.mark.parametrize(
    ("path", "among"),
    [
        ("app/__snapshots__/a.test.ts.snap", True),
        ("src/snapshots/crate__it.snap", True),
        ("tests/__snapshots__/test_a.ambr", True),
        ("pkg/testdata/out.golden", True),
        ("conftest.py", True),
        ("src/__mocks__/fs.js", True),
        ("test-data/x.json", True),
        ("src/latest/app.py", False),
        ("src/contest/app.json", False),
        ("greet.py", False),
    ],
)
def test_files_are_known_by_custom(path: str, among: bool) -> None:
    assert lies_among_tests(path) == among
