"""The canary's program in the box: tries what must fail and prints the results as one JSON object.

What belongs to the host is only asked for with access(2), and opened for writing at most: if the box does not hold, a
write there would change the host.
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


def _changes(path: Path) -> bool:
    try:
        path.chmod(0o700)
    except OSError:
        return False
    return True


def _may_write(path: str) -> bool:
    """Return whether the process could write to a path, without writing."""
    if not os.access(path, os.W_OK):
        return False
    try:
        os.close(os.open(path, os.O_WRONLY | (os.O_TMPFILE if Path(path).is_dir() else 0), 0o600))
    except PermissionError:
        return False
    except OSError:
        return True  # a file system without files that have no name: the permissions are all that is known
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
        "changed_inside": _changes(Path("inside")),
        "wrote_outside": _writes(Path(outside) / "escaped"),
        "changed_outside": _changes(Path(outside)),
        "connected": _connects(int(port)),
        "home": _lists(home),
        "writable": [path for path in guarded if _may_write(path)],
        "root": os.getuid() == 0,
        "capable": "CapEff:\t0000000000000000" not in Path("/proc/self/status").read_text(encoding="ascii"),
    }
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    _main(*sys.argv[1:])
