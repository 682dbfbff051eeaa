"""Tests of one tree over the code of another, in real trees: nothing is lost, and what tests stand on is pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from evidence.observed import NO_IMPORT, context
from runs.real import alone, git
from steps.ground import CARGO, PYTEST, Ground, ground

from pipeline.judge.evidence.classify import classify_collection
from pipeline.judge.evidence.observation import CollectionError, Ended, Observation, RunState, TestRecord
from pipeline.judge.evidence.red_classes import RedClass
from pipeline.judge.policy.paths import lies_among_tests
from pipeline.judge.policy.rights import Action, Change, ChangeKind, Grant, TestScope, judge
from pipeline.judge.policy.roles import Writes
from pipeline.steps.evidence.impact import graph_of
from pipeline.testing.measure.composed_trees import compose, with_other_code, with_other_regions
from pipeline.testing.measure.old_tests import PinnedChanges, pinned_changes
from pipeline.testing.measure.red import with_undeclared
from pipeline.testing.measure.revert import Red

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


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


# --- what may not move between RED and GREEN --------------------------------------------------------------------------

CODE = "pub fn f() -> u8 { 1 }\n"
TESTS = "\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn it() { assert_eq!(super::f(), 1); }\n}\n"
MORE = TESTS.replace("mod tests", "mod more")
PINNED = {
    "Cargo.toml": "[package]\n",
    "src/lib.rs": CODE + TESTS,
    "src/a.rs": CODE,
    "tests/a.rs": "// old\n",
    "tests/data/in.json": "{}\n",
}


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    alone(monkeypatch, tmp_path / "home")
    return ground(tmp_path, PINNED, rust=True)


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
def test_work_on_the_code_moves_nothing(pinned: Ground, files: dict[str, str | None]) -> None:
    assert asked(pinned, files, *files) == PinnedChanges()


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
def test_leave_for_code_is_none_for_its_tests(pinned: Ground, files: dict[str, str | None], told: str | None) -> None:
    found = asked(pinned, files, *files)
    assert found.holds is (told is None)
    assert told is None or told in found.regions[0]


def test_a_file_that_cannot_be_read_for_certain_is_told(pinned: Ground) -> None:
    found = asked(pinned, {"src/lib.rs": f'{CODE}fn s() {{ "a"r#""#; }}\n{TESTS}'}, "src/lib.rs")
    assert found.holds
    assert "src/lib.rs: line 2 has a literal with a suffix" in found.unsure[0]


def test_what_controls_tests_is_told_if_named_and_refused_if_not(pinned: Ground) -> None:
    files: dict[str, str | None] = {"Cargo.toml": "[features]\n", ".cargo/config.toml": "x\n", "src/a.rs": "// a\n"}
    control = "controls how tests are built or run"
    assert asked(pinned, files).support == (f".cargo/config.toml {control}", f"Cargo.toml {control}")
    named = asked(pinned, files, "Cargo.toml", ".cargo/config.toml", "src/a.rs")
    assert named.holds
    assert named.controls == (f".cargo/config.toml {control}", f"Cargo.toml {control}")


def test_what_serves_tests_is_pinned_too(pinned: Ground) -> None:
    files: dict[str, str | None] = {
        "tests/a.rs": None,
        "tests/data/in.json": "[]\n",
        "tests/common/mod.rs": "// new\n",
        "src/snapshots/a.snap": "1\n",
        "testdata/x": "1\n",
    }
    found = asked(pinned, files)
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


# --- tests beside code that production does not have: RED on credit ---------------------------------------------------

ABSENT = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {}\n}\n"
FILE = "src/polite.rs"
TEST = "greet::lib::polite::tests::a"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    alone(monkeypatch, tmp_path / "home")


def seen(*records: TestRecord, errors: tuple[CollectionError, ...] = ()) -> Observation:
    return Observation(
        state=RunState.COMPLETE,
        records={record.id: record for record in records},
        collection_errors=errors,
        layout=CARGO,
    )


def record(path: str, outcome: Ended | None = Ended.PASSED) -> TestRecord:
    return TestRecord(id=TEST, function=TEST, path=path, region_sha256="", outcome=outcome)


def absent(folder: Path, observation: Observation, *paths: str) -> list[str]:
    place = ground(folder, {"src/lib.rs": "", "src/there.rs": ""}, rust=True)
    composed = place.tree({FILE: ABSENT, "src/there.rs": ABSENT, "tests/a.rs": ABSENT})
    found = with_undeclared(place, observation, composed, place.start, paths)
    return [error.path for error in found.collection_errors]


def test_a_file_that_production_does_not_have_and_nothing_compiles_is_an_error(tmp_path: Path) -> None:
    assert absent(tmp_path / "a", seen(), FILE, "src/there.rs", "tests/a.rs", "src/nowhere.rs", TEST) == [FILE]
    assert absent(tmp_path / "b", seen(record(FILE)), FILE) == [], "it is compiled"
    known = CollectionError(path=FILE, fault=NO_IMPORT)
    assert absent(tmp_path / "c", seen(errors=(known,)), FILE) == [FILE], "the compiler said more"
    assert absent(tmp_path / "d", seen().model_copy(update={"state": RunState.UNUSABLE}), FILE) == []


def test_it_is_red_where_a_task_brings_the_file(tmp_path: Path) -> None:
    place = ground(tmp_path, {"src/lib.rs": ""}, rust=True)
    (error,) = with_undeclared(place, seen(), place.tree({FILE: ABSENT}), place.start, [FILE]).collection_errors
    base = context("src/lib.rs")
    named = type(base)(base.symbols, base.existing, CARGO, base.names, task_files=frozenset({FILE}))
    found = classify_collection(error, named)
    assert (found.cls, found.legal) == (RedClass.MISSING_BEHAVIOR, True)
    assert not classify_collection(error, base).legal, "nobody is to write that file"
    stubbed = type(base)(base.symbols, base.existing, CARGO, base.names, task_files=frozenset({FILE}), stubbed=True)
    assert not classify_collection(error, stubbed).legal, "the stubs have it, or should"


def test_where_a_test_stands_is_said_by_its_record_and_not_by_its_id() -> None:
    fault = NO_IMPORT.model_copy(update={"missing": None})
    red = Red("abc", seen(errors=(CollectionError(path=FILE, fault=fault),)), context(), (".rs",))
    assert red.of(TEST) is None
    known = Red(red.production, red.observation, red.context, red.sources, {TEST: record(FILE)})
    found, by_file = known.of(TEST), known.of(FILE)
    assert found is not None
    assert found.cls is RedClass.TEST_BROKEN
    assert by_file == found


# --- what the code of a tree mentions ---------------------------------------------------------------------------------

MENTIONS = {
    "core.py": "VALUE = 1\n",
    "tests/test_core.py": "import core\n",
    "tests/test_odd.py": "import core # \x80\n",
    "broken.py": "def (\n",
    "notes.txt": "import core\n",
}


def test_a_tree_has_the_mentions_of_its_code(tmp_path: Path) -> None:
    place = ground(tmp_path, MENTIONS)
    graph = graph_of(place.repository, place.start)
    assert {path: set(used) for path, used in graph.items()} == {
        "broken.py": set(), "core.py": set(), "tests/test_core.py": {"core.py"}, "tests/test_odd.py": {"core.py"},
    }  # fmt: skip
    other = place.tree({"broken.py": None, "tests/test_core.py": "import json\n"})
    assert graph_of(place.repository, other)["tests/test_core.py"] == frozenset()


def test_a_link_is_no_source(tmp_path: Path) -> None:
    place = ground(tmp_path, MENTIONS)
    (place.repository.worktree / "link.py").symlink_to("core.py")
    git(place.repository.worktree, "add", "link.py")
    tree = git(place.repository.worktree, "write-tree")
    assert "link.py" not in graph_of(place.repository, tree)


def test_too_much_code_is_not_read(tmp_path: Path) -> None:
    place = ground(tmp_path, {"core.py": "x = 1\n" * 1_500_000, "tests/test_core.py": "import core\n"})
    assert graph_of(place.repository, place.start) == {}
