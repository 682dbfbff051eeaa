"""Holds slots of drivers on this machine: a locked file each, which the kernel gives back when its holder dies.

The worker takes a slot and hands it to the driver that it starts, too: it is free once the driver is gone, and the
worker has taken that in or is gone itself, whoever killed whom.
"""

from __future__ import annotations

import fcntl
import os
import re
from typing import TYPE_CHECKING

from pipeline.run.files import disk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


class Slots:
    """The slots of all workers of this user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def free(self, kind: str, most: int) -> int:
        """Return how many of the first *most* slots of a kind are free."""
        handles = [handle for number in range(most) if (handle := self._taken(kind, number)) is not None]
        for handle in handles:
            os.close(handle)
        return len(handles)

    def take(self, wanted: Mapping[str, int]) -> tuple[int, ...] | None:
        """Take a slot of each kind, of which there are so many; return their descriptors, or None if one is not free.

        Raises:
            UserError: the disk does not take their files.
        """
        found: list[int] = []
        for kind, most in wanted.items():
            handle = next((one for number in range(most) if (one := self._taken(kind, number)) is not None), None)
            if handle is None:
                give_back(found)
                return None
            found.append(handle)
        return tuple(found)

    def _taken(self, kind: str, number: int) -> int | None:
        folder = self.folder / re.sub(r"[^A-Za-z0-9_-]", "_", kind)
        with disk(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle


def give_back(handles: Iterable[int]) -> None:
    """Close what was taken here; a slot that a driver was handed stays taken till that ends."""
    for handle in handles:
        os.close(handle)
