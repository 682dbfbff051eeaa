"""One process drives a run; any other is told which one, how to watch it and how to stop it."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.run.lease import FileLease

if TYPE_CHECKING:
    from pathlib import Path

DRIVER = """
import sys
from pathlib import Path
from pipeline.run.lease import FileLease
lease = FileLease.take(Path(sys.argv[1]))
print("driving", flush=True)
sys.stdin.readline()
"""


def test_who_drives_is_named_and_can_be_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "run-GAL-1"
    folder.mkdir()
    (folder / "lock").write_text("12345678901234567890")  # of a driver that was, with a longer number
    argv = [sys.executable, "-c", DRIVER, str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "driving\n"
        assert FileLease.is_held(folder)
        with pytest.raises(UserError, match=f"Process {driver.pid} is driving run-GAL-1") as caught:
            FileLease.take(folder)
        assert caught.value.reason is Reason.LOCKED
        assert caught.value.actions == ("redfirst show run-GAL-1 --log --follow", "redfirst stop run-GAL-1")
        driver.kill()
    assert not FileLease.is_held(folder)
    lease = FileLease.take(folder)
    lease.release()
    lease.release()


def test_what_is_no_number_of_a_process_is_not_repeated(tmp_path: Path) -> None:
    held = FileLease.take(tmp_path)
    (tmp_path / "lock").write_text("$(rm -rf /)")
    with pytest.raises(UserError, match="Another process is driving") as caught:
        FileLease.take(tmp_path)
    assert "$(" not in caught.value.message
    held.release()


def test_who_only_asks_whether_a_run_is_driven_keeps_no_driver_away(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open() as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)  # as `is_held` does, on a machine that does not come to run it
        threading.Timer(0.5, reader.close).start()
        FileLease.take(tmp_path).release()
