"""A terminal for tests: a pseudo-terminal that a program runs on, and the screen that comes of what it writes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

INTERRUPT = b"\x03"


@dataclass
class Screen:
    """What is to be seen of what was written: line breaks, returns, wrapped lines, `ESC [ J` and `ESC [ n A`."""

    columns: int
    rows: list[list[str]] = field(default_factory=lambda: [[]])
    row: int = 0
    column: int = 0

    def feed(self, text: str) -> Self:
        """Take what is written."""
        for piece in re.split(r"(\x1b\[(?:J|\d+A))", text):
            if piece == "\x1b[J":
                del self.rows[self.row + 1 :]
                del self.rows[self.row][self.column :]
            elif piece.startswith("\x1b[") and piece.endswith("A"):
                self.row = max(self.row - int(piece[2:-1]), 0)
            else:
                for char in piece:
                    self._take(char)
        return self

    def _take(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self._down()
        else:
            width = 2 if unicodedata.east_asian_width(char) in "WF" else 1
            if self.column + width > self.columns:
                self._down()
                self.column = 0
            row = self.rows[self.row]
            row += [" "] * (self.column + width - len(row))
            row[self.column : self.column + width] = [char] + [""] * (width - 1)
            self.column += width

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    @property
    def lines(self) -> list[str]:
        """Return what is to be seen, from the top."""
        return ["".join(row).rstrip() for row in self.rows]


class Terminal:
    """A terminal of so many columns; what was written to it is in `text`."""

    def __init__(self, columns: int = 80) -> None:
        self.ours, self.theirs = pty.openpty()
        self.stream = os.fdopen(os.dup(self.theirs), "w", encoding="utf-8")
        self.text = ""
        self.resize(columns)

    def resize(self, columns: int) -> None:
        """Give it another width."""
        self.columns = columns
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read(self) -> str:
        """Return what was written since, without waiting."""
        new = ""
        while select.select([self.ours], [], [], 0)[0]:
            try:
                data = os.read(self.ours, 65536)
            except OSError:  # nobody has it open any more
                break
            if not data:
                break
            new += data.decode()
        self.text += new
        return new

    def screen(self) -> list[str]:
        """Return what is to be seen."""
        self.read()
        return Screen(self.columns).feed(self.text).lines

    def close(self) -> None:
        """Close both ends."""
        self.stream.close()
        os.close(self.ours)
        os.close(self.theirs)


@dataclass
class OnTerminal:
    """A program that has a terminal of its own, and is its foreground job."""

    pid: int
    handle: int
    text: str = ""

    @classmethod
    def start(cls, argv: Sequence[str], cwd: Path, env: Mapping[str, str], columns: int = 80) -> OnTerminal:
        """Start a program."""
        pid, handle = pty.fork()
        if pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
                os.chdir(cwd)
                os.execve(argv[0], list(argv), {**env, "TERM": "xterm"})  # noqa: S606  (there is none)
            finally:
                os._exit(127)
        return cls(pid, handle)

    def wait_for(self, there: Callable[[str], bool], within_s: float = 60) -> None:
        """Return when what was written is as it should be; an error when the program ends before."""
        end = time.monotonic() + within_s
        while not there(self.text):
            ready, _, _ = select.select([self.handle], [], [], max(0.0, end - time.monotonic()))
            assert ready, self.text
            data = self._read()
            assert data, self.text
            self.text += data

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.handle, keys)

    def end(self) -> int:
        """Read until the program ends; return its exit code."""
        while data := self._read():
            self.text += data
        _, status = os.waitpid(self.pid, 0)
        os.close(self.handle)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> str:
        try:
            return os.read(self.handle, 65536).decode(errors="replace")
        except OSError:
            return ""
