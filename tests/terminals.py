"""redfirst on a terminal of a given width: what a person sees, without colour."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

from kit import REDFIRST

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(*argv: str, cwd: Path, env: Mapping[str, str], columns: int = 80) -> tuple[int, str]:
    """Run redfirst with stdout and stderr on one terminal; return its exit code and what was printed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in env.items() if name not in {"COLUMNS", "NO_COLOR"}}
    child = subprocess.Popen(
        [REDFIRST, *argv],
        cwd=cwd,
        env={**environment, "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # the last one that had it open has ended
            break
        if not more:
            break
        printed += more
    os.close(ours)
    return child.wait(), _COLOUR.sub("", printed.decode()).replace("\r\n", "\n")


def answered(*argv: str, cwd: Path, env: Mapping[str, str], asks: str, says: str) -> tuple[int, str]:
    """Run redfirst at a terminal and answer its question once it shows *asks*; return as `on_terminal` does."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(cwd)
        os.execve(REDFIRST, [str(REDFIRST), *argv], {**env, "TERM": "xterm"})  # noqa: S606
    printed, told = b"", False
    while True:
        try:
            printed += os.read(terminal, 65536)
        except OSError:  # it has closed
            break
        if not told and asks.encode() in printed:
            told = os.write(terminal, f"{says}\n".encode()) > 0
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), _COLOUR.sub("", printed.decode()).replace("\r\n", "\n")
