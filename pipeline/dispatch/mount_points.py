"""Mount points inside another mount: a `.venv` shown over the view needs an empty folder there while it is mounted."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from pipeline.process import Mount, SandboxError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextlib.contextmanager
def mount_points(mounts: tuple[Mount, ...]) -> Generator[None]:
    """Create the missing mount points of nested mounts, and take away afterwards what is still empty.

    Raises:
        SandboxError: a folder on the way is something else; a link there would be followed out of the view.
    """
    made: list[Path] = []
    try:
        for index, mount in enumerate(mounts):
            if outer := _outer(mount, mounts[:index]):
                _create(outer.reach, outer.reach / mount.target.relative_to(outer.target), mount, made)
        yield
    finally:
        for path in reversed(made):
            with contextlib.suppress(OSError):
                _take_away(path)


def _outer(mount: Mount, earlier: tuple[Mount, ...]) -> Mount | None:
    around = [other for other in earlier if other.target in mount.target.parents]
    return max(around, key=lambda other: len(other.target.parts), default=None)


def _create(top: Path, point: Path, mount: Mount, made: list[Path]) -> None:
    wants_file = not mount.reach.is_dir()
    for path in [*reversed([parent for parent in point.parents if parent.is_relative_to(top)]), point]:
        is_file = wants_file and path == point
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            if is_file:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            else:
                path.mkdir()
            made.append(path)
        else:
            if not (stat.S_ISREG(mode) if is_file else stat.S_ISDIR(mode)) and path != top:
                raise SandboxError(f"{mount.target} cannot be mounted: something else is in the way at {path.name}")


def _take_away(path: Path) -> None:
    status = path.lstat()
    if stat.S_ISDIR(status.st_mode):
        path.rmdir()
    elif stat.S_ISREG(status.st_mode) and status.st_size == 0:
        path.unlink()
