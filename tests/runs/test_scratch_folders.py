"""What a killed redfirst leaves in the temporary folder goes with the next one; nobody else's does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, cast

import pytest

ROOT = Path(__file__).parents[2]
_HOLDS = """
import sys
from pipeline.scratch import scratch_folder
with scratch_folder("tests") as place:
    (place / "deep" / "er").mkdir(parents=True)
    (place / "deep" / "er").chmod(0o500)
    print(place, flush=True)
    sys.stdin.read()
"""


def holding(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    argv = [sys.executable, "-c", _HOLDS]
    env = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(argv, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, Path(cast("IO[str]", process.stdout).readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("")
    assert process.returncode == 0


@pytest.mark.slow
def test_what_a_killed_process_left_goes_with_the_next_and_nothing_else(tmp_path: Path) -> None:
    killed, left = holding(tmp_path)
    alive, kept = holding(tmp_path)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert left.is_dir()
    strange = {name: tmp_path / name for name in ("redfirst-scratch-mine", "redfirst-tests-old", "other")}
    for folder in strange.values():
        folder.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    (tmp_path / "redfirst-scratch-link").symlink_to(elsewhere)
    end(holding(tmp_path)[0])
    assert not left.parent.exists()
    assert kept.is_dir(), "its process is alive"
    assert all(folder.is_dir() for folder in strange.values())
    assert (elsewhere / "lock").exists()
    end(alive)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("elsewhere", "other", "redfirst-scratch-link", "redfirst-scratch-mine", "redfirst-tests-old")
    ]
