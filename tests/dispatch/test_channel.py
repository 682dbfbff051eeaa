"""The socket between the driver and a command: what goes in and comes out, who may write, and how much."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from waiting import longer_limits

from pipeline.process import NO_ANSWER, Answer, Command, Completed, Mount
from pipeline.programs import locate
from pipeline.sandbox.boxes.bubblewrap import Bubblewrap
from pipeline.sandbox.boxes.limits import BOX_USER
from pipeline.sandbox.boxes.nobox import NoBox

if TYPE_CHECKING:
    from pipeline.process import Box

BWRAP = shutil.which("bwrap")
BOXES = [
    pytest.param(NoBox(), id="none"),
    pytest.param(Bubblewrap(BWRAP or "bwrap"), id="bubblewrap"),
    pytest.param(
        Bubblewrap(BWRAP or "bwrap", BOX_USER),
        id="bubblewrap-as-another-user",
        marks=pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user"),
    ),
]
ECHO = """
import os
number = int(os.environ["REDFIRST_SOCKET"])
asked = b"".join(iter(lambda: os.read(number, 1 << 16), b""))
"""


def run(box: Box, code: str, request: bytes, limit: int = 1_000_000, timeout_s: float = 30.0) -> Completed:
    """Return how a Python program with a request ended."""
    python = locate(sys.executable)
    command = Command(
        argv=python.argv("-I", "-S", "-c", ECHO + code),
        cwd=Path("/"),
        mounts=python.mounts,
        request=request,
        answer_limit=limit,
        timeout_s=timeout_s,
    )
    return anyio.run(box.run, command)


@pytest.mark.parametrize("box", BOXES)
def test_a_command_reads_its_request_and_answers(box: Box) -> None:
    request = os.urandom(700_000)  # more than a socket holds
    done = run(box, "while asked: asked = asked[os.write(number, asked):]", request)
    assert (done.exit_code, done.answer) == (0, Answer(request))


@pytest.mark.parametrize("box", BOXES)
def test_a_command_that_does_not_read_its_request_ends_all_the_same(box: Box) -> None:
    python = locate(sys.executable)
    argv = python.argv("-I", "-S", "-c", "print('early')")
    done = anyio.run(box.run, Command(argv=argv, cwd=Path("/"), mounts=python.mounts, request=bytes(5_000_000)))
    assert (done.exit_code, done.stdout, done.answer) == (0, b"early\n", NO_ANSWER)


@pytest.mark.parametrize("box", BOXES)
def test_more_than_the_limit_is_not_kept(box: Box) -> None:
    done = run(box, "while True: os.write(number, bytes(100_000))", b"", limit=300_000)
    assert done.answer.fault == "the records are larger than 300000 bytes"
    assert len(done.answer.data) <= 300_000
    assert done.exit_code == 1, "who writes on is told that nobody reads"


@pytest.mark.parametrize("box", BOXES)
def test_what_another_process_writes_is_a_fault(box: Box) -> None:
    forks = """
os.write(number, b"mine")
if os.fork() == 0:
    os.write(number, b"not mine")
    os._exit(0)
os.wait()
"""
    done = run(box, forks, b"")
    assert done.answer == Answer(b"mine", "another process wrote into the records")


@pytest.mark.parametrize("box", BOXES)
def test_a_socket_cannot_be_opened_by_its_name(box: Box) -> None:
    opens = """
for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
    try:
        os.open(f"/proc/self/fd/{number}", mode)
    except OSError as error:
        os.write(number, type(error).__name__.encode() + b" ")
"""
    assert run(box, opens, b"").answer.data == b"OSError OSError OSError "


STRANGER = """
import subprocess, sys
os.write(number, b"the record")
print("what is printed", flush=True)
looks = '''
import os
for process in filter(str.isdigit, os.listdir("/proc")):
    for descriptor in (os.listdir(f"/proc/{process}/fd") if os.access(f"/proc/{process}/fd", os.R_OK) else ()):
        place = f"/proc/{process}/fd/{descriptor}"
        for mode in (os.O_RDONLY, os.O_WRONLY):
            try:
                kind = os.readlink(place).partition(":")[0]
                os.close(os.open(place, mode | os.O_NONBLOCK))
                print(kind, "of init" if process == "1" else "", flush=True)
            except OSError:
                pass
'''
argv = [sys.executable, "-I", "-S", "-c", looks]
os.write(number, b"|" + subprocess.run(argv, stdout=subprocess.PIPE, start_new_session=True).stdout)
"""


@pytest.mark.parametrize("box", BOXES[1:])
def test_what_was_started_beside_a_command_cannot_open_its_socket_as_it_can_the_pipes_of_the_init(box: Box) -> None:
    record, _, opened = run(box, STRANGER, b"").answer.data.decode().partition("|")
    assert record == "the record"
    kinds = {line.strip() for line in opened.splitlines()}
    assert not [kind for kind in kinds if kind.startswith("socket")]
    if isinstance(box, Bubblewrap) and box.owner is None:
        assert "pipe of init" in kinds, "the control: a pipe of the box can be opened by name"


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.slow
@pytest.mark.broad(but_first=1)
def test_a_command_that_never_ends_is_ended_with_what_it_said(box: Box) -> None:
    program = "os.write(number, b'begun')\nwhile True: os.read(0, 1) or os.sched_yield()"
    ended = (run(box, program, b"", timeout_s=limit) for limit in longer_limits(1))
    done = next(each for each in ended if each.answer.data)
    assert done.timed_out
    assert done.answer == Answer(b"begun")


def test_without_a_request_there_is_no_socket() -> None:
    python = locate(sys.executable)
    argv = python.argv("-I", "-S", "-c", "import os; print('REDFIRST_SOCKET' in os.environ)")
    done = anyio.run(NoBox().run, Command(argv=argv, cwd=Path("/")))
    assert done.stdout == b"False\n"
    assert done.answer == NO_ANSWER


def test_a_mount_of_the_command_is_shown_as_without_a_request(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("seen")
    python = locate(sys.executable)
    command = Command(
        argv=python.argv("-I", "-S", "-c", ECHO + "os.write(number, open('/shown/file', 'rb').read() + asked)"),
        cwd=Path("/"),
        mounts=(*python.mounts, Mount(tmp_path, Path("/shown"))),
        request=b" and asked",
    )
    assert anyio.run(Bubblewrap(BWRAP or "bwrap").run, command).answer == Answer(b"seen and asked")
