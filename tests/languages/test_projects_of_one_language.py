"""Several projects of one language: each is measured from its own folder, as it says, and each test counts once."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from languages import direct
from languages.direct import environments, write
from languages.measured import measure_copy, outcomes

from pipeline.config.keys import parse_text
from pipeline.config.model import Toolchains
from pipeline.judge.evidence.observation import Ended, Observation
from pipeline.process import Mount
from pipeline.testing.languages.projects.combined import Projects, choose, projects_in
from pipeline.testing.languages.projects.project import Project
from pipeline.testing.languages.protocol import Cache, Environment, Lookup
from pipeline.testing.languages.table import LANGUAGES
from pipeline.testing.measure.project_tools import Kit

if TYPE_CHECKING:
    from pathlib import Path

BARE = '[tool.pytest.ini_options]\naddopts = "--disable-plugin-autoload"\n'
SETTINGS = BARE + 'pythonpath = ["src"]\ntestpaths = ["tests"]\npython_functions = ["{}_*"]\n'
TEST = "from core import NAME\n\n\ndef {0}_name():\n    assert NAME == {1!r}\n\n\ndef other_{0}():\n    assert False\n"
FILES = {
    name: text
    for one, prefix in (("a", "test"), ("b", "check"))
    for name, text in {
        f"packages/{one}/pyproject.toml": SETTINGS.format(prefix),
        f"packages/{one}/src/core.py": f"NAME = {one!r}\n",
        f"packages/{one}/tests/test_core.py": TEST.format(prefix, one),
    }.items()
}
"""Two projects with a module and a test module of one name each, and with different settings."""
IN_A, IN_B = "packages/a/tests/test_core.py::test_name", "packages/b/tests/test_core.py::check_name"
TOP = {
    "pyproject.toml": BARE + 'pythonpath = ["."]\n',
    "tests/test_core.py": "def test_top(): pass\n",
}
AT_TOP = "tests/test_core.py::test_top"


def chosen(root: Path, **tables: Any) -> Projects:
    if "pytest" in tables:
        tables["pytest"] = {"command": [sys.executable, "-m", "pytest"], **tables["pytest"]}
    tracked = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    found = choose(root, Toolchains.model_validate(tables), tracked)
    assert isinstance(found, Projects), found
    return found


def found(toolchain: Projects, root: Path) -> Environment:
    lookup = Lookup(root, root, (sys.executable, "-m", "pytest"), root / "state", os.environ["PATH"])
    env = environments(toolchain, lookup)
    assert isinstance(env, Environment), env
    return env


def measure(toolchain: Projects, root: Path, cache: Cache | None = None) -> Observation:
    return measure_copy(toolchain, root, found(toolchain, root), cache=cache)


@pytest.mark.broad
def test_a_list_of_folders_is_a_project_each_with_its_own_settings(tmp_path: Path) -> None:
    toolchain = chosen(write(tmp_path, FILES), pytest={"folder": ["packages/a", "packages/b"]})
    assert [(one.key, one.folder) for one in toolchain.projects] == [
        ("pytest in packages/a", "packages/a"),
        ("pytest in packages/b", "packages/b"),
    ]
    cache = Cache(tmp_path / "cache", warm=True)
    cache.folder.mkdir()
    seen = measure(toolchain, tmp_path, cache=cache)
    assert outcomes(seen) == {IN_A: Ended.PASSED, IN_B: Ended.PASSED}, seen.tail
    assert seen.files.keys() == {"packages/a/tests/test_core.py", "packages/b/tests/test_core.py"}
    assert seen.collection_errors == ()
    assert len(list(cache.folder.iterdir())) == 2, "each has a cache of its own"


def test_what_a_nested_project_has_counts_once_and_is_the_nearest_ones(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, **TOP})
    toolchain = chosen(tmp_path, pytest={"folder": [".", "packages/a", "packages/b"]})
    seen = measure(toolchain, tmp_path)
    assert outcomes(seen) == {AT_TOP: Ended.PASSED, IN_A: Ended.PASSED, IN_B: Ended.PASSED}, seen.tail
    assert seen.collection_errors == (), "test modules of one name do not meet"
    top, a, _ = toolchain.projects
    assert toolchain.for_files(["packages/a/src/core.py"]) == (a,)
    assert toolchain.for_files(["x.py"]) == (top,)


@pytest.mark.broad
def test_an_agent_runs_each_test_in_the_nearest_project(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, **TOP})
    python = LANGUAGES["pytest"].toolchain
    toolchain = Projects([Project(python, folder) for folder in ("", "packages/a", "packages/b")])
    kit = Kit(tuple((one, direct.environment()) for one in projects_in(toolchain)))
    argv = kit.tools(Mount(tmp_path, tmp_path, writable=True)).test_command

    def asked(*ids: str) -> str:
        done = subprocess.run([*argv, *ids], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "(in packages/b)" in asked(IN_B)
    assert asked(AT_TOP).count("passed") == 1
    assert asked().count("1 passed") == 3


def test_a_single_project_keeps_its_names(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    for folder in ("packages/a", ["packages/a"]):
        toolchain = chosen(tmp_path, pytest={"folder": folder})
        assert [one.key for one in toolchain.projects] == ["pytest"]
        assert toolchain.projects[0].nested == ()


def test_folders_are_typed_as_one_word_or_as_a_list() -> None:
    path = ("toolchains", "pytest", "folder")
    assert parse_text(path, "services/api") == "services/api"
    assert parse_text(path, '[".", "services/api"]') == [".", "services/api"]
