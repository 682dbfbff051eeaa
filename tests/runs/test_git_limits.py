"""Processes of git with a limit of time: they end with what they had started, and keep nobody from ending."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import alive, own_nap, wait_until

from pipeline.repo.process import run

ROOT = Path(__file__).parents[2]
WAITING = """
import sys
from pathlib import Path
from pipeline.repo.process import run
run(Path.cwd(), ["-c", f"alias.wait=!echo $$ > {sys.argv[1]}; exec sleep 300", "wait"], limit_s=200)
"""
STARTING = """
import sys
from pathlib import Path
from pipeline.repo.process import run
run(Path.cwd(), ["version"])
for _ in range(30):
    try:
        print("now", flush=True)
        run(Path.cwd(), ["-c", f"alias.wait=!exec sleep {sys.argv[1]}", "wait"], limit_s=200)
    except KeyboardInterrupt:
        pass
"""


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def waits(mark: Path) -> list[str]:
    return ["-c", f"alias.wait=!echo $$ > {mark}; exec sleep 300", "wait"]


def test_what_takes_too_long_is_killed_with_what_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    with pytest.raises(subprocess.TimeoutExpired):
        run(tmp_path, waits(mark), limit_s=3)
    wait_until(lambda: not is_there(int(mark.read_text())))
    assert run(tmp_path, ["version"], limit_s=60).stdout.startswith(b"git version")
    assert run(tmp_path, ["no-such-command"], limit_s=60).returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize("foreground", [True, False])
def test_who_is_interrupted_meanwhile_ends_at_once(tmp_path: Path, *, foreground: bool) -> None:
    mark = tmp_path / "pid"
    code = WAITING.replace("limit_s=200", f"limit_s=200, foreground={foreground}")
    with subprocess.Popen(
        [sys.executable, "-c", code, str(mark)], cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    ) as waiting:
        wait_until(lambda: mark.exists() and mark.read_text().strip() != "")
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) != 0
    wait_until(lambda: not is_there(int(mark.read_text())))


@pytest.mark.slow
def test_who_is_interrupted_while_git_is_started_leaves_none(tmp_path: Path) -> None:
    nap = own_nap()
    with subprocess.Popen(
        [sys.executable, "-c", STARTING, nap],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
    ) as starting:
        assert starting.stdout is not None
        for _ in starting.stdout:
            starting.send_signal(signal.SIGINT)
    assert starting.returncode == 0
    wait_until(lambda: not alive(f"sleep {nap}"))
