"""Slots are given back by the kernel, whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from pipeline.queue.slots import Slots, give_back

if TYPE_CHECKING:
    from pathlib import Path


def test_as_many_as_there_are_and_all_kinds_or_none(tmp_path: Path) -> None:
    slots = Slots(tmp_path)
    first = slots.take({"jobs": 2, "provider-x": 1})
    assert first is not None
    assert slots.take({"jobs": 2, "provider-x": 1}) is None
    assert slots.free("jobs", 2) == 1  # what could not be had whole was given back
    second = slots.take({"jobs": 2})
    assert second is not None
    assert (slots.free("jobs", 2), slots.free("jobs", 3)) == (0, 1)
    give_back(first)
    assert (slots.free("jobs", 2), slots.free("provider-x", 1)) == (1, 1)
    give_back(second)


def test_a_slot_is_its_process_s_own_and_free_when_that_is_killed(tmp_path: Path) -> None:
    slots = Slots(tmp_path)
    handles = slots.take({"jobs": 1})
    assert handles is not None
    argv = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=handles) as holder:
        give_back(handles)
        assert holder.stdout is not None
        holder.stdout.readline()
        assert slots.free("jobs", 1) == 0
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert slots.free("jobs", 1) == 1
