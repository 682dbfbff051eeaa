"""Slots are given back by the kernel, or by the server, whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from postgres import database, needs_postgres
from queued.stores import log_in, slots_in
from waiting import wait_until

from pipeline.queue.orders import Wanted
from pipeline.queue.slots import LocalSlots

if TYPE_CHECKING:
    from pathlib import Path

HOLDS = """
import sys
from pathlib import Path
from queued.stores import slots_in
taken = slots_in(Path(sys.argv[1])).take({"jobs": 1, "provider-x": 1}, sys.argv[2])
print(taken is not None, flush=True)
input()
"""


def test_as_many_as_there_are_and_all_kinds_or_none(place: Path) -> None:
    slots = slots_in(place)
    first = slots.take({"jobs": 2, "provider-x": 1}, "o-000001")
    assert first is not None
    assert slots.take({"jobs": 2, "provider-x": 1}, "o-000002") is None
    assert slots.free("jobs", 2) == 1  # what could not be had whole was given back
    second = slots.take({"jobs": 2}, "o-000003")
    assert second is not None
    assert (slots.free("jobs", 2), slots.free("jobs", 3), slots.free("provider-x", 3)) == (0, 1, 2)
    first.give_back()
    assert (slots.free("jobs", 2), slots.free("provider-x", 1)) == (1, 1)
    second.give_back()


def test_a_slot_is_its_process_s_own_and_free_when_that_is_killed(tmp_path: Path) -> None:
    slots = LocalSlots(tmp_path)
    taken = slots.take({"jobs": 1}, "o-000001")
    assert taken is not None
    argv = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=taken.handles) as holder:
        taken.give_back()
        assert holder.stdout is not None
        holder.stdout.readline()
        assert slots.free("jobs", 1) == 0
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert slots.free("jobs", 1) == 1


@pytest.mark.slow
@needs_postgres
def test_an_order_is_one_worker_s_alone_until_that_dies_and_others_see_it(tmp_path: Path) -> None:
    (tmp_path / "dsn").write_text(database())
    with log_in(tmp_path).locked() as log:
        order, _ = log.place(Wanted(via="cli", issue="GAL-1"))
    argv = [sys.executable, "-c", HOLDS, str(tmp_path), order.id]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    there = slots_in(tmp_path)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        log.read_on()
        assert log.orders[order.id].is_driven
        assert (there.take({}, order.id), there.free("provider-x", 1)) == (None, 0)
        holder.kill()
    wait_until(lambda: there.free("provider-x", 1) == 1)
    log.read_on()
    assert not log.orders[order.id].is_driven
    again = there.take({"provider-x": 1}, order.id)
    assert again is not None
    again.give_back()
