"""What package.json says of a project, which files are tests, and what a command line or a script starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from languages.direct import write
from languages.nodes import TOOLCHAIN

from pipeline.judge.evidence.observation import Layout
from pipeline.testing.languages.javascript.command import Invocation, Runner, Unknown, is_start, of_script, of_words
from pipeline.testing.languages.javascript.project import Project, files_with_tests, names_in, read_project

if TYPE_CHECKING:
    from pathlib import Path


def project(root: Path, files: dict[str, object]) -> Project:
    write(root, {name: text if isinstance(text, str) else json.dumps(text) for name, text in files.items()})
    found = read_project(root)
    assert isinstance(found, Project), found
    return found


@pytest.mark.parametrize(
    ("package", "found"),
    [
        ({}, Invocation("node")),
        ({"devDependencies": {"vitest": "1"}}, Invocation("vitest")),
        ({"dependencies": {"jest": "1"}, "devDependencies": {"vitest": "1"}}, Invocation("vitest")),
        ({"dependencies": {"jest": "1"}}, Invocation("jest")),
        ({"devDependencies": {"vitest": "1"}, "scripts": {"test": "node --test"}}, Invocation("node")),
        ({"devDependencies": {"mocha": "1", "jest": "1"}, "scripts": {"test": "mocha"}}, Invocation("jest")),
        ({"scripts": {"test": "mocha"}}, Unknown("mocha")),
    ],
)
def test_the_runner(tmp_path: Path, package: dict[str, object], found: Invocation | Unknown) -> None:
    assert project(tmp_path, {"package.json": package}).invocation() == found


def test_packages_of_a_workspace(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        {
            "package.json": {"workspaces": {"packages": ["packages/*", "../outside", "!packages/no"]}},
            "packages/a/package.json": {"name": "@it/a", "devDependencies": {"jest": "1"}, "scripts": {"test": "jest"}},
            "packages/b/package.json": {"name": "b", "dependencies": {"@it/a": "*"}},
            "packages/node_modules/package.json": {"name": "not-ours"},
            "packages/broken/package.json": "{",
            "tools/c/package.json": {"name": "c"},
            "pnpm-workspace.yaml": "packages:\n  - 'tools/*'  # more\n",
        },
    )
    assert sorted(found.packages) == ["", "packages/a", "packages/b", "tools/c"]
    assert found.names == {"@it/a", "b", "c"}
    assert found.needs == {"jest"}
    assert found.invocation() == Invocation("jest")
    assert found.folders_with("vitest", ["packages/b/vitest.config.ts", "x/vite.config.js"]) == ("packages/b",)
    assert found.folders_with("vitest", ["vitest.config.ts", "packages/b/vitest.config.ts"]) == ()


@pytest.mark.parametrize("text", ["{", "[]", '{"scripts": 3}', '{"dependencies": {"a": 1}}', ""])
def test_a_manifest_that_npm_would_not_take(tmp_path: Path, text: str) -> None:
    (tmp_path / "package.json").write_text(text)
    assert isinstance(read_project(tmp_path), str)


def test_a_link_in_the_place_of_a_manifest_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("{}")
    (tmp_path / "package.json").symlink_to("elsewhere")
    assert read_project(tmp_path) == "package.json is a link"


FILES = [
    "a.js", "a.test.js", "a-test.mjs", "a_test.cjs", "test-a.js", "test.js", "tests.js", "a.spec.js", "a.test.jsx",
    "b.test.ts", "test/any.js", "test/fixture.json", "src/test/deep/any.js", "test/any.ts", "node_modules/a/a.test.js",
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (
            (),
            {
                "a.test.js", "a-test.mjs", "a_test.cjs", "test-a.js", "test.js", "b.test.ts", "test/any.js",
                "src/test/deep/any.js",
            },
        ),
        (("src/",), {"src/test/deep/any.js"}),
        (("./test",), {"test/any.js"}),
        (("**/*.spec.js",), {"a.spec.js"}),
        (("*.test.{js,ts}",), {"a.test.js", "b.test.ts"}),
        (("a.js", "no.js"), {"a.js"}),
    ],
)  # fmt: skip
def test_which_files_node_takes_for_tests(arguments: tuple[str, ...], left: set[str]) -> None:
    assert set(files_with_tests(FILES, arguments)) == left


@pytest.mark.parametrize(
    ("pattern", "paths", "others"),
    [
        ("**/*.{test,spec}.?(c|m)[jt]s?(x)", ["a.test.js", "x/y.spec.mts", "x/y.test.cjsx"], ["a.js", "a.tests.js"]),
        ("**/__tests__/**/*.[jt]s?(x)", ["__tests__/a.js", "x/__tests__/b/c.tsx"], ["tests/a.js"]),
        ("**/?(*.)+(spec|test).[jt]s?(x)", ["a.test.js", "test.ts", "x/spec.jsx"], ["a.js"]),
        ("test/**/*.ts", ["test/a.ts", "test/b/c.ts"], ["src/a.ts"]),
    ],
)
def test_patterns_of_runners_as_a_layout_has_them(pattern: str, paths: list[str], others: list[str]) -> None:
    layout = Layout(testpaths=(".",), python_files=names_in([pattern]))
    assert [path for path in paths if not layout.is_test(path)] == []
    assert [path for path in others if layout.is_test(path)] == []


@pytest.mark.parametrize(
    ("path", "is_control"),
    [
        ("package.json", True), ("web/package-lock.json", True), ("vitest.config.mts", True), ("jest.config.js", True),
        ("tsconfig.build.json", True), (".babelrc", True), ("src/__mocks__/fs.js", True), ("a/Vite.Config.ts", True),
        ("test/__snapshots__/a.snap", True), ("patches/left-pad.patch", True), ("src/config.ts", False),
        ("test/a.test.js", False), ("src/package.js", False),
    ],
)  # fmt: skip
def test_what_controls_tests(path: str, *, is_control: bool) -> None:
    assert TOOLCHAIN.is_control_path(path) is is_control


# --- what a command line or a test script starts, read without running it


SCRIPTS = {"unit": "vitest", "loop": "npm run loop", "all": "npm run lint && npm run unit -- --dir src"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("vitest", Invocation("vitest")),
        ("vitest run --coverage", Invocation("vitest", (), ("--coverage",))),
        ("jest --ci", Invocation("jest", (), ("--ci",))),
        ("node --test", Invocation("node")),
        ("node --test --test-reporter spec --watch test/", Invocation("node", (), ("test/",))),
        (
            "node --import tsx --test 'test/**/*.ts'",
            Invocation("node", ("--import", "tsx"), ("test/**/*.ts",)),
        ),
        ("tsx --test src/a.test.ts", Invocation("node", ("--import", "tsx"), ("src/a.test.ts",))),
        (
            "NODE_OPTIONS=--experimental-vm-modules npx jest",
            Invocation("jest", variables={"NODE_OPTIONS": "--experimental-vm-modules"}),
        ),
        ("cross-env TZ=UTC LANG=C jest", Invocation("jest", variables={"TZ": "UTC", "LANG": "C"})),
        (
            "node --experimental-vm-modules node_modules/jest/bin/jest.js -i",
            Invocation("jest", ("--experimental-vm-modules",), ("-i",)),
        ),
        ("node node_modules/.bin/vitest run a", Invocation("vitest", (), ("a",))),
        ("c8 --all node --test", Invocation("node")),
        ("eslint . && npm run unit", Invocation("vitest")),
        ("npm run all", Invocation("vitest", (), ("--dir", "src"))),
        ("pnpm exec vitest", Invocation("vitest")),
        ("yarn jest --ci", Invocation("jest", (), ("--ci",))),
        ("npm t", Unknown()),
        ("mocha test", Unknown("mocha")),
        ("standard && tape test.js", Unknown("tape")),
        ("eslint . && mocha && node --test", Invocation("node")),
        ("npm run loop", Unknown()),
        ('echo "Error: no test specified" && exit 1', Unknown()),
        ("node test.js", Unknown()),
        ("jest 'unclosed", Unknown()),
        ("", Unknown()),
    ],
)
def test_what_a_script_runs(text: str, found: Invocation | Unknown) -> None:
    assert of_script(text, SCRIPTS) == found


@pytest.mark.slow
def test_where_the_wrapper_of_a_shell_ends() -> None:
    assert [is_start([word]) for word in ("node", "npx", "/usr/bin/vitest", "pnpm", "nix", "-c", "env")] == [
        True, True, True, True, False, False, False,
    ]  # fmt: skip


RUNNERS: list[Runner] = ["node", "vitest", "jest"]
WORDS = st.lists(st.from_regex(r"--[a-z]+=[a-z]+|[a-z]+/[a-z*]+\.ts", fullmatch=True), max_size=3).map(tuple)


@pytest.mark.slow
@given(st.sampled_from(RUNNERS), WORDS)
def test_an_invocation_is_read_back_from_its_words(runner: Runner, arguments: tuple[str, ...]) -> None:
    plain = tuple(word for word in arguments if runner != "node" or not word.startswith("-"))
    one = Invocation(runner, ("--import", "tsx"), plain)
    assert of_words(("node", *one.words()), {}) == one
