"""Tests of one tree over the code of another, in real trees: nothing of either is lost or brought along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from runs.real import alone
from steps.ground import CARGO, PYTEST, Ground, ground

from pipeline.testing.measure.composed_trees import compose, with_other_code, with_other_regions

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

LIB = "pub fn f() -> u8 { 1 }\n"
MADE = "pub fn f() -> u8 { g() }\nfn g() -> u8 { 2 }\n"
FILES = {"Cargo.toml": "[package]\n", "src/lib.rs": LIB, "tests/a.rs": "// old\n", "src/other.rs": "fn o() {}\n"}


def region(says: str) -> str:
    return f"\n#[cfg(test)]\nmod tests {{ /* {says} */ }}\n"


@pytest.fixture
def rust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    alone(monkeypatch, tmp_path / "home")
    return ground(tmp_path, FILES, rust=True)


def test_a_file_of_both_is_put_together_and_others_are_taken_whole(rust: Ground) -> None:
    red = rust.tree({"src/lib.rs": LIB + region("new"), "tests/a.rs": "// new\n", "tests/data.txt": "1\n"})
    candidate = rust.tree({"src/lib.rs": MADE + region("old"), "src/other.rs": "fn o() { 1 }\n"})
    paths = ["src/lib.rs", "tests/a.rs", "tests/data.txt"]
    made = compose(rust, red, candidate, paths, CARGO)
    assert made.whole == ()
    assert rust.text(made.tree, "src/lib.rs") == MADE + region("new")
    assert rust.text(made.tree, "src/other.rs") == "fn o() { 1 }\n"
    assert (rust.text(made.tree, "tests/a.rs"), rust.text(made.tree, "tests/data.txt")) == ("// new\n", "1\n")


def test_over_code_that_is_the_same_the_tree_is_the_tests_tree(rust: Ground) -> None:
    red = rust.tree({"src/lib.rs": LIB + region("new"), "tests/a.rs": None})
    assert compose(rust, red, rust.start, ["src/lib.rs", "tests/a.rs"], CARGO).tree == red
    assert compose(rust, red, red, ["src/lib.rs"], CARGO).tree == red
    assert compose(rust, red, rust.start, [], CARGO).tree == rust.start


def test_code_that_only_one_tree_has_stays_there(rust: Ground) -> None:
    red = rust.tree({"src/new.rs": "fn n() {}\n" + region("new"), "src/code.rs": "fn c() {}\n", "src/lib.rs": None})
    made = compose(rust, red, rust.start, ["src/new.rs", "src/code.rs", "src/lib.rs"], CARGO)
    assert rust.text(made.tree, "src/new.rs") == region("new").lstrip()
    assert rust.text(made.tree, "src/code.rs") is None
    assert rust.text(made.tree, "src/lib.rs") == LIB


def test_what_cannot_be_put_together_is_the_tests_file_and_is_told(rust: Ground) -> None:
    red = rust.tree({"src/lib.rs": LIB + region("new")})
    candidate = rust.tree({"src/lib.rs": 'fn f() { "a"r#""#; }\n', "src/other.rs": "fn p() {}\n"})
    made = compose(rust, red, candidate, ["src/lib.rs"], CARGO)
    (told,) = made.whole
    assert told.startswith("src/lib.rs: line 1 of the production file has a literal")
    assert rust.text(made.tree, "src/lib.rs") == LIB + region("new")
    assert rust.text(made.tree, "src/other.rs") == "fn p() {}\n"


def test_a_link_or_another_language_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, tmp_path / "home")
    python = ground(tmp_path, {"app.py": "a = 1\n", "tests/test_app.py": "old\n"})
    red = python.tree({"app.py": "a = 2\n", "tests/test_app.py": "new\n"})
    made = compose(python, red, python.start, ["tests/test_app.py"], PYTEST)
    assert (python.text(made.tree, "app.py"), python.text(made.tree, "tests/test_app.py")) == ("a = 1\n", "new\n")


def test_what_differs_in_tests_and_what_in_code(rust: Ground) -> None:
    tests = rust.tree({"src/lib.rs": LIB + region("new"), "tests/a.rs": "// new\n"})
    code = rust.tree({"src/lib.rs": MADE, "src/other.rs": "fn p() {}\n", "src/odd.rs": '"a"r#""#\n'})
    both = rust.tree({"src/lib.rs": MADE + region("new")})
    paths = ["src/lib.rs", "src/other.rs", "src/odd.rs", "tests/a.rs"]
    assert with_other_regions(rust, rust.start, tests, paths, CARGO) == ("src/lib.rs",)
    assert with_other_regions(rust, rust.start, code, paths, CARGO) == ("src/odd.rs",)
    assert with_other_code(rust, rust.start, tests, paths, CARGO) == ()
    assert set(with_other_code(rust, rust.start, code, ["src/lib.rs"], CARGO)) == {*paths} - {"tests/a.rs"}
    assert with_other_code(rust, rust.start, both, paths, CARGO) == ("src/lib.rs",)
