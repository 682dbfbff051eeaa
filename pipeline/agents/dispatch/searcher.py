"""The search program in the box: prints the lines of the workspace that match a pattern. See `Workbench.search`.

A program of its own, so that a pattern which never comes to an end is ended by the box's time limit. Python's own
regular expressions, because they are what models write.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_PATTERN = 3
NO_PLACE = 4
_MATCHES = 200
_FILES = 50_000
_BYTES = 2_000_000
_WIDTH = 300


def main(pattern: str, place: str) -> int:
    """Print the matches below *place* up to a limit; return the exit code."""
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        print(error)  # noqa: T201  (this is how the program answers)
        return NO_PATTERN
    if not os.path.lexists(place) or _leads_elsewhere(place):
        return NO_PLACE
    found = list(islice(_matches(compiled, place), _MATCHES + 1))
    for line in found[:_MATCHES]:
        sys.stdout.buffer.write(line.encode(errors="replace") + b"\n")
    if len(found) > _MATCHES:
        print(f"[only the first {_MATCHES} matches are shown; search for less]")  # noqa: T201
    return 0


def _leads_elsewhere(place: str) -> bool:
    parts = place.split("/")
    return any(os.path.islink("/".join(parts[:end])) for end in range(1, len(parts) + 1))  # noqa: PTH114


def _matches(compiled: re.Pattern[str], place: str) -> Iterator[str]:
    for path in islice(_files(place), _FILES):
        content = _text(path)
        for number, line in enumerate(content.split("\n"), start=1):
            if compiled.search(line):
                yield f"{path}:{number}: {line[:_WIDTH].rstrip()}"


def _files(place: str) -> Iterator[str]:
    if os.path.isfile(place):  # noqa: PTH113
        yield place
    for at, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name not in {".git", "__pycache__"})
        yield from (os.path.join(at, name).removeprefix("./") for name in sorted(names))  # noqa: PTH118


def _text(path: str) -> str:
    """Return the text of a file; empty if it is no regular file, too large or a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123  (a descriptor)
            status = os.fstat(descriptor)
            content = file.read() if stat.S_ISREG(status.st_mode) and status.st_size <= _BYTES else b""
    except OSError:
        return ""
    return "" if b"\0" in content else content.decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
