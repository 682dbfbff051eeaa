"""`[toolchains.NAME] setup`: what it makes in the private checkout is what the tests run with; no network is used."""

from __future__ import annotations

import json
import sys
import sysconfig
import zipfile
from typing import TYPE_CHECKING

import pytest
from e2e.shapes import NOBODY, TRACKER, answers, done, evidence
from kit import FILES, GREET_DONE, make_project
from languages.crates import MANIFEST, environment, needs_cargo

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Project

pytestmark = pytest.mark.slow

USES = """import sys

import localdep


def test_the_package_that_setup_installed():
    assert localdep.ANSWER == 42
    assert sys.prefix.endswith("/tree/.venv")
"""
TESTS = {"tests/test_greet.py": FILES["tests/test_greet.py"] + NOBODY}


def wheel(folder: Path) -> None:
    """Make a wheel of one module, as a package index would hold it."""
    folder.mkdir()
    info = "localdep-1.0.dist-info"
    with zipfile.ZipFile(folder / "localdep-1.0-py3-none-any.whl", "w") as made:
        made.writestr("localdep.py", "ANSWER = 42\n")
        made.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: localdep\nVersion: 1.0\n")
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", f"localdep.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\nset -eu\n{text}")
    path.chmod(0o755)
    return path


def setup_of(name: str, *argv: str | Path) -> str:
    return f"[toolchains.{name}]\nsetup = {json.dumps([str(word) for word in argv])}\n"


@pytest.mark.broad
def test_tests_run_in_the_environment_that_setup_made_from_a_local_wheel(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels")
    site = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    install = program(
        tmp_path / "install",
        f'echo "installing in $PWD"\n"{sys.executable}" -m venv .venv\n'
        f".venv/bin/python -m pip install --quiet --disable-pip-version-check --no-index"
        f' --find-links "{tmp_path}/wheels" localdep\n'
        # pytest itself is ours: no index has it here
        f'echo "{sysconfig.get_path("purelib")}" > ".venv/{site}/ours.pth"\n',
    )
    files = {**FILES, ".gitignore": ".venv/\n", "tests/test_uses.py": USES}
    project = make_project(tmp_path, files)
    project.use_script(answers(files, TESTS, {"greet.py": GREET_DONE}), setup_of("pytest", install))
    result = done(project)
    assert evidence(project, "baseline.json")["outcomes"] == {
        "tests/test_greet.py::test_greets_by_name": "passed",
        "tests/test_uses.py::test_the_package_that_setup_installed": "passed",
    }
    log = (project.run_folder() / "evidence/setup-pytest.log").read_text()
    assert log.count("installing in ") == 1
    assert str(project.home / "state") in log
    assert f"setup of pytest: {install}" in result["_stderr"]
    assert "setup of pytest: done (" in result["_stderr"]


def test_a_setup_that_fails_ends_the_run_before_any_agent_with_what_it_said(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    broken = program(tmp_path / "broken", "echo no such lock file >&2\nexit 3\n")
    project.use_script([], setup_of("pytest", broken))
    result = project.run()
    assert "ended with 3: no such lock file" in result["note"]
    assert not list(project.run_folder().glob("dispatches/*"))
    assert "no such lock file" in (project.run_folder() / "evidence/setup-pytest.log").read_text()


@pytest.mark.broad
def test_what_a_setup_prints_is_kept_without_secrets_and_not_without_end(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.env["API_TOKEN"] = "tok-1234567890abcdef"
    noisy = program(tmp_path / "noisy", 'seq 1 400000\necho "token $API_TOKEN"\nexit 3\n')
    project.use_script([], setup_of("pytest", noisy))
    assert "tok-1234567890abcdef" not in json.dumps(project.run())
    log = (project.run_folder() / "evidence/setup-pytest.log").read_bytes()
    assert 900_000 < len(log) <= 1_000_100
    assert b"tok-1234567890abcdef" not in log
    assert b"400000" in log


def two_languages(tmp_path: Path) -> tuple[Project, dict[str, str]]:
    files = {
        **FILES,
        **TRACKER,
        ".gitignore": "target/\nCargo.lock\n",
        "rust/Cargo.toml": MANIFEST,
        "rust/src/lib.rs": "",
        "rust/tests/it.rs": "#[test]\nfn holds() {}\n",
    }
    project = make_project(tmp_path, files)
    project.env["PATH"] = f"{environment().prefix / 'bin'}:{project.environment()['PATH']}"
    return project, files


@needs_cargo
@pytest.mark.broad
def test_each_toolchain_has_its_own_setup_in_its_own_folder(tmp_path: Path) -> None:
    project, files = two_languages(tmp_path)
    where = tmp_path / "where"
    first = program(tmp_path / "first", f'echo "first $PWD" >> "{where}"\n')
    second = program(tmp_path / "second", f'echo "second $PWD" >> "{where}"\ncargo fetch --offline\n')
    setups = setup_of("pytest", first) + setup_of("cargo", second)
    project.use_script(answers(files, TESTS, {"greet.py": GREET_DONE}), setups)
    done(project)
    assert [line.split("/tree")[-1] for line in where.read_text().splitlines()] == ["", "/rust"]
    assert evidence(project, "baseline.json")["outcomes"]["rust::greet::test/it::holds"] == "passed"


@needs_cargo
@pytest.mark.broad
def test_one_that_is_missing_is_left_out_and_said_until_a_task_needs_it(tmp_path: Path) -> None:
    project, files = two_languages(tmp_path)
    folder = tmp_path / "only"
    folder.mkdir()
    for name in ("git", "bwrap", "python3"):
        program(folder / name, f'exec "{sys.executable if name == "python3" else f"/usr/bin/{name}"}" "$@"\n')
    project.env["PATH"] = str(folder)
    project.use_script(answers(files, TESTS, {"greet.py": GREET_DONE}))
    result = done(project)
    assert "cargo is left out, its tests are not measured: No rustc was found on PATH" in result["_stderr"]
    assert not any(entry.startswith("rust::") for entry in evidence(project, "baseline.json")["outcomes"])

    (tmp_path / "again").mkdir()
    other, files = two_languages(tmp_path / "again")
    other.env["PATH"] = str(folder)
    rust = {"rust/tests/new.rs": "#[test]\nfn fails() {\n    assert!(greet::no());\n}\n"}
    other.use_script(answers(files, rust, {"rust/src/lib.rs": "pub fn no() -> bool {\n    true\n}\n"}))
    refused = other.run()
    assert refused["_code"] != 0
    assert "rust/src/lib.rs is measured with cargo, which is missing here" in refused["_stderr"]
    assert not list(other.run_folder().glob("dispatches/*-test"))
