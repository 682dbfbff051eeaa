"""What is shown of an agent's words while it works: the last lines, as they come, and never a part of a secret."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agents.dispatch.transcript import LiveWords
from pipeline.process import Command
from pipeline.sandbox.boxes.children import Lines
from pipeline.sandbox.boxes.nobox import NoBox

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "correct-horse-battery"
KEY = "\n".join(["-----BEGIN PRIVATE KEY-----", *("QUJD" * 16 for _ in range(40)), "-----END PRIVATE KEY-----"])
WORDS = f"reads app.py\nhas {SECRET} at hand\n{KEY}\nwrites it down\rthe end: {SECRET}\nis"


def heard_in(chunks: list[bytes], words: LiveWords) -> list[tuple[str, ...]]:
    lines = Lines(lambda line: words.hear(line.decode()))
    told: list[tuple[str, ...]] = []
    for chunk in chunks:
        lines.take(chunk)
        told.append(words.said())
    return told


@given(st.lists(st.integers(1, len(WORDS) - 1), max_size=12, unique=True))
def test_no_part_of_a_secret_is_told_wherever_chunks_end(cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), len(WORDS)]
    chunks = [WORDS[a:b].encode() for a, b in itertools.pairwise(ends)]
    told = heard_in(chunks, LiveWords([SECRET]))
    assert told[-1] == ("has [redacted] at hand", "[redacted]", "writes it down", "the end: [redacted]")
    shown = "\n".join(line for lines in told for line in lines)
    assert not any(part in shown for part in (SECRET[:8], SECRET[-8:], "QUJDQUJD"))


def test_a_long_line_is_cut_after_its_secrets_were_taken_out_and_a_longer_one_is_not_told() -> None:
    words = LiveWords(["s" * 3_000])
    words.hear("x" * 150 + "s" * 3_000)
    assert words.said() == ("x" * 150 + "[redacted]",)
    told = heard_in([b"y" * 200_000, b"y" * 200_000, b"\nafter\n"], words)
    assert told[-1] == ("x" * 150 + "[redacted]", "after")


def test_words_take_no_more_room_however_much_is_said() -> None:
    words = LiveWords([])
    for number in range(100_000):
        words.hear(f"line {number}")
    assert words.said() == tuple(f"line {number}" for number in range(99_996, 100_000))
    assert sum(map(len, words._lines)) < 70_000  # noqa: SLF001  (what it holds is the promise)


@pytest.mark.slow
def test_lines_are_heard_while_the_command_runs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "answer")
    heard: list[bytes] = []

    def hear(line: bytes) -> None:
        heard.append(line)
        if line == b"here":  # the command waits for this one
            (tmp_path / "answer").write_text("go on\n")

    command = Command(("/bin/sh", "-c", "echo here; cat answer; echo >&2 there"), tmp_path, on_line=hear)
    ended = anyio.run(NoBox().run, command)
    assert (ended.stdout, ended.stderr) == (b"here\ngo on\n", b"there\n")
    assert sorted(heard) == [b"go on", b"here", b"there"]
