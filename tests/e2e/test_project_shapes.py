"""Projects of many shapes go from issue to commits, each measured with its own code and its own settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e import zoo
from e2e.shapes import (
    NOBODY,
    TRACKER,
    answers,
    dispatches,
    done,
    evidence,
    install_editable,
    make_environment,
    stdout_of,
)
from kit import GREET, GREET_DONE, WITH_PLUGINS, Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]

SRC_PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "greet"
version = "1"

[tool.hatch.build]
dev-mode-dirs = ["src"]

[tool.hatch.build.targets.wheel]
packages = ["src/greet"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""
TEST_START = """import greet


def test_the_code_is_that_of_the_start():
    assert greet.CHECKOUT == "start"
"""
TEST_NEW = """

def test_an_empty_name_is_refused():
    try:
        greet.greet("")
    except ValueError:
        return
    raise AssertionError("accepted")


def test_a_farewell():
    assert greet.farewell("Ada") == "Bye, Ada!"
"""
FAREWELL = """

def farewell(name):
    return f"Bye, {name}!"
"""
MARK = "\n\nCHECKOUT = 'start'\n"
SRC_FILES = {
    "src/greet/__init__.py": GREET + MARK,
    "tests/test_greet.py": TEST_START,
    "pyproject.toml": SRC_PROJECT,
    ".gitignore": ".venv/\n*.egg-info/\n__pycache__/\n",
    **TRACKER,
}
SRC_TESTS = {"tests/test_greet.py": TEST_START + TEST_NEW}
SRC_CODE = {"src/greet/__init__.py": GREET_DONE + FAREWELL + MARK}
SYMBOLS = [{"path": "src/greet/__init__.py", "name": "farewell", "signature": "(name)", "new": True}]
CHECK = "import greet; assert greet.CHECKOUT == 'start'"


@pytest.mark.parametrize("sandbox", ["auto", "none"])
@pytest.mark.broad
def test_in_a_linked_worktree_the_code_of_the_run_is_tested_not_the_installed_one(sandbox: str, tmp_path: Path) -> None:
    main = make_project(tmp_path, SRC_FILES)
    install_editable(make_environment(main.root / ".venv"), main.root)
    main.git("switch", "--quiet", "main")
    worktree = Project(tmp_path / "linked tree ä", main.home)
    main.git("worktree", "add", "--quiet", str(worktree.root), "work")
    # Half of the result lies in the main checkout, uncommitted: importing it would make RED pass and GREEN fail.
    main.write({"src/greet/__init__.py": GREET_DONE + "\n\nCHECKOUT = 'main'\n"})
    worktree.use_script(
        answers(SRC_FILES, SRC_TESTS, SRC_CODE, symbols=SYMBOLS, run=["python", "-m", "pytest", "-q", "-rA"]),
        extra=f'sandbox = "{sandbox}"\n[checks]\ncommands = {json.dumps([["python", "-c", CHECK]])}\n',
    )

    done(worktree)

    before = evidence(worktree, "baseline.json")
    assert before["outcomes"] == {"tests/test_greet.py::test_the_code_is_that_of_the_start": "passed"}
    assert before["failing_checks"] == {}
    red = evidence(worktree, "task-1.json")["ledger"]["red"]
    assert sorted(entry["cls"] for entry in red.values()) == ["ASSERTION_MISMATCH", "MISSING_BEHAVIOR"]
    assert "3 passed" in stdout_of(dispatches(worktree, "implement-make")[0])  # the agent's own run, too
    assert (main.root / "src/greet/__init__.py").read_text().endswith("CHECKOUT = 'main'\n")


@pytest.mark.broad
def test_a_project_with_every_sort_of_test_and_a_red_baseline_goes_through(tmp_path: Path) -> None:
    project = make_project(tmp_path, zoo.FILES)
    project.env["PATH"] = WITH_PLUGINS
    ready = {"verdict": "TESTS_READY", "tests": [{"id": zoo.GUARD, "expected": "GUARD"}]}
    project.use_script(answers(zoo.FILES, zoo.TESTS, zoo.CODE, symbols=zoo.SYMBOLS, ready=ready))

    done(project)

    before = evidence(project, "baseline.json")
    assert before["failing"] == ["tests/test_broken.py", "tests/test_red.py::test_was_red_before"]
    assert before["flaky"] == ["tests/test_state.py::test_fails_after_the_other"]
    for fine in (
        "zoo.py::zoo.greet",
        "tests/test_loud.py::test_prints_a_lot",
        "tests/test_unit.py::TestZoo::test_greet",
        "tests/test_async.py::test_waits",
        "tests/inner/test_inner.py::test_inner",
    ):
        assert before["outcomes"][fine] == "passed"
    ledger = evidence(project, "task-1.json")["ledger"]
    assert sorted(ledger["red"]) == zoo.RED
    assert list(ledger["guards"]) == [zoo.GUARD]
    assert not (project.root / ".coverage").exists()


@pytest.mark.broad
def test_a_project_without_any_test_gets_its_first(tmp_path: Path) -> None:
    files = {"greet.py": GREET, "pyproject.toml": "[project]\nname = 'greet'\nversion = '1'\n", **TRACKER}
    project = make_project(tmp_path, files)
    first = {"tests/test_greet.py": "from greet import greet\n" + NOBODY}
    project.use_script(answers(files, first, {"greet.py": GREET_DONE}))

    done(project)

    assert evidence(project, "baseline.json")["outcomes"] == {}
    assert list(evidence(project, "task-1.json")["ledger"]["red"]) == ["tests/test_greet.py::test_nobody"]
