"""redfirst without its start: one process imports it for all workers, and a fork of it is each `redfirst` of a test.

Importing is a quarter of what a short run costs, and nearly all of what `redfirst show` costs. The fork is a process of
its own, with its own folder, environment and standard streams, and runs what the console script runs; only the start of
the interpreter and the imports are shared. Tests of that start use `kit.REDFIRST` itself, and `TESTS_EXEC=1`
makes every test do so.
"""

from __future__ import annotations

import contextlib
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
SESSION: Final = "TESTS_SESSION"
"""The process id of the run of tests, for all its workers (`conftest.py`)."""
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
        _connect(line, language)
        request = json.dumps({"argv": [str(word) for word in argv], "cwd": str(cwd), "env": dict(env)}).encode()
        socket.send_fds(line, [_LENGTH.pack(len(request))], [nothing.fileno(), out.fileno(), err.fileno()])
        line.sendall(request)
        (process,) = _LENGTH.unpack(_receive(line, _LENGTH.size))
        line.settimeout(timeout)
        try:
            (status,) = _STATUS.unpack(_receive(line, _STATUS.size))
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):  # it ended just now
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


def _connect(line: socket.socket, language: str) -> None:
    """Connect to the process that forks; the first who asks for it starts it, for all workers of this run of tests."""
    session = os.environ.setdefault(SESSION, str(os.getpid()))
    address = f"\0redfirst-tests-{session}-{language}"
    try:
        line.connect(address)
    except ConnectionRefusedError:
        _start(address, language)
        line.connect(address)


def _start(address: str, language: str) -> None:
    """Start the process that forks, unless another worker just did; return once it can be connected to."""
    here, there = socket.socketpair()
    env = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONPATH": "", LANGUAGE: language}
    # no `Popen`: nobody waits for it, and one that is dropped while its process lives warns
    command = [sys.executable, "-P", str(Path(__file__).resolve()), address[1:]]
    os.posix_spawn(sys.executable, command, env, file_actions=[(os.POSIX_SPAWN_DUP2, there.fileno(), 0)])
    there.close()
    with here:
        here.recv(1)


# --- the process that forks ----------------------------------------------------------------------------------------


def _load() -> None:
    """Import what `redfirst` may import, whatever it is asked for, and make what it makes once in its life."""
    sys.argv[0] = "redfirst"
    if os.environ[LANGUAGE]:
        sys.path.append(str(Path(__file__).parent))
        importlib.import_module(os.environ[LANGUAGE]).add_to_table()
    pipeline = importlib.import_module("pipeline")
    importlib.import_module("redfirst")
    for module in pkgutil.walk_packages(pipeline.__path__, "pipeline."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    kinds = importlib.import_module("pipeline.judge.reports.kinds")
    for kind in kinds.KINDS.values():  # a whole run makes these schemas once, which is an eighth of what it costs
        for role in kind.by_role:
            kinds.report_schema(kind.name, role)


def _listen(address: str) -> socket.socket:
    """Return the socket that is connected to, and say so to who started us; end where another process has it."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        door.bind(f"\0{address}")  # a name that is in no folder, and gone with us
    except OSError:
        os._exit(0)
    door.listen(64)
    os.close(0)
    os.open(os.devnull, os.O_RDONLY)
    return door


def _serve(door: socket.socket) -> Asked:
    """Answer until the run of tests has ended; return only in a fork, with what it was asked for."""
    owner = os.pidfd_open(int(os.environ[SESSION]))
    while True:
        ready, _, _ = select.select([owner, door], [], [])
        if owner in ready:
            os._exit(0)
        line, _ = door.accept()
        if os.fork() == 0:
            os.close(owner)
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
    listening = _listen(sys.argv[1])  # who connects before everything is imported waits
    _load()
    gc.collect()
    gc.freeze()  # what is shared is not written to by a fork that collects
    _become(_serve(listening))
