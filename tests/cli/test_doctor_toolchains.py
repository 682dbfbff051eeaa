"""What `redfirst doctor` says of the toolchains: one line for each, what is missing, and what was looked for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import typer
from languages.crates import MANIFEST, environment, needs_cargo
from runs.real import alone, make_repository
from typer.testing import CliRunner

from pipeline.app.documents import DoctorDocument
from pipeline.faces.cli.doctor import doctor

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.app.documents import Check

app = typer.Typer()
app.command()(doctor)

PYTHON = {"test_app.py": "def test_x(): pass\n", "pyproject.toml": ""}
RUST = {"Cargo.toml": MANIFEST, "src/lib.rs": ""}


class Place:
    """A repository, the user's home, and a PATH that a test can cut down."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.top, self.monkeypatch = tmp_path, monkeypatch
        if shutil.which("cargo") is not None:  # the toolchain itself: rustup would look for it in the user's home
            monkeypatch.setenv("PATH", f"{environment().prefix / 'bin'}:{os.environ['PATH']}")
        alone(monkeypatch, tmp_path / "home")

    def has(self, files: dict[str, str], config: str = "") -> None:
        folder = self.top / "home/.config/redfirst"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(f'sandbox = "none"\n[agents]\nargv = ["sh"]\n{config}')
        made = make_repository(self.top / "project", files)
        self.monkeypatch.chdir(made.worktree)

    def has_only(self, *programs: str) -> None:
        folder = self.top / "bin"
        folder.mkdir()
        for name in programs:
            found = sys.executable if name == "python3" else shutil.which(name)
            assert found is not None
            (folder / name).write_text(f'#!/bin/sh\nexec "{found}" "$@"\n')
            (folder / name).chmod(0o755)
        self.monkeypatch.setenv("PATH", str(folder))

    def checks(self) -> dict[str, Check]:
        result = CliRunner().invoke(app, ["--json"])
        document = DoctorDocument.model_validate(json.loads(result.stdout))
        return {check.id: check for check in document.checks if check.id.startswith("tests")}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@needs_cargo
def test_each_of_several_has_its_line_with_its_versions_and_its_command(place: Place) -> None:
    place.has({**PYTHON, **RUST})
    checks = place.checks()
    assert list(checks) == ["tests-pytest", "tests-cargo"]
    assert {check.status for check in checks.values()} == {"ok"}
    assert checks["tests-pytest"].message.startswith("Python 3")
    assert checks["tests-cargo"].message.startswith("rustc 1.")
    assert checks["tests-cargo"].message.endswith("cargo test")


@pytest.mark.broad
def test_one_that_is_missing_beside_another_is_a_warning_with_what_to_install(place: Place) -> None:
    place.has({**PYTHON, **RUST})
    place.has_only("git", "python3", "sh")
    checks = place.checks()
    assert checks["tests-pytest"].status == "ok"
    missing = checks["tests-cargo"]
    assert missing.status == "warn"
    assert "cargo is left out" in missing.message
    assert "https://rustup.rs" in missing.advice
    assert "[toolchains] use" in missing.advice


@pytest.mark.parametrize("config", ['[toolchains]\nuse = ["pytest", "cargo"]\n', '[toolchains.cargo]\nfolder = "rs"\n'])
@pytest.mark.broad(but_first=1)
def test_one_that_is_asked_for_must_be_there(place: Place, config: str) -> None:
    place.has({**PYTHON, **{f"rs/{path}": text for path, text in RUST.items()}}, config)
    place.has_only("git", "python3", "sh")
    assert place.checks()["tests-cargo"].status == "fail"


def test_a_project_that_nothing_recognises_fails_with_what_was_looked_for(place: Place) -> None:
    place.has({"main.c": "int main(void) { return 0; }\n"})
    check = place.checks()["tests"]
    assert check.status == "fail"
    assert "Cargo.toml" in check.message
    assert "[toolchains.NAME] folder" in check.advice


@pytest.mark.parametrize("wrapper", ["nix develop -c", "direnv exec ."])
@pytest.mark.broad(but_first=1)
def test_a_development_shell_is_not_started(place: Place, wrapper: str) -> None:
    words = json.dumps([*wrapper.split(), "pytest"])
    place.has(PYTHON, f"[toolchains.pytest]\ncommand = {words}\n")
    program = place.top / "fake" / wrapper.split(maxsplit=1)[0]
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {place.top}/started\n")
    program.chmod(0o755)
    place.monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    check = place.checks()["tests"]
    assert (check.status, check.advice) == ("warn", "start it once")
    assert not (place.top / "started").exists()


def _environment_without_runner(place: Place) -> Path:
    there = place.top / "project" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", there], check=True)
    return there


@pytest.mark.broad
def test_an_environment_of_the_project_without_the_runner_is_named(place: Place) -> None:
    place.has(PYTHON)
    there = _environment_without_runner(place)
    check = place.checks()["tests"]
    assert check.status == "warn"
    assert f"not from {there}: it has no pytest" in check.message
    assert sys.prefix in check.message or "-m pytest" in check.message
    assert "install pytest there" in check.advice


def test_where_no_interpreter_has_the_runner_the_advice_is_for_the_project_s_own(place: Place) -> None:
    place.has(PYTHON)
    there = _environment_without_runner(place)
    place.has_only("git", "sh")
    check = place.checks()["tests"]
    assert check.status == "fail"
    assert str(there) in check.message
    assert check.advice.startswith(f"{there}/bin/python -m pip install pytest")


@pytest.mark.broad
def test_an_environment_that_lacks_what_its_lock_has_is_named(place: Place) -> None:
    place.has({**PYTHON, "uv.lock": ""})
    _environment_without_runner(place)
    place.has_only("git", "sh", "python3")
    uv = place.top / "bin" / "uv"
    uv.write_text("#!/bin/sh\nexit 1\n")
    uv.chmod(0o755)
    place.monkeypatch.setenv("REDFIRST_TRUST", "1")
    check = place.checks()["tests"]
    assert (check.status, check.advice) == ("warn", "uv sync")
    assert "uv.lock with a .venv that lacks pytest" in check.message
