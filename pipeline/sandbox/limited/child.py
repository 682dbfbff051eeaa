"""The child process: takes requests, calls the function that each names, and answers, until its input ends.

It has its pipes and nothing else: no environment, no right to write files, and no more memory than it needs. Each
request has its share of the processor's time; the kernel ends the process if that does not do. Whatever it cannot do,
it does not come back from, or says that it failed: its driver holds both for the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import resource
import struct
import sys
import threading
from importlib import import_module
from typing import IO, Final

from pipeline.sandbox.limited.values import dump

HEAD: Final = struct.Struct("!QI")
"""The header of a request: its length, and the seconds that it may take."""
LENGTH: Final = struct.Struct("!Q")
"""The header of an answer, after `DONE` or `FAILED`: its length."""
DONE: Final = b"+"
FAILED: Final = b"-"
MEMORY: Final = 2 << 30
"""The address space of the child in bytes; the parsers of all languages take a tenth of it."""
_DEPTH: Final = 5_000
"""The limit of nested calls: people's sources need a tenth of it, generated tables are long sums."""
_STACK: Final = 256 << 20
_FILES: Final = 32
_MOST_DESCRIPTORS: Final = 1 << 20
_NO_NEW_PRIVILEGES: Final = 38


def main() -> None:
    """Answer the requests on standard input until it ends, on standard output."""
    os.closerange(3, _MOST_DESCRIPTORS)  # what the driver lets its children inherit is not for this one
    os.chdir("/")
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
    threading.stack_size(_STACK)  # what is nested deeply is to meet the limit of depth, not the end of the stack
    reading = threading.Thread(target=_serve, args=(requests, answers), daemon=True)
    reading.start()
    reading.join()
    os._exit(0)


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    _confine()
    _answer(answers, DONE, b"")
    while head := requests.read(HEAD.size):
        length, seconds = HEAD.unpack(head)
        module, name, args, kwargs = pickle.loads(requests.read(length))  # noqa: S301  (the driver's own)
        _allow(seconds)
        try:
            found = dump(getattr(import_module(module), name)(*args, **kwargs))
        except RecursionError:
            _answer(answers, FAILED, b"it is nested too deeply")
        except MemoryError:
            _answer(answers, FAILED, b"it takes too much memory")
        except Exception as error:  # noqa: BLE001  (whatever a source makes of a reader, it could not be read)
            _answer(answers, FAILED, f"its reader failed ({type(error).__name__})".encode())
        else:
            _answer(answers, DONE, found)


def _answer(answers: IO[bytes], how: bytes, what: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        answers.write(how + LENGTH.pack(len(what)) + what)
        answers.flush()


def _confine() -> None:
    sys.setrecursionlimit(_DEPTH)
    limits = {
        resource.RLIMIT_AS: MEMORY,
        resource.RLIMIT_NOFILE: _FILES,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for what, most in limits.items():
        _, hard = resource.getrlimit(what)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))


def _allow(seconds: int) -> None:
    """Limit the processor seconds that the process may use from now on; the kernel ends it after that."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
