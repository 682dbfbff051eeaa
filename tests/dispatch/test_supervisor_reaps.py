"""Which of the processes that ended the supervisor takes for its command, where others end all the time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KIT = """
import os, signal
from pipeline.sandbox.boxes.supervisor import reap

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})


def ended(code):
    child = os.fork()
    if child == 0:
        os._exit(code)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    return child

"""
RUNS = """
child = os.fork()
if child == 0:
    signal.pause()
ended(1)
print(reap(child))
os.kill(child, signal.SIGKILL)
print(os.wait()[0] == child)
"""
OTHERS_AFTER_IT = """
ended(1)
child = ended(5)
later = ended(0)
print(reap(child) >> 8)
print(os.waitpid(later, 0)[0] == later)
"""
HUNDREDS_BEFORE_IT = """
for _ in range(300):
    ended(1)
child = ended(5)
while signal.sigtimedwait({signal.SIGCHLD}, 0):
    pass
print(reap(child), signal.sigtimedwait({signal.SIGCHLD}, 0) is not None)
print(reap(child) >> 8)
"""


@pytest.mark.broad(but_first=2)
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (RUNS, "None\nTrue\n"),
        (OTHERS_AFTER_IT, "5\nTrue\n"),
        (HUNDREDS_BEFORE_IT, "None True\n5\n"),
        ("print(reap(-1))", "None\n"),
    ],
    ids=["it still runs", "others end after it", "hundreds ended before it", "there is nobody"],
)
def test_the_status_is_that_of_the_command(script: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KIT + script],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout == said
