"""Reads refs and worktrees from git's own files, without starting a process."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
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


_IS_BARE: Final = re.compile(rb"(?im)^\s*bare\s*=\s*(?:true|yes|on|1)\s*$")


def is_bare(common: Path) -> bool:
    """Return whether a git folder says that it has no checkout of its own, whatever it is called."""
    return _IS_BARE.search(_content(common / "config") or b"") is not None


@dataclass(frozen=True)
class Worktree:
    """A worktree of a repository; its folder may be missing.

    Attributes:
        path: Its folder.
        git_dir: Where git keeps what is its own.
        locked: Why git keeps it although its folder may be gone (a disk that is not mounted); None if it is not locked.
    """

    path: Path
    git_dir: Path
    locked: str | None = None

    @property
    def is_there(self) -> bool:
        """Return whether the worktree's folder exists and belongs to this repository."""
        place = self.path / ".git"
        said = _line(place)  # nothing of a folder
        own = place if said is None else self.path / said.removeprefix("gitdir:").strip()
        return os.path.lexists(place) and (not own.is_dir() or own.resolve() == self.git_dir.resolve())


def linked_in_files(common: Path) -> list[Worktree]:
    """Return the linked worktrees in the order of git's names; also those whose folder was removed.

    Args:
        common: The folder that the worktrees share.
    """
    folder = common / "worktrees"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []  # noqa: PTH208  (names, sorted)
    return [found for name in names if (found := _linked(folder / name)) is not None]


def _linked(git_dir: Path) -> Worktree | None:
    """Return the worktree of an administrative folder, None if it has no valid one."""
    said = _line(git_dir / "gitdir")
    if not said:
        return None
    place = Path(os.path.normpath(git_dir / said)).parent
    return Worktree(place.resolve(), git_dir, _line(git_dir / "locked"))


def _line(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").removesuffix("\n")
    except OSError:
        return None
