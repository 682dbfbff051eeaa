"""Which folders of a repository are projects, who says how each is tested, and which toolchains measure it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from e2e.shapes import make_environment
from languages.direct import environments, write
from languages.measured import measure_copy, outcomes

from pipeline.config.model import Toolchains
from pipeline.judge.evidence.observation import Ended
from pipeline.testing.languages.projects.combined import Projects, choose, folder_below, looked_for, projects_in
from pipeline.testing.languages.protocol import Environment, Lookup
from pipeline.testing.languages.table import LANGUAGES

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.testing.languages.toolchain import Toolchain

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


def found_in(root: Path, **tables: Any) -> tuple[Projects, Path, Environment]:
    tracked = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and not {"node_modules", ".venv"} & set(path.parts)
    ]
    toolchain = choose(root, Toolchains.model_validate(tables), tracked)
    assert isinstance(toolchain, Projects), toolchain
    env = environments(toolchain, Lookup(root, root, None, root.parent / "state", os.environ["PATH"]))
    assert isinstance(env, Environment), env
    return toolchain, root, env


def ended(root: Path, **tables: Any) -> dict[str, Ended | None]:
    """Return what each test came to."""
    seen = measure_copy(*found_in(root, **tables))
    assert seen.environment_problem is None, seen.environment_problem
    return outcomes(seen)


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
    assert ended(root) == {f"packages/{one}/tests/test_core.py::test_it": Ended.PASSED for one in "ab"}


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
    assert ended(root) == {
        "packages/a/test/a.test.js::reads beside its package": Ended.PASSED,
        "packages/b/test/a.test.js::b is there": Ended.PASSED,
    }


# --- which toolchains measure a repository


def chosen(tmp_path: Path, *paths: str, **tables: Any) -> Toolchain | None:
    write(tmp_path, dict.fromkeys(paths, ""))
    return choose(tmp_path, Toolchains.model_validate(tables), paths)


def named(toolchain: Toolchain | None) -> list[str]:
    """Return the names, each with the folder if it has one."""
    assert toolchain is not None
    return [f"{one.name} in {one.folder}" if one.folder else one.name for one in projects_in(toolchain)]


@pytest.mark.parametrize(("mark", "name"), [("pyproject.toml", "pytest"), ("Cargo.toml", "cargo")])
def test_one_at_the_top_is_that_toolchain_itself(tmp_path: Path, mark: str, name: str) -> None:
    assert chosen(tmp_path, mark, "README.md") is LANGUAGES[name].toolchain


def test_every_language_has_marks_and_they_are_told() -> None:
    assert all(language.marks for language in LANGUAGES.values())
    assert "cargo: Cargo.toml" in looked_for()


def test_two_at_the_top_are_both_taken_in_the_order_of_the_table(tmp_path: Path) -> None:
    found = chosen(tmp_path, "Cargo.toml", "pyproject.toml")
    assert named(found) == ["pytest", "cargo"]
    assert isinstance(found, Projects)
    assert not any(part.asked for part in found.projects)


def test_use_says_which_and_in_which_order(tmp_path: Path) -> None:
    found = chosen(tmp_path, "Cargo.toml", "pyproject.toml", use=["cargo", "pytest", "cargo"])
    assert named(found) == ["cargo", "pytest"]
    assert isinstance(found, Projects)
    assert all(part.asked for part in found.projects)
    assert chosen(tmp_path, "Cargo.toml", "pyproject.toml", use=["cargo"]) is LANGUAGES["cargo"].toolchain


def test_a_second_language_further_down_is_found_beside_the_one_at_the_top(tmp_path: Path) -> None:
    found = chosen(tmp_path, "pyproject.toml", "native/Cargo.toml")
    assert named(found) == ["pytest", "cargo in native"]


def test_the_configured_folder_counts_and_a_configured_part_is_asked_for(tmp_path: Path) -> None:
    found = chosen(tmp_path, "pyproject.toml", "a/Cargo.toml", "b/Cargo.toml", cargo={"folder": "b"})
    assert named(found) == ["pytest", "cargo in b"]
    assert isinstance(found, Projects)
    assert [part.asked for part in found.projects] == [False, True]


def test_limits_of_several_are_those_of_each(tmp_path: Path) -> None:
    found = chosen(tmp_path, "pyproject.toml", "Cargo.toml", cargo={"timeout_s": 5}, pytest={"test_timeout_s": 7})
    assert isinstance(found, Projects)
    assert [(one.table.timeout_s, one.table.test_timeout_s) for one in found.projects if one.table] == [
        (900, 7),
        (5, 60),
    ]
    tables = Toolchains.model_validate({"cargo": {"timeout_s": 5}, "pytest": {"test_timeout_s": 7}})
    assert (tables.settings_of(found.name).timeout_s, tables.settings_of(found.name).test_timeout_s) == (905, 60)


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        (["web/package.json"], "web"),
        (["apps/web/package.json"], "apps/web"),
        (["a/b/c/package.json"], None),  # too far down
        (["web/package.json", "admin/package.json"], None),  # which of them?
        (["web/package.json", "web/packages/ui/package.json", "web/ui/package.json"], "web"),  # members of a workspace
        (["node_modules/x/package.json"], None),
        (["web/package.json", "node_modules/x/package.json"], "web"),
        (["tests/fixtures/package.json"], None),
        (["examples/demo/package.json"], None),
        (["docs/package.json"], None),
        ([".github/actions/package.json"], None),
        (["vendor/js/package.json"], None),
        (["Vendor/package.json"], None),
        (["package.json"], None),  # the top is not below the top
        (["web/package.json.bak", "web/xpackage.json"], None),
        ([], None),
    ],
)
def test_what_counts_as_a_project_further_down(paths: list[str], folder: str | None) -> None:
    assert folder_below("node", paths) == folder


def test_a_table_of_no_toolchain_is_refused() -> None:
    tables = Toolchains()
    for name in ("use", "maven", "pytest+maven", ""):
        with pytest.raises(KeyError):
            tables.settings_of(name)
