"""Which node, runner and packages are found, what of them the box is shown, and what is said where one is missing."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from js_runners import search_path
from languages.direct import write
from languages.nodes import JEST, NODE, TOOLCHAIN, VITEST, environment, find, manifest

from pipeline.process import Mount
from pipeline.testing.languages.environments.installed import installed_mounts, linked
from pipeline.testing.languages.protocol import Environment, Missing, PlacedFolder, View

NEEDED = manifest(dependencies={"left-pad": "1"})


def test_a_manifest_makes_a_project(tmp_path: Path) -> None:
    assert not TOOLCHAIN.detect(tmp_path)
    (tmp_path / "package.json").touch()
    assert TOOLCHAIN.detect(tmp_path)


def sentence(found: Environment | Missing) -> str:
    assert isinstance(found, Missing), found
    return found.sentence


def test_without_node_the_sentence_says_what_to_install(tmp_path: Path) -> None:
    assert "https://nodejs.org" in sentence(find(write(tmp_path, {"package.json": NODE}), path=str(tmp_path)))


def test_a_node_that_is_too_old_is_told(tmp_path: Path) -> None:
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text(f"#!/bin/sh\nprintf '%s\\nv18.20.0\\n' {node}\n")
    node.chmod(0o755)
    assert "node v18.20.0" in sentence(find(write(tmp_path, {"package.json": NODE}), path=f"{node.parent}:/usr/bin"))


def test_packages_that_are_not_installed(tmp_path: Path) -> None:
    said = sentence(find(write(tmp_path, {"package.json": NEEDED}), path=search_path("node")))
    assert "npm ci" in said
    assert "[toolchains.node] setup" in said


def test_packages_in_archives_are_told(tmp_path: Path) -> None:
    write(tmp_path, {"package.json": NEEDED, ".pnp.cjs": ""})
    assert "nodeLinker" in sentence(find(tmp_path, path=search_path("node")))


def test_a_runner_that_is_not_installed_or_too_old(tmp_path: Path) -> None:
    write(tmp_path, {"package.json": VITEST, "node_modules/other/package.json": "{}"})
    assert "vitest, which is not installed" in sentence(find(tmp_path, path=search_path("node")))
    write(tmp_path, {"node_modules/vitest/package.json": '{"version": "2.1.9"}'})
    found = find(tmp_path, path=search_path("node"))
    assert "vitest 2.1.9 is installed; vitest 3" in sentence(found)
    assert isinstance(found, Missing)
    assert found.remedy == "npm install --save-dev vitest@latest"


@pytest.mark.parametrize(
    ("package", "command", "words"),
    [
        (manifest(scripts={"test": "mocha"}), None, "runs mocha"),
        (NODE, ("make", "test"), "names no test runner"),
        (NODE, ("npm", "run", "lint"), "does not start"),
        (NODE, ("no-such-wrapper", "node", "--test"), "was not found"),
        ("{", None, "package.json"),
    ],
)
def test_what_cannot_be_measured(tmp_path: Path, package: str, command: tuple[str, ...] | None, words: str) -> None:
    assert words in sentence(find(write(tmp_path, {"package.json": package}), command, path=search_path("node")))


def test_packages_of_the_main_checkout_serve_a_worktree_without(tmp_path: Path) -> None:
    main = write(tmp_path / "main", {"package.json": NEEDED, "node_modules/left-pad/package.json": "{}"})
    worktree = write(tmp_path / "worktree", {"package.json": NEEDED})
    found = find(worktree, path=search_path("node"), main=main)
    assert isinstance(found, Environment)
    assert found.installed == (PlacedFolder(main / "node_modules", "node_modules"),)


def test_what_is_found_with_a_runner(tmp_path: Path) -> None:
    found = environment("jest", JEST)
    assert found.command[1:] == ("node_modules/jest/bin/jest.js",)
    assert [version.partition(" ")[0] for version in found.versions] == ["Node", "jest"]
    assert found.command[0] == str(found.prefix / "bin" / Path(found.command[0]).name)
    assert found.test_variables["CI"] == "1"
    assert "CI" not in found.variables  # agents are not in CI
    assert "readonly.cjs" in found.variables["NODE_OPTIONS"]
    shown = {mount.target for mount in found.mounts}
    assert Path.home() not in shown
    assert not any(Path.home().is_relative_to(target) for target in shown)


def test_variables_of_the_script_are_for_tests_only(tmp_path: Path) -> None:
    script = "NODE_OPTIONS=--no-deprecation LD_PRELOAD=/evil.so PATH=/evil TZ=UTC TSX_DISABLE_CACHE= node --test"
    found = find(write(tmp_path, {"package.json": manifest(scripts={"test": script})}), path=search_path("node"))
    assert isinstance(found, Environment)
    assert found.test_variables["TZ"] == "UTC"
    assert found.test_variables["TSX_DISABLE_CACHE"] == found.test_variables["NODE_DISABLE_COMPILE_CACHE"] == "1"
    assert found.test_variables["NODE_OPTIONS"].startswith("--no-deprecation --require=")
    assert {"LD_PRELOAD", "PATH"}.isdisjoint(found.test_variables)
    assert "TZ" not in found.variables


def test_nothing_of_the_project_is_run_and_nothing_is_loaded_by_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = f"require('fs').writeFileSync({json.dumps(str(tmp_path / 'ran'))}, '')"
    write(
        tmp_path,
        {
            "package.json": manifest(scripts={"test": "node --test", "pretest": f'node -e "{evil}"'}),
            "evil.js": evil,
            "node_modules/vitest/index.js": evil,
        },
    )
    monkeypatch.setenv("NODE_OPTIONS", f"--require={tmp_path / 'evil.js'}")
    assert isinstance(find(tmp_path, path=search_path("node")), Environment)
    assert not (tmp_path / "ran").exists()


# --- what is installed, in a view


def shown(env: Environment, view: Path) -> list[tuple[str, str]]:
    mounts = installed_mounts(env, View(Mount(view, Path("/measured"), writable=True)))
    assert not any(mount.writable for mount in mounts)
    return [(str(mount.source), str(mount.target)) for mount in mounts]


def some(*folders: PlacedFolder) -> Environment:
    return Environment(command=("/usr/bin/node",), mounts=(), prefix=Path("/usr"), versions=(), installed=folders)


def test_installed_packages_are_shown_inside_the_view_where_it_has_none(tmp_path: Path) -> None:
    host = write(tmp_path / "host", {"node_modules/a/x.js": "", "packages/b/node_modules/c/x.js": ""})
    env = some(
        PlacedFolder(host / "node_modules", "node_modules"),
        PlacedFolder(host / "packages/b/node_modules", "packages/b/node_modules"),
        PlacedFolder(host / "node_modules", "gone/node_modules"),
    )
    view = write(tmp_path / "view", {"packages/b/x.js": ""})
    assert shown(env, view) == [
        (str(host / "node_modules"), "/measured/node_modules"),
        (str(host / "packages/b/node_modules"), "/measured/packages/b/node_modules"),
    ]
    write(view, {"node_modules/own.js": ""})
    shutil.rmtree(view / "packages")
    (view / "packages").symlink_to(host / "packages")
    assert shown(env, view) == []


def test_links_into_a_view_are_taken_away_again_with_what_tools_left(tmp_path: Path) -> None:
    host = write(tmp_path / "host", {"node_modules/a/x.js": "1", "node_modules/@s/b/x.js": "2", "packages/c/x.js": "3"})
    (host / "node_modules/c").symlink_to("../packages/c")
    env = some(PlacedFolder(host / "node_modules", "node_modules"))
    folder = write(tmp_path / "view", {"packages/c/x.js": "4"})
    view = View(Mount(folder, folder, writable=True))
    with linked(env, view, isolated=False):
        texts = {name: (folder / "node_modules" / name / "x.js").read_text() for name in ("a", "@s/b", "c")}
        assert texts == {"a": "1", "@s/b": "2", "c": "4"}
        (folder / "node_modules" / ".cache").mkdir()
        assert os.path.realpath(folder / "node_modules/c") == str(folder / "packages/c")
    assert sorted(path.name for path in folder.iterdir()) == ["packages"]
    with linked(env, view, isolated=True):
        assert not (folder / "node_modules").exists()
    assert (host / "node_modules/a/x.js").read_text() == "1"


def test_node_is_asked_in_the_root_where_no_file_of_the_project_chooses(tmp_path: Path) -> None:
    real = shutil.which("node", path=search_path("node"))
    assert real is not None
    project = write(tmp_path / "project", {"package.json": NODE, ".tool-versions": "nodejs 22.1.0\n"})
    text = f'echo "$PWD $NODENV_DIR" > {tmp_path}/said\nexec {real} "$@"\n'
    node = write(tmp_path / "shims", {"node": f"#!/bin/sh\n{text}"}) / "node"
    node.chmod(0o755)
    assert isinstance(find(project, path=f"{node.parent}:/usr/bin:/bin"), Environment)
    assert (tmp_path / "said").read_text() == "/ /\n"
