"""Runs inside the box, alone: tries what must fail and prints what happened as one JSON object.

`/proc/sys` is only asked with access(2): if the box does not hold, a write there would change the host.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from pathlib import Path


def _writes(path: Path) -> bool:
    try:
        path.write_text("x")
    except OSError:
        return False
    return True


def _connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def _lists(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return [entry.name for entry in Path(folder).iterdir()]
    return []


def _main(outside: str, port: str, home: str) -> None:
    guarded = ("/", "/usr", "/etc", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger")
    answer = {
        "wrote_inside": _writes(Path("inside")),
        "wrote_outside": _writes(Path(outside) / "escaped"),
        "connected": _connects(int(port)),
        "home": _lists(home),
        "writable": [path for path in guarded if os.access(path, os.W_OK)],
        "root": os.getuid() == 0,
    }
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    _main(*sys.argv[1:])
