"""The channel of our programs in the box: they read a request from a socket and write records to it.

Runners inside the box use it: the standard library only. Standard streams would not do: the init of the box has them
too, and a pipe can be opened by name through its folder in `/proc`, by whatever a test has left running.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
from typing import Any

_PR_SET_DUMPABLE = 4


def begin() -> tuple[dict[str, Any], Records]:
    """Return the request and the writer of records; from now on no other process can inspect this one."""
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    descriptor = int(os.environ.pop("REDFIRST_SOCKET"))
    os.set_inheritable(descriptor, False)
    parts: list[bytes] = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    request: dict[str, Any] = json.loads(b"".join(parts))
    return request, Records(descriptor, request["nonce"])


class Records:
    """Writes numbered records with the nonce to the socket. Several threads may write."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        self._descriptor = descriptor
        self._nonce = nonce
        self._count = 0
        self._lock = threading.Lock()

    def write(self, kind: str, **facts: Any) -> None:
        """Write one record at once."""
        with self._lock:
            line = {**facts, "kind": kind, "nonce": self._nonce, "n": self._count}
            self._count += 1
            left = memoryview(json.dumps(line).encode() + b"\n")
            while left:
                left = left[os.write(self._descriptor, left) :]
