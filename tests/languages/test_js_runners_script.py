"""The script that installs the JavaScript runners for the tests, with an npm of ours: what it says, and does once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from js_runners import SETS

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
TOOLS: Final = ("bash", "env", "dirname", "cat", "grep", "mkdir", "rm", "tee")
NPM: Final = f"""#!{sys.executable} -IS
import json, pathlib, sys
prefix = pathlib.Path(sys.argv[sys.argv.index("--prefix") + 1])
assert "--ignore-scripts" in sys.argv
json.loads((prefix / "package.json").read_text())
with (prefix.parent / "calls").open("a") as calls:
    calls.write(prefix.name + "\\n")
if (prefix.parent / "offline").exists():
    sys.exit("npm: no network")
(prefix / "node_modules").mkdir(exist_ok=True)
"""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder for PATH with what every system has, and an npm of ours."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    (folder / "npm").write_text(NPM)
    (folder / "npm").chmod(0o755)
    return folder


def start(tools: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "scripts" / "js-runners.sh", *argv],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def calls(place: Path) -> list[str]:
    try:
        return (place / "calls").read_text().split()
    except FileNotFoundError:
        return []


@pytest.mark.broad
def test_every_set_is_installed_once_and_told(tools: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache"
    first, second = start(tools, str(place)), start(tools, "--require", str(place))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert first.stdout == second.stdout == "".join(f"{name} {place / name}\n" for name in SETS)
    assert calls(place) == list(SETS)
    assert (place / "sets.txt").read_text() == first.stdout
    assert (place / ".gitignore").read_text() == "*\n"


def test_what_cannot_be_had_is_named_and_with_require_a_failure(tools: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache"
    place.mkdir()
    (place / "offline").touch()
    done = start(tools, str(place))
    assert (done.returncode, done.stdout) == (0, "")
    assert f"left out, their tests will be skipped: {' '.join(SETS)}" in done.stderr
    assert start(tools, "--require", str(place)).returncode == 1


def test_with_show_nothing_is_installed(tools: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache"
    assert start(tools, "--show", str(place)).stdout == ""
    assert calls(place) == []


@pytest.mark.parametrize("words", [["--other"], ["a", "b"], ["--require", "--show"]])
def test_a_word_that_is_not_known_is_refused(tools: Path, words: list[str]) -> None:
    done = start(tools, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: js-runners.sh" in done.stderr


def test_the_script_is_executable_and_stops_at_the_first_failure() -> None:
    script = ROOT / "scripts" / "js-runners.sh"
    assert os.access(script, os.X_OK)
    assert script.read_text().startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script.read_text()
