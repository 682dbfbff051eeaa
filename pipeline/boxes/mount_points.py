"""Creates mount points in folders that an agent can write into, and refuses mounts that a link would redirect."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pipeline.process import BoxError, Mount
from pipeline.trees import opened

if TYPE_CHECKING:
    from collections.abc import Generator


@contextlib.contextmanager
def mount_points(mounts: tuple[Mount, ...]) -> Generator[None]:
    """Create the missing mount points of nested mounts, and remove those that are still empty afterwards.

    A `.venv` shown over the view needs an empty folder there while it is mounted. Both go by descriptor: what runs in
    between may move the folders and put links in their places.

    Raises:
        BoxError: a folder on the way is something else; a link there would be followed out of the view.
    """
    with contextlib.ExitStack() as held:
        for index, mount in enumerate(mounts):
            if outer := _outer(mount, mounts[:index]):
                _create(outer, mount, held)
        yield


def refuse_links(mounts: tuple[Mount, ...]) -> None:
    """Check that each mount of a view's subfolder (`Mount.below`) is really in the view and not behind a link.

    Raises:
        BoxError: on the way there is a link, which would be followed out of the view, or nothing.
    """
    for mount in mounts:
        parts = PurePosixPath(mount.inner).parts
        if not parts:
            continue
        try:
            with contextlib.ExitStack() as held:
                folder = _top(mount.reach.parents[len(parts) - 1], held)
                for part in parts:
                    folder = held.enter_context(opened(part, folder))
        except OSError as error:
            raise BoxError(
                f"{mount.target} cannot be mounted: {mount.inner} is no folder of the view: {error.strerror}"
            ) from error


def _outer(mount: Mount, earlier: tuple[Mount, ...]) -> Mount | None:
    around = [other for other in earlier if other.target in mount.target.parents]
    return max(around, key=lambda other: len(other.target.parts), default=None)


def _create(outer: Mount, mount: Mount, held: contextlib.ExitStack) -> None:
    *folders, last = mount.target.relative_to(outer.target).parts
    folder = _top(outer.reach, held)
    for name in folders:
        _make(folder, name, mount, held, is_file=False)
        folder = held.enter_context(opened(name, folder))
    _make(folder, last, mount, held, is_file=not mount.reach.is_dir())


def _top(path: os.PathLike[str], held: contextlib.ExitStack) -> int:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # may be a link of /proc to a descriptor
    held.callback(os.close, folder)
    return folder


def _make(folder: int, name: str, mount: Mount, held: contextlib.ExitStack, *, is_file: bool) -> None:
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        if is_file:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, dir_fd=folder))
        else:
            os.mkdir(name, dir_fd=folder)
        held.callback(_take_away, folder, name)
        return
    if not (stat.S_ISREG(mode) if is_file else stat.S_ISDIR(mode)):
        raise BoxError(f"{mount.target} cannot be mounted: something else is in the way at {name}")


def _take_away(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            os.rmdir(name, dir_fd=folder)
        elif stat.S_ISREG(status.st_mode) and status.st_size == 0:
            os.unlink(name, dir_fd=folder)
