"""Repositories and projects of many shapes: filters, hidden files, submodules, environments; nothing is lost."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from e2e import zoo
from e2e.shapes import (
    NOBODY,
    TRACKER,
    answers,
    changed,
    dispatches,
    done,
    evidence,
    install_editable,
    make_environment,
    stdout_of,
)
from kit import FILES, GREET, GREET_DONE, HONEST, WITH_PLUGINS, Entry, Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.broad]

PYTEST_INI = {"pyproject.toml": FILES["pyproject.toml"]}
TEST_GREET = "from greet import greet\n\n\ndef test_greets():\n    assert greet('a')\n"
TEST_NEEDS = """import json
import pathlib
import sys

TOP = pathlib.Path(__file__).parents[1]


def test_the_submodule():
    sys.path.insert(0, str(TOP / "vendor"))
    import words

    assert words.HELLO == "Hello"


def test_the_settings():
    assert json.loads((TOP / "settings.json").read_text()) == {"mine": 1}


def test_the_link():
    assert (TOP / "link.py").read_text() == (TOP / "greet.py").read_text()
"""
TEST_DATA = """import pathlib

TOP = pathlib.Path(__file__).parents[1]


def test_the_model():
    assert "stored" not in (TOP / "src/model.bin").read_text()


def test_a_file_outside_the_sparse_checkout():
    assert (TOP / "docs/readme.txt").exists()
