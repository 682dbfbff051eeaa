"""Which folders of a repository are projects of their own: members of workspaces, and who says how it is tested."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from e2e.shapes import make_environment
from languages.direct import environments, write

from pipeline.config.model import Toolchains
from pipeline.judge.evidence.observation import Ended
from pipeline.process import Mount
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.testing.languages.projects.combined import Projects, choose, projects_in
from pipeline.testing.languages.protocol import Environment, Lookup, Measurement, View

if TYPE_CHECKING:
    from pathlib import Path

UV = '[project]\nname = "all"\n\n[tool.uv.workspace]\nmembers = ["packages/*"]\nexclude = ["packages/old"]\n'
SETTINGS = '[tool.pytest.ini_options]\naddopts = "--disable-plugin-autoload"\n'
MEMBER = '[project]\nname = "one"\nversion = "1"\n'
TEST = "def test_it():\n    pass\n"
IN_BOTH = {
    f"packages/{one}/{path}": text
    for one in "ab"
    for path, text in {"pyproject.toml": MEMBER, "tests/test_core.py": TEST}.items()
}
PYTHON_AT_TOP = {"tool.py": ""}
NODE = "node --test"


def package(name: str, test: str = "", **more: Any) -> str:
    return json.dumps({"name": name, "scripts": {"test": test} if test else {}, **more})


def folders(root: Path, files: dict[str, str], **tables: Any) -> list[str]:
    """Return the projects as `name:folder`, with the workspace that a folder is a member of."""
    write(root, files)
    found = choose(root, Toolchains.model_validate(tables), files)
    assert found is not None
    return [
        f"{one.name}:{one.folder}{'' if one.home is None else f' of {one.home or chr(46)}'}"
        for one in projects_in(found)
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"pyproject.toml": UV, **IN_BOTH}, ["pytest:packages/a of .", "pytest:packages/b of ."]),
        (
            {"pyproject.toml": UV, **IN_BOTH, **PYTHON_AT_TOP},
            ["pytest:", "pytest:packages/a of .", "pytest:packages/b of ."],
        ),
        # a member whose tests stand at the top is measured there
        (
            {
                "pyproject.toml": UV,
                "packages/a/pyproject.toml": MEMBER,
                "packages/a/src/a.py": "",
                "tests/test_a.py": TEST,
            },
            ["pytest:"],
        ),
        # the settings above name the tests of the members: one command at the root
        ({"pyproject.toml": UV + SETTINGS + 'testpaths = ["packages"]\n', **IN_BOTH}, ["pytest:"]),
        ({"pyproject.toml": UV + SETTINGS + 'testpaths = ["packages/*/tests"]\n', **IN_BOTH}, ["pytest:"]),
        (
            {"pyproject.toml": UV + SETTINGS + 'testpaths = ["tests"]\n', **IN_BOTH, "tests/test_core.py": TEST},
            ["pytest:", "pytest:packages/a of .", "pytest:packages/b of ."],
        ),
        # excluded members, and what is only data of tests
        ({"pyproject.toml": UV, "packages/old/pyproject.toml": MEMBER, "packages/old/test_x.py": TEST}, ["pytest:"]),
        (
            {
                "pyproject.toml": SETTINGS,
                "a.py": "",
                "tests/fixtures/x/pytest.ini": "[pytest]\n",
                "tests/pytest.ini": "",
            },
            ["pytest:"],
        ),
        # settings of their own, however they are written
        (
            {
                "pyproject.toml": SETTINGS,
                "a.py": "",
                "one/pytest.ini": "[pytest]\n",
                "two/tox.ini": "[tox]\n\n[pytest]\n",
                "three/setup.cfg": "[tool:pytest]\n",
                "four/deep/er/pyproject.toml": SETTINGS,
                "five/pyproject.toml": MEMBER,
                "six/tox.ini": "[tox]\n",
            },
            ["pytest:", "pytest:four/deep/er of .", "pytest:one of .", "pytest:three of .", "pytest:two of ."],
        ),
        # nothing at the top
        (
            {"api/pytest.ini": "[pytest]\n", "api/test_a.py": TEST, "worker/pytest.ini": "[pytest]\n", "README.md": ""},
            ["pytest:api", "pytest:worker"],
        ),
        (
            {"py/pyproject.toml": UV, **{f"py/{path}": text for path, text in IN_BOTH.items()}},
            ["pytest:py/packages/a of py", "pytest:py/packages/b of py"],
        ),
        # a broken file says nothing
        ({"pyproject.toml": "[tool.uv.workspace\n", **IN_BOTH}, ["pytest:"]),
    ],
)
def test_python(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    assert folders(tmp_path, files) == expected


MEMBERS = {"packages/a/package.json": package("a", "vitest run"), "packages/b/package.json": package("b", NODE)}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"package.json": package("all", workspaces=["packages/*"]), **MEMBERS},
            ["node:packages/a of .", "node:packages/b of ."],
        ),
        (
            {
                "package.json": package("all", "npm test --workspaces --if-present", workspaces=["packages/*"]),
                **MEMBERS,
            },
            ["node:packages/a of .", "node:packages/b of ."],
        ),
        (
            {
                "package.json": package("all", "pnpm -r test"),
                "pnpm-workspace.yaml": "packages: ['packages/*']\n",
                **MEMBERS,
            },
            ["node:packages/a of .", "node:packages/b of ."],
        ),
        # the root starts a runner itself
        ({"package.json": package("all", "vitest run", workspaces=["packages/*"]), **MEMBERS}, ["node:"]),
        # ... and its packages' scripts, too
        (
            {"package.json": package("all", "node --test test && npm test -ws", workspaces=["packages/*"]), **MEMBERS},
            ["node:", "node:packages/a of .", "node:packages/b of ."],
        ),
        # packages that say nothing are the root's
        (
            {"package.json": package("all", workspaces=["packages/*"]), "packages/a/package.json": package("a")},
            ["node:"],
        ),
        (
            {
                "web/package.json": package("all", workspaces=["packages/*"]),
                "web/packages/a/package.json": package("a", NODE),
            },
            ["node:web/packages/a of web"],
        ),
    ],
)
def test_javascript(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    assert folders(tmp_path, files) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"go.work": "go 1.21\nuse (\n ./a\n ./b\n)\n", "a/go.mod": "module a\n", "b/go.mod": "module b\n"}, ["go:"]),
        ({"Cargo.toml": '[workspace]\nmembers = ["a", "b"]\n', "a/Cargo.toml": "", "b/Cargo.toml": ""}, ["cargo:"]),
    ],
)
def test_where_one_command_at_the_root_measures_all_members_there_is_one_project(
    tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    assert folders(tmp_path, files) == expected


def test_folders_that_are_named_are_members_all_the_same(tmp_path: Path) -> None:
    files = {"pyproject.toml": UV, **IN_BOTH, "other/pytest.ini": ""}
    named = {"folder": ["packages/a", "other"]}
    assert folders(tmp_path, files, pytest=named) == ["pytest:packages/a of .", "pytest:other"]


def found_in(root: Path, **tables: Any) -> tuple[Projects, Environment]:
    tracked = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and not {"node_modules", ".venv"} & set(path.parts)
    ]
    toolchain = choose(root, Toolchains.model_validate(tables), tracked)
    assert isinstance(toolchain, Projects), toolchain
    env = environments(toolchain, Lookup(root, root, None, root.parent / "state", os.environ["PATH"]))
    assert isinstance(env, Environment), env
    return toolchain, env


def outcomes(root: Path, view: Path, **tables: Any) -> dict[str, Ended | None]:
    """Return what each test came to, measured in a copy of the project without what is installed in it."""
    toolchain, env = found_in(root, **tables)
    shutil.copytree(root, view, ignore=shutil.ignore_patterns("node_modules", ".venv"))
    measurement = Measurement(NoBox(), View(Mount(view, view, writable=True)), env)
    seen = anyio.run(toolchain.run_tests, measurement)
    assert seen.environment_problem is None, seen.environment_problem
    return {entry: record.outcome for entry, record in seen.records.items()}


@pytest.mark.slow
def test_members_of_a_uv_workspace_are_measured_with_its_environment(tmp_path: Path) -> None:
    where = """
        import sys

        from {0}_code import NAME

        def test_it():
            assert (NAME, '.venv' in sys.prefix) == ('{0}', True)
        """
    files = {"pyproject.toml": UV}
    for one in "ab":
        files |= {
            f"packages/{one}/pyproject.toml": MEMBER + SETTINGS,
            f"packages/{one}/src/{one}_code.py": f"NAME = {one!r}\n",
            f"packages/{one}/tests/test_core.py": where.format(one),
        }
    root = write(tmp_path / "project", files)
    make_environment(root / ".venv")
    assert outcomes(root, tmp_path / "view") == {
        f"packages/{one}/tests/test_core.py::test_it": Ended.PASSED for one in "ab"
    }


@pytest.mark.broad
@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="this machine has no node with npm")
def test_packages_of_an_npm_workspace_run_in_their_own_folders_and_see_what_is_installed_above(tmp_path: Path) -> None:
    body = """
        const test = require('node:test');
        const assert = require('node:assert');
        const { other } = require('b');

        test('reads beside its package', () => {
          assert.strictEqual(require('node:fs').readFileSync('data.txt', 'utf8'), 'a');
          assert.strictEqual(other, 'measured');
        });
        """
    files = {
        "package.json": package("all", "npm test --workspaces", workspaces=["packages/*"]),
        "packages/a/package.json": package("a", NODE, dependencies={"b": "*"}),
        "packages/a/data.txt": "a",
        "packages/a/test/a.test.js": body,
        "packages/b/package.json": package("b", NODE),
        "packages/b/index.js": "module.exports = { other: 'measured' };\n",
        "packages/b/test/a.test.js": "require('node:test')('b is there', () => {});\n",
    }
    root = write(tmp_path / "project", files)
    subprocess.run(
        ["npm", "install", "--offline", "--no-audit", "--no-fund"], cwd=root, check=True, capture_output=True
    )
    assert outcomes(root, tmp_path / "view") == {
        "packages/a/test/a.test.js::reads beside its package": Ended.PASSED,
        "packages/b/test/a.test.js::b is there": Ended.PASSED,
    }
