"""Boxes that were being set up when their driver was killed are cleared by the next driver; no other process is."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from waiting import wait_until

from pipeline.pids import ProcessId, boot_id, pids
from pipeline.process import Command, Completed
from pipeline.sandbox.boxes.children import recorded
from pipeline.sandbox.boxes.limits import MARK
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.boxes.orphans import Recorded, clear_orphans, end_lost

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from collections.abc import Iterator

SLEEPER = "import time; time.sleep(60)"


def adopted(argv: list[str]) -> int:
    """Start a process whose parent ends at once, so that init adopts it; return its id."""
    starter = "import os, sys; pid = os.fork(); pid and (print(pid, flush=True), os._exit(0)); os.close(1); os.execv(sys.executable, sys.argv[1:])"  # noqa: E501
    done = subprocess.run([sys.executable, "-c", starter, *argv], stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout)


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


def record_in(path: Path) -> Recorded:
    """Return the record that a driver writes a moment after its command has started."""
    found: list[Recorded] = []

    def written() -> bool:
        record = Recorded.read(path)
        found.extend([record] if record is not None else [])
        return bool(found)

    wait_until(written, "nothing was written down")
    return found[0]


def wait_for_end(pid: int) -> None:
    wait_until(lambda: not is_alive(pid), f"{pid} is still there")


def test_a_box_without_its_driver_is_killed_and_nothing_else_is() -> None:
    ours = ["bwrap", "-c", SLEEPER, MARK]
    lost = adopted(ours)
    foreign = adopted(["bwrap", "-c", SLEEPER, "somebody else's"])
    living = subprocess.Popen(ours, executable=sys.executable)
    try:
        parent = Path(f"/proc/{lost}/stat").read_text().rpartition(")")[2].split()[1]
        assert parent == "1", "this machine has a reaper of its own: the test cannot make an orphan"
        clear_orphans()  # a driver of another test may have done it already
        wait_for_end(lost)
        assert is_alive(foreign)
        assert is_alive(living.pid)
    finally:
        for pid in (lost, foreign, living.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        living.wait()


# --- without a kernel box: the supervisor -----------------------------------------------------------------------------

HIDE = (
    "import os, sys, time; os.setsid(); os.execve(sys.executable, [sys.executable, '-c', sys.argv[1], sys.argv[2]], {})"
)
HIDER = "import time; time.sleep(60)"


def hidden(word: str) -> str:
    """Return a shell command whose process leaves the session, empties its environment and loses its parent."""
    return f"({sys.executable} -c {shlex.quote(HIDE)} {shlex.quote(HIDER)} {word} >/dev/null 2>&1 &)"


def with_word(word: str) -> list[int]:
    found: list[int] = []
    for pid in pids():
        with contextlib.suppress(OSError):
            if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2:]:
                found.append(pid)
    return found


def appears(word: str, driver: subprocess.Popen[str] | None = None) -> int:
    """Return the process with this word in its arguments, as the look that found it saw it.

    A second look may find none: between two programs of one process its arguments are empty for an instant.
    """
    found: list[int] = []

    def started() -> bool:
        assert driver is None or driver.poll() is None, "the driver ended before"
        found[:] = with_word(word)
        return bool(found)

    wait_until(started, "it never started")
    return found[0]


@pytest.fixture
def word(tmp_path: Path) -> str:
    return f"word-{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]}"


def sh(script: str, *, timeout_s: float = 20) -> Completed:
    return anyio.run(NoBox().run, Command(("/bin/sh", "-c", script), Path("/"), timeout_s=timeout_s))


def driver(script: str, record: Path) -> subprocess.Popen[str]:
    """Start a driver that runs the script without a box and writes down that it does."""
    program = f"""
import anyio
from pathlib import Path
from pipeline.sandbox.boxes.children import recorded
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.process import Command

async def main():
    with recorded(Path({str(record)!r}), "none"):
        await NoBox().run(Command(("/bin/sh", "-c", {script!r}), Path("/"), timeout_s=60))

