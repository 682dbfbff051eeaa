"""Commands and scripts in the Landlock box, and system calls by their numbers: the kit of its tests."""

from __future__ import annotations

import json
import platform
import sys
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest

from pipeline.dispatch.landlock import Landlock
from pipeline.dispatch.landlock_kernel import missing_landlock
from pipeline.dispatch.syscalls import NUMBERS
from pipeline.process import Command, Completed, Mount
from pipeline.programs import locate

if TYPE_CHECKING:
    from pathlib import Path

needs_landlock: Final = pytest.mark.skipif(
    bool(missing_landlock()) or platform.machine() not in NUMBERS, reason=f"no Landlock box: {missing_landlock()}"
)
PYTHON: Final = locate(sys.executable)
CALLS: Final = NUMBERS.get(platform.machine(), {})

PRELUDE: Final = f"""
import ctypes, errno, fcntl, json, os, sys
given = json.loads(sys.argv[1])
numbers = {json.dumps(dict(CALLS))}
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    words = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in arguments]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(name if isinstance(name, int) else numbers[name]), *words)
    return ctypes.get_errno() if result < 0 else 0


def tried(work, *arguments, **named):
    try:
        work(*arguments, **named)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"


def say(value):
    print(json.dumps(value))
"""


def run(*argv: str, cwd: Path, mounts: tuple[Mount, ...] = (), timeout_s: float = 60.0) -> Completed:
    """Run a program in the box."""
    return anyio.run(Landlock().run, Command(argv, cwd, mounts, timeout_s=timeout_s))


def sh(script: str, cwd: Path, *mounts: Mount, timeout_s: float = 60.0) -> Completed:
    """Run a shell script in the box."""
    return run("/bin/sh", "-c", script, cwd=cwd, mounts=mounts, timeout_s=timeout_s)


def said(script: str, cwd: Path, *mounts: Mount, given: object = None) -> Any:
    """Run a Python script in the box, and return what it says."""
    argv = PYTHON.argv("-I", "-c", PRELUDE + script, json.dumps(given))
    ended = run(*argv, cwd=cwd, mounts=(*PYTHON.mounts, *mounts))
    assert ended.exit_code == 0, ended.stderr.decode()
    return json.loads(ended.stdout)


def writable(folder: Path) -> Mount:
    """Return a mount of a folder that may be changed."""
    return Mount(folder, folder, writable=True)


def read_only(path: Path) -> Mount:
    """Return a mount of what may only be read."""
    return Mount(path, path)
