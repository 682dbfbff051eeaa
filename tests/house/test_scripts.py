"""The scripts of the house tell a person what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("bash", "env", "dirname", "id", "git")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder for PATH that has next to nothing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


def start(tools: Path, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=ROOT, env={"PATH": str(tools), **env}, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--require",), 1)])
def test_a_missing_package_that_cannot_be_installed_is_named(tools: Path, words: tuple[str, ...], code: int) -> None:
    done = start(tools, "scripts/system-packages.sh", *words)
    assert done.returncode == code
    assert "bubblewrap rustc" in done.stderr
    assert "git" not in done.stderr


def test_with_every_package_there_is_nothing_to_say(tools: Path) -> None:
    for name in ("bwrap", "rustc", "go", "strace", "chromium"):
        (tools / name).symlink_to("/bin/true")
    done = start(tools, "scripts/system-packages.sh", "--require")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_python_that_is_too_old_is_told(tools: Path, tmp_path: Path) -> None:
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3").chmod(0o755)
    done = start(tools, "scripts/make-venv.sh", str(tmp_path / "venv"))
    assert done.returncode == 1
    assert "no Python >= 3.11" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_a_python_without_venv_is_told(tools: Path, tmp_path: Path) -> None:
    (tools / "old").write_text('#!/bin/sh\ncase "$2" in *venv*) exit 1 ;; esac\n')
    (tools / "old").chmod(0o755)
    done = start(tools, "scripts/make-venv.sh", str(tmp_path / "venv"), PYTHON="old")
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr


@pytest.mark.parametrize("name", sorted([*(f"scripts/{one.name}" for one in ROOT.glob("scripts/*.sh")), ".ci/run"]))
def test_every_script_is_executable_and_stops_at_the_first_failure(name: str) -> None:
    text = (ROOT / name).read_text()
    assert os.access(ROOT / name, os.X_OK)
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