anyio.run(main)
"""
    return subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2], text=True)


def test_what_left_the_session_and_emptied_its_environment_ends_with_the_command(word: str) -> None:
    ended = sh(f"{hidden(word)}; while ! grep -qs {word} /proc/[0-9]*/cmdline; do :; done; exit 4")
    assert (ended.exit_code, ended.signal) == (4, None)
    assert with_word(word) == []


def test_it_ends_when_the_time_is_up(word: str) -> None:
    ended = sh(f"{hidden(word)}; sleep 60", timeout_s=1)
    assert ended.timed_out
    assert with_word(word) == []


def test_it_ends_when_the_driver_is_killed(word: str, tmp_path: Path) -> None:
    killed = driver(f"{hidden(word)}; sleep 60", tmp_path / "process.json")
    pid = appears(word, killed)
    killed.kill()
    killed.wait()
    wait_for_end(pid)


def test_a_process_tree_that_forks_and_leaves_all_the_time_is_caught_up_with(word: str) -> None:
    runner = (
        "import os, time\nend = time.monotonic() + 60\nwhile time.monotonic() < end:\n"
        " time.sleep(0.001)\n if os.fork(): os._exit(0)\n os.setsid()"
    )
    ended = sh(f"{sys.executable} -c {shlex.quote(runner)} {word} & sleep 0.3")
    assert ended.exit_code == 0
    assert with_word(word) == []


def test_an_agent_that_kills_its_supervisor_is_found_by_its_mark(word: str) -> None:
    ended = sh(f"setsid {sys.executable} -c {shlex.quote(HIDER)} {word} & kill -9 $PPID; sleep 60", timeout_s=30)
    assert ended.signal == signal.SIGKILL
    assert ended.seconds < 20
    assert with_word(word) == []


# --- what is written down ---------------------------------------------------------------------------------------------


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", SLEEPER])
    yield process
    process.kill()
    process.wait()


def note(path: Path, pid: int, *, start_time: int | None = None, boot: str | None = None, mark: str = "") -> Path:
    there = ProcessId.of(pid)
    assert there is not None
    start = there.start_time if start_time is None else start_time
    recorded = Recorded(pid=pid, start_time=start, boot_id=boot or there.boot_id, box="none", mark=mark)
    path.write_text(recorded.model_dump_json())
    return path


def test_a_running_command_is_written_down_and_a_finished_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "process.json"

    async def run() -> Completed:
        with recorded(path, "none"):
            return await NoBox().run(
                Command(("/bin/sh", "-c", f"until test -s {path}; do :; done; cat {path}"), Path("/"))
            )

    ended = anyio.run(run)
    said = json.loads(ended.stdout)
    assert (said["box"], said["boot_id"]) == ("none", boot_id())
    assert said["mark"].startswith("REDFIRST_BOX=")
    assert not path.exists()
    assert anyio.run(NoBox().run, Command(("/bin/true",), Path("/"))).exit_code == 0


@pytest.mark.broad
def test_a_dispatch_that_outlived_driver_and_supervisor_is_ended_before_anything_else(
    word: str, tmp_path: Path
) -> None:
    path = tmp_path / "process.json"
    killed = driver(f"setsid {sys.executable} -c {shlex.quote(HIDER)} {word} & sleep 60", path)
    pid = appears(word, killed)
    supervisor = record_in(path)
    os.kill(supervisor.pid, signal.SIGSTOP)  # else it would do its work
    killed.kill()
    killed.wait()
    os.kill(supervisor.pid, signal.SIGKILL)
    wait_for_end(supervisor.pid)
    assert is_alive(pid)
    assert end_lost([path]) >= 1
    assert not is_alive(pid)
    assert not path.exists()


@pytest.mark.broad
def test_a_supervisor_that_is_still_there_ends_all_of_it(word: str, tmp_path: Path) -> None:
    path = tmp_path / "process.json"
    killed = driver(f"{hidden(word)}; sleep 60", path)
    try:
        pid = appears(word, killed)
        record_in(path)
        assert end_lost([path]) >= 2
        assert not is_alive(pid)
    finally:
        killed.kill()
        killed.wait()


def test_a_process_that_got_the_number_of_ours_is_left_alone(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    there = ProcessId.of(sleeper.pid)
    assert there is not None
    for record in (
        note(tmp_path / "other-start", sleeper.pid, start_time=there.start_time - 1),
        note(tmp_path / "other-boot", sleeper.pid, boot="another boot"),
    ):
        assert end_lost([record]) == 0
        assert not record.exists()
    assert sleeper.poll() is None
    assert end_lost([note(tmp_path / "same", sleeper.pid)]) == 1
    assert sleeper.wait() == -signal.SIGTERM


@pytest.mark.broad
def test_a_process_that_ignores_the_order_to_end_is_killed(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        assert end_lost([note(tmp_path / "p", stubborn.pid)]) == 1
        assert stubborn.wait() == -signal.SIGKILL


@pytest.mark.parametrize("text", ["", "{", '{"pid": 1}', "null", '{"pid": -1, "start_time": 0, "boot_id": "x"}'])
def test_half_a_record_is_no_process(text: str, tmp_path: Path) -> None:
    path = tmp_path / "process.json"
    path.write_text(text)
    assert end_lost([path, tmp_path / "missing.json"]) == 0
    assert not path.exists()
