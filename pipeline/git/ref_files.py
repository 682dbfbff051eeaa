"""Reads refs from their files and from `packed-refs`, without starting a process."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = re.compile(r"refs(/[A-Za-z0-9_@+-]+(\.[A-Za-z0-9_@+-]+)*)+")
"""Ref names that are surely valid; git has rules for others."""
_POINTS: Final = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\n?")
_LOCK: Final = ".lock"


def branch_in_files(git_dir: Path) -> str | None:
    """Return the branch that the file HEAD names; None if git has to be asked (detached, a link)."""
    head = git_dir / "HEAD"
    if head.is_symlink() or (git_dir / "reftable").exists():
        return None
    name = (_content(head) or b"").decode(errors="surrogateescape").removeprefix("ref: ").removesuffix("\n")
    is_plain = name.startswith("refs/heads/") and _NAME.fullmatch(name) and not name.endswith(_LOCK)
    return name.removeprefix("refs/heads/") if is_plain else None


def refs_in_files(common: Path, prefixes: tuple[str, ...]) -> dict[str, str] | None:
    """Return the refs at or below one of *prefixes* with their objects; None if git has to be asked.

    It has to where refs lie in tables, and about a ref that stands for another one or whose name is odd.

    Args:
        common: The folder that the worktrees share.
        prefixes: Names of refs, or of folders of them.
    """
    if (common / "reftable").exists():
        return None
    wanted = tuple(prefix.rstrip("/") for prefix in prefixes)
    loose: dict[str, str] = {}
    for path in (path for prefix in wanted for path in _files(common / prefix)):
        name = os.path.relpath(path, common)
        content = _content(path)
        if content is None or name.endswith(_LOCK):
            continue
        points = None if path.is_symlink() else _POINTS.fullmatch(content)
        if points is None or not _NAME.fullmatch(name) or not points[1].strip(b"0"):
            return None
        loose[name] = points[1].decode()
    # read last: git writes it before it removes the files
    return dict(sorted({**_packed(common / "packed-refs", wanted), **loose}.items()))


def _packed(file: Path, wanted: tuple[str, ...]) -> dict[str, str]:
    content = _content(file) or b""
    if not any(prefix.encode() in content for prefix in wanted):
        return {}
    lines = (line.partition(" ") for line in content.decode(errors="surrogateescape").split("\n"))
    below = tuple(f"{prefix}/" for prefix in wanted)
    return {name: oid for oid, _, name in lines if name in wanted or name.startswith(below)}


def _files(place: Path) -> Iterator[Path]:
    if place.is_symlink() or place.is_file():
        yield place
    for at, folders, names in os.walk(place):
        yield from (Path(at) / name for name in names)
        yield from (Path(at) / name for name in folders if (Path(at) / name).is_symlink())


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # moved into packed-refs, or deleted, since it was listed
        return None
