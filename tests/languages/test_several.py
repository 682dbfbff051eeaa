"""Python and Rust in one repository: what each runner shows, together; nothing is lost and nothing is mixed up."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from languages import crates, direct
from languages.direct import write
from languages.measured import measure_copy, outcomes, working_box

from pipeline.config.model import Toolchain as Table
from pipeline.judge.evidence.observation import Ended, Layout, Observation, RunState
from pipeline.judge.evidence.red_classes import Symbol
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.projects.combined import (
    Projects,
    SeveralEnvironment,
    for_files,
    missing_for,
    projects_in,
)
from pipeline.testing.languages.projects.project import Project
from pipeline.testing.languages.protocol import Environment, Lookup, Missing, Selection
from pipeline.testing.languages.table import LANGUAGES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.process import Box, Command, Completed

FILES = {
    "greet.py": "def greet(name):\n    return f'Hello, {name}!'\n",
    "tests/test_greet.py": """
        from greet import greet

        def test_says_hello():
            assert greet("Ada") == "Hello, Ada!"

        def test_says_bye():
            assert greet("Ada") == "Bye, Ada!"
        """,
    "Cargo.toml": crates.MANIFEST,
    "src/lib.rs": "pub fn two() -> i32 {\n    2\n}\n",
    "tests/two.rs": """
        #[test]
        fn is_two() {
            assert_eq!(greet::two(), 2);
        }

        #[test]
        fn is_three() {
            assert_eq!(greet::two(), 3);
        }
        """,
}
HELLO, BYE = "tests/test_greet.py::test_says_hello", "tests/test_greet.py::test_says_bye"
TWO, THREE = "greet::test/two::is_two", "greet::test/two::is_three"


class Counting(NoBox):
    """No box, that counts which runners are started in it."""

    def __init__(self) -> None:
        super().__init__()
        self.started: Counter[str] = Counter()

    async def run(self, command: Command) -> Completed:
        self.started["cargo" if b'"cargo"' in (command.request or b"") else "pytest"] += 1
        return await super().run(command)


def both(**limits: Table) -> Projects:
    return Projects(
        [Project(LANGUAGES[name].toolchain, table=limits.get(name, Table())) for name in ("pytest", "cargo")]
    )


def environment() -> SeveralEnvironment:
    parts = {"pytest": direct.environment(), "cargo": crates.environment()}
    first = parts["pytest"]
    return SeveralEnvironment(first.command, first.mounts, first.prefix, (), parts=parts)


def measure(toolchain: Projects, root: Path, selection: Selection | None = None, box: Box | None = None) -> Observation:
    return measure_copy(toolchain, root, environment(), selection=selection, box=box)


@crates.needs_cargo
def test_all_tests_of_both_languages_are_one_observation(tmp_path: Path) -> None:
    seen = measure(both(), write(tmp_path / "view", FILES))
    assert outcomes(seen) == {HELLO: Ended.PASSED, BYE: Ended.FAILED, TWO: Ended.PASSED, THREE: Ended.FAILED}
    assert seen.state is RunState.COMPLETE
    assert seen.files.keys() == {"tests/test_greet.py", "tests/two.rs"}
    assert " ".join(seen.command) == f"{sys.executable} -m pytest ; cargo test --workspace"
    assert "== pytest ==" in seen.tail
    assert "== cargo ==" in seen.tail
    assert seen.layout.is_test("tests/new.rs")
    assert not seen.layout.is_test("src/lib.rs")
    fault = seen.records[THREE].fault
    assert fault is not None
    assert fault.last_own_frame is not None
    assert fault.last_own_frame.path == "tests/two.rs"


@crates.needs_cargo
@pytest.mark.broad
def test_what_a_selection_does_not_touch_is_listed_and_not_run_again(tmp_path: Path) -> None:
    root, toolchain, box = write(tmp_path / "view", FILES), both(), Counting()
    first = measure(toolchain, root, Selection(ids=frozenset({BYE})), box=box)
    assert outcomes(first) == {HELLO: None, BYE: Ended.FAILED, TWO: None, THREE: None}
    assert box.started["cargo"] == 2, "its tests are listed once: compiled in one box, listed in another"
    write(root, {"greet.py": "def greet(name):\n    return f'Bye, {name}!'\n"})
    second = measure(toolchain, root, Selection(ids=frozenset({BYE})), box=box)
    assert outcomes(second) == {HELLO: None, BYE: Ended.PASSED, TWO: None, THREE: None}
    assert second.files == first.files
    assert box.started["cargo"] == 2, "Python sources say nothing about Rust's tests"
    write(root, {"src/lib.rs": "pub fn two() -> i32 {\n    3\n}\n"})
    third = measure(toolchain, root, Selection(files=frozenset({"tests/test_greet.py"})), box=box)
    assert outcomes(third) == {HELLO: Ended.FAILED, BYE: Ended.PASSED, TWO: None, THREE: None}
    assert box.started["cargo"] == 4, "its own sources do"
    fourth = measure(toolchain, root, Selection(ids=frozenset({THREE})), box=box)
    assert outcomes(fourth) == {HELLO: None, BYE: None, TWO: None, THREE: Ended.PASSED}
    pytest_runs = box.started["pytest"]
    measure(toolchain, root, Selection(ids=frozenset({TWO})), box=box)
    assert box.started["pytest"] == pytest_runs
    measure(toolchain, root, box=box)
    assert box.started["pytest"] == pytest_runs + 1, "a whole run believes no memory"


@crates.needs_cargo
@pytest.mark.parametrize("kind", ["nobox", "bubblewrap"])
@pytest.mark.broad
def test_tests_of_one_language_cannot_change_what_is_measured_of_the_other(tmp_path: Path, kind: str) -> None:
    box = NoBox() if kind == "nobox" else working_box()
    forged = """
        import pathlib

        def test_makes_the_other_pass():
            for path in pathlib.Path().rglob("lib.rs"):
                path.write_text("pub fn two() -> i32 { 3 }")
            assert "3" in pathlib.Path("src/lib.rs").read_text()
        """
    seen = measure(both(), write(tmp_path / "view", {**FILES, "tests/test_forged.py": forged}), box=box)
    assert seen.records["tests/test_forged.py::test_makes_the_other_pass"].outcome is Ended.PASSED, seen.tail
    assert (seen.records[TWO].outcome, seen.records[THREE].outcome) == (Ended.PASSED, Ended.FAILED), seen.tail


@crates.needs_cargo
@pytest.mark.broad
def test_a_broken_manifest_is_the_projects_fault_and_the_other_runner_is_still_seen(tmp_path: Path) -> None:
    seen = measure(both(), write(tmp_path / "view", {**FILES, "Cargo.toml": "[package\n"}))
    assert seen.state is RunState.UNUSABLE
    assert seen.detail.startswith("cargo: ")
    assert 'leave it out: [toolchains] use = ["pytest"]' in seen.detail
    assert [error.path for error in seen.collection_errors] == ["Cargo.toml"]
    assert outcomes(seen) == {HELLO: Ended.PASSED, BYE: Ended.FAILED}
    assert seen.environment_problem is None


# --- which parts there are -------------------------------------------------------------------------------------------


def find(parts: list[Project], tmp_path: Path, path: str) -> Environment | Missing:
    return direct.environments(Projects(parts), Lookup(tmp_path, tmp_path, None, tmp_path / "state", path))


def python_only(tmp_path: Path) -> str:
    """Return a PATH with a python that has pytest, and no cargo."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").write_text(f'#!/bin/sh\nexec {direct.environment().command[0]} "$@"\n')
    (folder / "python3").chmod(0o755)
    return str(folder)


