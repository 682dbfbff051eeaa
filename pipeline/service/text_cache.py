"""Keeps texts in the user's state, each for as long as the files that it follows from are the same.

The program's own files are among them. A file is the same as long as lstat says so; who changes one cannot set its
change time back (`runs/seal.py`). Nothing is imported here that takes time: this is what a kept answer costs.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from _blake2 import blake2b  # hashlib loads a library that takes as long as all the rest of this

TYPE_CHECKING = False  # `typing` takes as long as the rest, too
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    T = TypeVar("T")

TICK_NS = 20_000_000
"""What changes twice within a tick of the file system's clock may look the same: what is so new is not kept."""

_STARTED = time.time_ns()
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120  (no pathlib)
_PACKAGES = ("redfirst", "pipeline", "todo")
_MOST_FILES = 5000
_NOTHING = b"-"
_CODE = b"code "
_UNLOCKED = b"unlocked"
_code_read: set[bytes] = set()
"""Lines for the files of the program that the texts follow from which this process has read."""


def kept_text(kind: str, key: object) -> str | None:
    """Return the text that is kept of some kind under some key, None where none is, or something has changed."""
    try:
        handle = os.open(place_of(kind, key), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(handle, "rb") as file:  # noqa: PTH123  (no pathlib)
            if os.fstat(handle).st_uid != os.geteuid():
                return None
            head, _, text = file.read().partition(b"\n\n")
        times, *lines = head.split(b"\n")
        since, until, size = times.split()
        if not float(since) <= time.time() < float(until) or len(text) != int(size):
            return None
        code = {line for line in lines if line.startswith(_CODE)} - _code_read
        if not all(map(_holds, code)) or not all(_holds(line) for line in lines if not line.startswith(_CODE)):
            return None
        _code_read.update(code)
        return text.decode("utf-8", "surrogatepass")
    except (OSError, ValueError):  # it is not there, or somebody has spoilt it
        return None


def kept_record(kind: str, key: object, read: Callable[[Any], T]) -> T | None:
    """Return what *read* makes of the JSON that is kept, as `kept_text`."""
    import json  # noqa: PLC0415  (not for a text)

    text = kept_text(kind, key)
    try:
        return None if text is None else read(json.loads(text))
    except (KeyError, TypeError, ValueError):  # somebody has spoilt it
        return None


def keep_text(
    kind: str,
    key: object,
    text: str,
    files: Iterable[str],
    *,
    began: int,
    most: int,
    locks: Iterable[str] = (),
    times: tuple[float, float] = (0, float("inf")),
) -> None:
    """Keep a text. It is not kept where it may be another one already; a disk that does not take it costs nothing.

    Args:
        kind: Of the text, which is the name of a folder.
        key: What it is asked for by: anything whose repr says all of it.
        text: The text.
        files: What it was read from, with the folders that were listed; also what was looked for and is not there.
        began: When reading began, in nanoseconds; what has changed since is not kept.
        most: So many texts of the kind are kept, the last ones.
        locks: The files that a process locks as long as the text may be another one at any moment.
        times: From when until when it says the truth.
    """
    try:
        content = text.encode("utf-8", "surrogatepass")
        lines = [f"{times[0]!r} {times[1]!r} {len(content)}".encode()]
        lines += _lines(sorted({*files}), began)
        code = _lines(_code(), _STARTED)
        if any(line.startswith(_NOTHING) for line in code):  # they are in an archive
            return
        lines += _code_read.union(_CODE + line for line in code)
        lines += [_UNLOCKED + b"\t" + os.fsencode(path) for path in locks]
        if not all(_holds(line) for line in lines if line.startswith(_UNLOCKED)):
            return
        _write(place_of(kind, key), b"\n".join(lines) + b"\n\n" + content, most)
    except (OSError, ValueError):
        return


def _lines(paths: list[str], before: int) -> list[bytes]:
    """Return a line for each file.

    Raises:
        ValueError: one has changed since, or they are too many, or a line cannot hold it.
    """
    lines: list[bytes] = []
    for path in map(os.fsencode, paths):
        lines.append(_fact(path) + b"\t" + path)
        if b"\n" in path or len(lines) > _MOST_FILES or _changed(path) >= before - TICK_NS:  # looked at after the fact
            raise ValueError
    return lines


def _holds(line: bytes) -> bool:
    """Return whether a line still says the truth."""
    said, _, path = line.partition(b"\t")
    return not _is_held(path) if said == _UNLOCKED else said.removeprefix(_CODE) == _fact(path)


def _is_held(lock: bytes) -> bool:
    import fcntl  # noqa: PLC0415  (only where there are runs)

    try:
        handle = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # not there, or nothing that a driver holds
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def below(folder: str) -> list[str]:
    """Return a folder and all that is in it; what is not there is only itself."""
    found = [folder]
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found += below(entry.path) if entry.is_dir(follow_symlinks=False) else [entry.path]
    except (FileNotFoundError, NotADirectoryError):
        pass
    return found


def place_of(kind: str, key: object, environ: Mapping[str, str] = os.environ) -> str:
    """Return the file of a text; as `config/folders.py` has it, without pathlib."""
    named = environ.get("XDG_STATE_HOME", "")
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  (no pathlib)
    state = named if named.startswith("/") else f"{home}/.local/state"
    said = repr((key, os.geteuid(), sys.executable, sys.hexversion)).encode("utf-8", "surrogatepass")
    return f"{state}/redfirst/{kind}/{blake2b(said, digest_size=16).hexdigest()}"


def _fact(path: bytes) -> bytes:
    """Return what lstat says of a file, and stat of what a link leads to."""
    try:
        said = _said(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return _NOTHING
    if not said.startswith(b"link"):
        return said
    try:
        return said + b" to " + _said(os.stat(path))  # noqa: PTH116  (no pathlib)
    except OSError:
        return said


def _said(of: os.stat_result) -> bytes:
    kind = b"link" if stat.S_ISLNK(of.st_mode) else b"file"
    facts = (kind, of.st_mode, of.st_dev, of.st_ino, of.st_uid, of.st_size, of.st_mtime_ns, of.st_ctime_ns)
    return b"%s %d %d %d %d %d %d %d" % facts


def _changed(path: bytes) -> int:
    """Return when a file was changed last, or the nearest folder above one that is not there."""
    look: Callable[[bytes], os.stat_result] = os.lstat
    while True:
        try:
            of = look(path)
        except (FileNotFoundError, NotADirectoryError):
            path, look = os.path.dirname(path), os.stat  # noqa: PTH120  (no pathlib)
        else:
            return max(of.st_ctime_ns, os.stat(path).st_ctime_ns if stat.S_ISLNK(of.st_mode) else 0)  # noqa: PTH116


def _code() -> list[str]:
    """Return the files of the program that are loaded, with their folders."""
    files = {
        module.__file__
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in _PACKAGES and module.__file__ is not None
    }
    folders = {os.path.dirname(file) for file in files} - {_OURS}  # noqa: PTH120  (no pathlib)
    return sorted(files | folders)


def _write(place: str, content: bytes, most: int) -> None:
    folder = os.path.dirname(place)  # noqa: PTH120  (no pathlib)
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103  (no pathlib)
    aside = f"{place}.{os.getpid()}"
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123
        file.write(content)
    os.replace(aside, place)  # noqa: PTH105  (no pathlib)
    with os.scandir(folder) as entries:
        there = sorted((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in entries)
    for _, path in there[:-most]:
        os.unlink(path)  # noqa: PTH108  (no pathlib)