"""


def test_submodules_ignored_and_hidden_files_are_where_they_are_needed(tmp_path: Path) -> None:
    project = make_project(tmp_path, {**PYTEST_INI, **TRACKER, "greet.py": GREET})
    (tmp_path / "inner").mkdir()
    vendor = make_project(tmp_path / "inner", {"words.py": "HELLO = 'Hello'\n"})
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(vendor.root), "vendor")
    files = {
        # greet.py is tracked although it is ignored; the settings are ignored, and only the tests need them
        ".gitignore": "greet.py\nsettings.json\n",
        ".worktreeinclude": "settings.json\n",
        "tests/test_greet.py": TEST_GREET,
        "tests/test_needs.py": TEST_NEEDS,
    }
    project.write(files)
    (project.root / "link.py").symlink_to("greet.py")
    project.commit("more")
    project.write({"settings.json": '{"mine": 1}\n'})
    # the user hides what the task creates
    excludes = project.home / "hidden"
    excludes.write_text("notes/\n", encoding="utf-8")
    (project.home / ".gitconfig").write_text(f"[core]\n\texcludesFile = {excludes}\n", encoding="utf-8")
    code = {"greet.py": GREET_DONE, "notes/größe.md": "Names are needed.\n"}
    look = ["sh", "-c", "ls vendor; cat .gitmodules; ls -A"]
    project.use_script(answers(["greet.py", *files], {"tests/test_greet.py": TEST_GREET + NOBODY}, code, run=look))
    module = project.git("rev-parse", "HEAD:vendor")

    refused = project.run()
    assert (refused["_code"], refused["error"]["kind"]) == (2, "untrusted")
    assert ".worktreeinclude" in refused["error"]["message"]
    assert project.redfirst("trust", "--yes").returncode == 0

    done(project)

    assert changed(project, "HEAD~1") == ["greet.py", "notes/größe.md", "tests/test_greet.py"]
    assert project.git("rev-parse", "HEAD:vendor") == module
    assert (project.root / "vendor" / "words.py").exists()
    assert (project.root / "notes" / "größe.md").read_text() == "Names are needed.\n"
    assert (project.root / "settings.json").exists()
    outcomes = evidence(project, "baseline.json")["outcomes"]
    assert set(outcomes.values()) == {"passed"}
    assert len(outcomes) == 4
    seen = stdout_of(dispatches(project, "implement-make")[0])
    assert "words.py" in seen
    assert "settings.json" in seen, "agents run what is measured"


def fake_lfs(project: Project) -> None:
    """Configure a filter that, as git-lfs does, stores something else than lies in the worktree."""
    project.git("config", "filter.lfs.clean", "sed 's/^/stored: /'")
    project.git("config", "filter.lfs.smudge", "sed 's/^stored: //'")
    project.git("config", "filter.lfs.required", "true")


def test_filters_line_ends_and_a_sparse_checkout_are_those_of_the_user(tmp_path: Path) -> None:
    files = {
        ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
        "src/greet.py": GREET,
        "src/model.bin": "one\n",
        "extra/far.py": "FAR = 1\n",
        "docs/readme.txt": "read\nme\n",
        "tests/test_greet.py": TEST_GREET,
        "tests/test_data.py": TEST_DATA,
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
        **TRACKER,
    }
    project = make_project(tmp_path, {"README.md": "A project.\n"})
    project.git("config", "core.autocrlf", "true")
    fake_lfs(project)
    project.write(files)
    project.commit("files")
    project.git("rm", "-r", "--quiet", "--cached", ".")
    project.git("reset", "--quiet", "--hard")  # line ends as git writes them
    project.git("sparse-checkout", "set", "src", "tests", "TODO")
    code = {"src/greet.py": GREET_DONE, "src/model.bin": "one\ntwo\n", "extra/far.py": "FAR = 2\n"}
    look = ["python", "-c", "print(open('docs/readme.txt', 'rb').read())"]
    project.use_script(answers(files, {"tests/test_greet.py": TEST_GREET + NOBODY}, code, run=look))

    done(project)

    assert changed(project, "HEAD~1") == ["extra/far.py", "src/greet.py", "src/model.bin", "tests/test_greet.py"]
    assert project.git("cat-file", "-p", "HEAD:src/model.bin") == "stored: one\nstored: two"
    assert (project.root / "src" / "model.bin").read_text() == "one\ntwo\n"
    assert "\r" not in project.git("cat-file", "-p", "HEAD:src/greet.py")
    assert (project.root / "src" / "greet.py").read_bytes() == GREET_DONE.replace("\n", "\r\n").encode()
    assert not (project.root / "docs").exists()
    assert not (project.root / "extra").exists()
    assert project.git("cat-file", "-p", "HEAD:extra/far.py") == "FAR = 2"
    assert r"read\r\nme\r\n" in stdout_of(dispatches(project, "implement-make")[0])


def redrafted(first: list[Entry], *paths: str) -> list[Entry]:
    """Return the answers with a first split, and a first plan, that name these paths as well."""
    more = json.loads(json.dumps(first[3]))
    more["report"]["tasks"][0]["files"] += [{"path": path, "action": "modify"} for path in paths]
    return [*first[:3], more, *first[3:]]


@pytest.mark.parametrize("driver", [True, False], ids=["lfs is set up", "lfs is not set up"])
def test_a_task_may_not_name_a_path_whose_filter_is_not_ours_to_run(driver: bool, tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 3\n"
    files = {
        **PYTEST_INI,
        ".gitattributes": "*.key filter=crypt\n*.bin filter=lfs -text\n",
        "greet.py": GREET,
        "a.key": "secret\n",
        "model.bin": pointer,
        "tests/test_greet.py": TEST_GREET,
        **TRACKER,
    }
    project = make_project(tmp_path, {"README.md": "A project.\n"})
    if driver:
        fake_lfs(project)
    project.write(files)
    project.commit("files")
    honest = answers(files, {"tests/test_greet.py": TEST_GREET + NOBODY}, {"greet.py": GREET_DONE})
    # nor may @test put one beside its tests, which no split can foresee
    hasty = {**honest[5], "files": {**honest[5]["files"], "tests/test_x.key": "secret\n"}}
    script = redrafted([*honest[:5], hasty, *honest[5:]], "a.key", *([] if driver else ["model.bin"]))
    project.use_script(script)

    result = done(project)

    sanity = next(line["data"]["event"]["note"] for line in project.journal() if line["kind"] == "decision")
    assert "no agent can change a.key, which goes through the git filter 'crypt'" in sanity
    problems = "\n".join(path.read_text() for path in project.run_folder().rglob("*hygiene*") if path.is_file())
    assert "H015" in problems
    assert "a.key" in problems
    assert "crypt" in problems
    assert ("model.bin" in problems) is not driver
    assert result["tasks"][0]["state"] == "done"
    refused, _ = dispatches(project, "write-tests-test")
    (violation,) = json.loads((refused / "result.json").read_text(encoding="utf-8"))["violations"]
    assert (violation["path"], violation["rule"]) == ("tests/test_x.key", "git-filter")
    assert (project.root / "model.bin").read_text() == pointer


def add_oddities(root: Path) -> None:
    """Add what git can hold and tools stumble over: names that are no text, links to nowhere, twins but for case."""
    (root / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"")
    (root / "two\nlines.txt").write_bytes(b"")
    (root / "loop").symlink_to("loop")
    (root / "nowhere").symlink_to("/there/is/nothing")
    (root / "link").symlink_to("tests")
    (root / "README").write_bytes(b"a")
    (root / "readme").write_bytes(b"b")
    (root / "__pycache__").mkdir()
    (root / "__pycache__" / "greet.cpython-311.pyc").write_bytes(b"tracked by mistake")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "script.sh").write_bytes(b"#!/bin/sh\n")
    (root / "deep" / "er" / "script.sh").chmod(0o755)


def test_odd_names_in_a_linked_worktree_of_a_bare_repository(tmp_path: Path) -> None:
    origin = make_project(tmp_path, FILES)
    add_oddities(origin.root)
    origin.commit("oddities")
    origin.git("branch", "--quiet", "--force", "main", "work")
    origin.git("switch", "--quiet", "main")
    origin.git("branch", "--quiet", "--delete", "work")
    bare = tmp_path / "bare.git"
    origin.git("clone", "--quiet", "--bare", str(origin.root), str(bare))
    project = Project(tmp_path / "the work tree", origin.home)
    origin.git("worktree", "add", "--quiet", "-b", "work", str(project.root), "main", cwd=bare)
    project.git("config", "user.name", "Ada")
    project.git("config", "user.email", "ada@example.org")
    project.use_script(HONEST)
    before = project.files_at("HEAD")

    ended = project.redfirst("run", "GAL-1", cwd=project.root / "deep" / "er")

    assert ended.returncode == 0, ended.stderr
    assert project.git("status", "--porcelain") == ""
    assert project.files_at("HEAD") == before
    assert changed(project, "HEAD~1") == ["greet.py", "tests/test_greet.py"]


# --- each is measured with its own code and its own settings ----------------------------------------------------------

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


def test_a_project_without_any_test_gets_its_first(tmp_path: Path) -> None:
    files = {"greet.py": GREET, "pyproject.toml": "[project]\nname = 'greet'\nversion = '1'\n", **TRACKER}
    project = make_project(tmp_path, files)
    first = {"tests/test_greet.py": "from greet import greet\n" + NOBODY}
    project.use_script(answers(files, first, {"greet.py": GREET_DONE}))

    done(project)

    assert evidence(project, "baseline.json")["outcomes"] == {}
    assert list(evidence(project, "task-1.json")["ledger"]["red"]) == ["tests/test_greet.py::test_nobody"]