def part(name: str, *, asked: bool = False) -> Project:
    return Project(LANGUAGES[name].toolchain, table=Table(), asked=asked)


@pytest.mark.broad
def test_one_that_is_missing_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    env = find([part("pytest"), part("cargo")], tmp_path, python_only(tmp_path))
    assert isinstance(env, SeveralEnvironment), env
    assert list(env.parts) == ["pytest"]
    assert "rustup.rs" in env.left_out["cargo"]
    toolchain = Projects([part("pytest"), part("cargo")])
    assert missing_for(toolchain, env, ["greet.py", "README.md"]) is None
    assert "src/lib.rs is measured with cargo" in (missing_for(toolchain, env, ["greet.py", "src/lib.rs"]) or "")


def test_one_that_is_asked_for_must_be_there(tmp_path: Path) -> None:
    found = find([part("pytest"), part("cargo", asked=True)], tmp_path, python_only(tmp_path))
    assert isinstance(found, Missing)
    assert found.sentence.startswith("cargo, which the configuration asks for: ")


def test_without_any_every_one_says_why(tmp_path: Path) -> None:
    found = find([part("pytest"), part("cargo")], tmp_path, str(tmp_path))
    assert isinstance(found, Missing)
    assert "pytest: " in found.sentence
    assert "cargo: " in found.sentence


# --- what belongs to which -------------------------------------------------------------------------------------------


def test_files_belong_to_the_language_of_their_ending_and_folder() -> None:
    rust, python = LANGUAGES["cargo"].toolchain, LANGUAGES["pytest"].toolchain
    below = Project(rust, "rust", Table())
    toolchain, single = Projects([part("pytest"), below]), Projects([below])
    assert toolchain.name == "pytest+cargo"
    assert for_files(toolchain, ["rust/src/a.rs", "README.md"]) == (rust,)
    assert for_files(toolchain, ["a.py", "rust/src/a.rs"]) == (python, rust)
    assert not below.owns("src/a.rs")
    assert for_files(single, ["a.py"]) == (rust,)
    assert [one.toolchain for one in projects_in(toolchain)] == [python, rust]
    assert projects_in(single) == (below,)
    assert projects_in(rust) == (Project(rust),)


def test_stubs_are_made_by_the_language_of_the_file() -> None:
    files = {"a.py": "def f():\n    return 1\n", "src/lib.rs": "pub fn g() -> i32 {\n    2\n}\n"}
    toolchain = both()
    symbols = [Symbol("a.py", "f"), Symbol("src/lib.rs", "g"), Symbol("", "nowhere"), Symbol("x.txt", "h")]
    stubbed = toolchain.stub_symbols(files, symbols)
    assert "raise NotImplementedError" in stubbed.files["a.py"]
    assert "todo!()" in stubbed.files["src/lib.rs"]
    assert stubbed.unknown == (Symbol("", "nowhere"), Symbol("x.txt", "h"))
    assert {symbol.name for symbol in toolchain.introduced({}, files)} == {"f", "g"}
    faults = toolchain.stub_faults({}, files, [Symbol("a.py", "f"), Symbol("src/lib.rs", "g")])
    assert {fault.path for fault in faults} == {"a.py", "src/lib.rs"}


def test_paths_are_judged_by_the_language_they_belong_to() -> None:
    seen = Observation(
        state=RunState.COMPLETE, layout=Layout(testpaths=(".",), python_files=("tests/test_*.py", "tests/*.rs"))
    )
    toolchain = both()
    assert toolchain.is_test_path("src/lib.rs", seen), "a Rust source may have test modules"
    assert toolchain.is_test_path("tests/test_a.py", seen)
    assert not toolchain.is_test_path("greet.py", seen)
    assert toolchain.is_control_path("conftest.py")
    assert toolchain.is_control_path("Cargo.toml")
