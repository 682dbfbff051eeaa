"""The socket for the request and the records: it has no path, so that nobody can open it or read records back."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

SOCKET_VARIABLE = "REDFIRST_SOCKET"


def read_request() -> list[tuple[int, dict[str, Any]]]:
    """Return the socket and the request received from it, once; empty in a process that has none."""
    number = os.environ.pop(SOCKET_VARIABLE, None)
    os.environ.pop("PY_IGNORE_IMPORTMISMATCH", None)  # a module in the place of another is what is looked for
    if number is None:
        return []
    descriptor = int(number)
    os.set_inheritable(descriptor, False)
    parts: list[bytes] = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    return [(descriptor, json.loads(b"".join(parts)))]


class Records:
    """Writes records to the socket, one line each, with the nonce and a running number."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        # a raw descriptor: a file object would warn when the interpreter dies with it, which some projects make fatal
        self._descriptor = descriptor
        self._nonce = nonce
        self._count = 0
        self._owner = os.getpid()

    def write(self, kind: str, **facts: Any) -> None:
        """Write one record; a forked child writes none, because it would repeat its parent's."""
        if os.getpid() != self._owner:
            return
        # a signal in the middle of a record would put what its handler writes there
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            line = {"nonce": self._nonce, "n": self._count, "kind": kind}
            line.update(facts)
            self._count += 1
            text = json.dumps(line, sort_keys=True, ensure_ascii=False)
            left = text.encode("utf-8", "replace") + b"\n"  # a lone surrogate is not valid JSON
            while left:
                left = left[os.write(self._descriptor, left) :]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
