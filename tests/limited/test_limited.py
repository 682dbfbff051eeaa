"""The child that reads: what it may, how it ends, and that nobody is left behind."""

from __future__ import annotations

import contextlib
import linecache
import os
import select
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judge.evidence.red_classes import RedClass, Symbol
from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.sandbox.limited.values import NonsenseError, dump, load
from pipeline.testing.languages.sources import forgery, known_answers
from pipeline.testing.languages.sources.faults import Mutant, Rank

SOURCE = "def test_a():\n    assert f() == 1\n"


def test_it_answers_as_the_reader_does_and_stays() -> None:
    assert limited(known_answers.added)("", SOURCE) == known_answers.added("", SOURCE) != ()
    assert limited(forgery.notes)("a.py", None, b"import gc\n") == forgery.notes("a.py", None, b"import gc\n")
    assert limited(os.getpid)() == limited(os.getpid)() != os.getpid()


def test_it_has_its_pipes_and_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    assert limited(os.getenv)("SECRET") is None
    assert limited(os.getenv)("HOME") is None
    assert limited(os.getcwd)() == "/"
    assert "NoNewPrivs:\t1\n" in limited(linecache.getlines)("/proc/self/status")
    with pytest.raises(UnreadableError, match=r"its reader failed \(OSError\)"):
        limited(shutil.copyfile)(__file__, str(tmp_path / "copy"))
    assert set(limited(os.listdir)("/proc/self/fd")) <= {str(number) for number in range(8)}


@pytest.mark.slow
def test_what_fails_crashes_or_needs_too_much_is_said_and_the_next_call_works() -> None:
    with pytest.raises(UnreadableError, match=r"^cannot be read: its reader failed \(ValueError\)$"):
        limited(int)("x")
    with pytest.raises(UnreadableError, match=r"^cannot be read: its reader failed \(TypeError\)$"):
        limited(object)()
    with pytest.raises(UnreadableError, match=r"^cannot be read: it takes too much memory$"):
        limited(bytes)(8 << 30)
    with pytest.raises(UnreadableError, match=r"^cannot be read: it is too large$"):
        limited(len)(b"x" * (65 << 20))
    before = limited(os.getpid)()
    with pytest.raises(UnreadableError, match=r"^cannot be read: its reader crashed$"):
        limited(os.abort)()
    assert limited(os.getpid)() != before


@pytest.mark.slow
@pytest.mark.broad
def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(UnreadableError, match=r"^cannot be read: it takes too long$"):
        limited(sum)(range(10**12))
    assert limited(len)(b"abc") == 3


@pytest.mark.slow
def test_a_fork_has_a_child_of_its_own() -> None:
    mine = limited(os.getpid)()
    fork = os.fork()
    if not fork:
        code = 1
        try:
            code = 0 if limited(os.getpid)() != mine else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) == 0
    assert limited(os.getpid)() == mine


DRIVER = """
import os, sys
from pipeline.sandbox.limited import limited
print(limited(os.getpid)(), flush=True)
sys.stdin.read()
"""


@pytest.mark.broad(but_first=1)
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_it_ends_with_its_driver_however_that_ends(how: signal.Signals | None) -> None:
    with subprocess.Popen([sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        reader = os.pidfd_open(int(driver.stdout.readline()))
        if how is not None:
            driver.send_signal(how)
        driver.stdin.close()
        driver.wait()
    try:
        assert select.select([reader], [], [], 10)[0], "it is still there"
    finally:
        os.close(reader)


VALUES = [
    None, True, 0, 1.5, "", "lone \udc80 surrogate", b"\0\xff", (), (1, ("a",)), [1], {1, 2}, frozenset({"a"}),
    {"a": b"b", ("t", 1): None}, RedClass.TEST_BROKEN, Rank.EFFECT, Symbol("a.py", "A.b"),
    Mutant("a.py", 1, "what", 0, 1, b"x", "f", Rank.TEXT),
    {"a": (Symbol("a.py", "A"), {"skip": (Rank.TEXT,)})},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_as_they_were(value: object) -> None:
    again = load(dump(value))
    assert again == value
    assert type(again) is type(value)


@dataclass
class NotOurs:
    name: str


@pytest.mark.parametrize(
    "value", [object(), print, NotOurs("a"), Path("/")], ids=["object", "function", "class", "path"]
)
def test_what_is_no_plain_value_is_not_written(value: object) -> None:
    with pytest.raises(TypeError):
        dump(value)


@pytest.mark.parametrize(
    "written",
    [
        b"", b"{", b"{}", b"[]", b'["data"]', b'["data", "os:system", "true"]', b'["data", "pipeline.process:sys"]',
        b'["enum", "pipeline.judge.evidence.red_classes:Symbol", "A"]',
        b'["data", "pipeline.sandbox.limited.process:os", 1]',
        b'["data", "pipeline.judge.evidence.classify:Symbol"]', b'["data", "pipeline.nothing:A"]', b'["bytes", "*"]',
        b'["tuple", {}]', b'["dict", 1]', b'["dict", [["list"], 1]]', b'[["tuple"], 1]', b"[" * 100_000,
        b'["data", "pipeline.pids:ProcessId", 1, 2, "a"]', b'["enum", "pipeline.sandbox.limited.values:Any", "a"]',
    ],
)  # fmt: skip
def test_what_somebody_else_wrote_makes_nothing(written: bytes) -> None:
    with pytest.raises(NonsenseError):
        load(written)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_nonsense(written: bytes) -> None:
    with contextlib.suppress(NonsenseError):
        load(written)
