"""redfirst without its start: one process imports it once, and a fork of that process is each `redfirst` of a test.

Importing is a quarter of what a short run costs, and nearly all of what `redfirst show` costs. The fork is a process of
its own, with its own folder, environment and standard streams, and runs what the console script runs; only the start of
the interpreter and the imports are shared. Tests of that start use `kit.REDFIRST` itself, and `TESTS_EXEC=1`
makes every test do so.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLAIN: Final = "TESTS_EXEC"
LANGUAGE: Final = "TESTS_LANGUAGE"
"""A package of tests with a language that is to be in the table (`languages.sums`), where the environment names one."""
_LENGTH: Final = struct.Struct("!I")
_STATUS: Final = struct.Struct("!i")


@dataclass(frozen=True)
class Asked:
    """What a fork is to be."""

    argv: list[str]
    cwd: str
    env: dict[str, str]


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Run `redfirst` to its end as `subprocess.run` would, without a standard input.

    Args:
        argv: The program's path, then its arguments; a Python file is run with everything of redfirst imported.
        cwd: Its folder.
        env: Its whole environment.
        timeout: Seconds until it is killed.

    Raises:
        subprocess.TimeoutExpired: it did not end in time.
    """
    language = env.get(LANGUAGE, "")
    if os.environ.get(PLAIN) and not language:
        return subprocess.run(
            [sys.executable, "-P", *argv] if argv[0].endswith(".py") else argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        Path(os.devnull).open("rb") as nothing,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line,
    ):
        line.connect(_server(language))
        request = json.dumps({"argv": [str(word) for word in argv], "cwd": str(cwd), "env": dict(env)}).encode()
        socket.send_fds(line, [_LENGTH.pack(len(request))], [nothing.fileno(), out.fileno(), err.fileno()])
        line.sendall(request)
        (process,) = _LENGTH.unpack(_receive(line, _LENGTH.size))
        line.settimeout(timeout)
        try:
            (status,) = _STATUS.unpack(_receive(line, _STATUS.size))
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            line.settimeout(None)
            _receive(line, _STATUS.size)  # it is dead, and reaped
            raise subprocess.TimeoutExpired(argv, timeout, _text(out), _text(err)) from None
        return subprocess.CompletedProcess(argv, os.waitstatus_to_exitcode(status), _text(out), _text(err))


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8").replace("\r\n", "\n")


def _receive(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = line.recv(size - len(data))
        if not part:
            raise ConnectionError("the process that forks redfirst is gone")
        data += part
    return data


@functools.cache
def _server(language: str) -> str:
    """Start the process that forks, once for each process of tests; return its address, once it can be asked."""
    here, there = socket.socketpair()
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": "", LANGUAGE: language}
    # no `Popen`: nobody waits for it, and one that is dropped while its process lives warns
    command = [sys.executable, "-P", str(Path(__file__).resolve())]
    os.posix_spawn(sys.executable, command, env, file_actions=[(os.POSIX_SPAWN_DUP2, there.fileno(), 0)])
    there.close()
    _HELD.append(here)
    return here.recv(256).decode()


_HELD: Final[list[socket.socket]] = []
"""Our ends of the lines to those processes: they end when we do."""


# --- the process that forks ----------------------------------------------------------------------------------------


def _load() -> None:
    """Import what `redfirst` may import, whatever it is asked for."""
    sys.argv[0] = "redfirst"
    if os.environ[LANGUAGE]:
        sys.path.append(str(Path(__file__).parent))
        importlib.import_module(os.environ[LANGUAGE]).add_to_table()
    pipeline = importlib.import_module("pipeline")
    importlib.import_module("redfirst")
    for module in pkgutil.walk_packages(pipeline.__path__, "pipeline."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _serve(owner: socket.socket) -> Asked:
    """Answer until the owner has ended; return only in a fork, with what it was asked for."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind("")  # a name of the kernel's choice, in no folder
        door.listen()
        owner.sendall(door.getsockname())
        while True:
            ready, _, _ = select.select([owner, door], [], [])
            if owner in ready:
                os._exit(0)
            line, _ = door.accept()
            if os.fork() == 0:
                owner.close()
                door.close()
                return _fork(line)
            line.close()
            _reap()


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _fork(line: socket.socket) -> Asked:
    """Return in the process that is to be redfirst; its parent tells how it ends."""
    size, streams, _, _ = socket.recv_fds(line, _LENGTH.size, 3)
    asked = Asked(**json.loads(_receive(line, _LENGTH.unpack(size)[0])))
    process = os.fork()
    if process:
        line.sendall(_LENGTH.pack(process))
        _, status = os.waitpid(process, 0)
        with contextlib.suppress(BrokenPipeError):  # nobody waits any more
            line.sendall(_STATUS.pack(status))
        os._exit(0)
    line.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return asked


def _become(asked: Asked) -> NoReturn:
    """Be what the console script would be."""
    os.chdir(asked.cwd)
    os.environ.clear()
    os.environ.update(asked.env)
    time.tzset()
    sys.argv[:] = asked.argv
    if sys.argv[0].endswith(".py"):
        runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit()
    sys.exit(importlib.import_module("redfirst").main())


if __name__ == "__main__":
    _load()
    gc.collect()
    gc.freeze()  # what is shared is not written to by a fork that collects
    _become(_serve(socket.socket(fileno=os.dup(0))))
