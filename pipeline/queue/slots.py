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
    from collections.abc import Mapping, Sequence
    from pathlib import Path

JOBS = "jobs"
"""The kind of the slots that every driver of this machine needs."""


class LocalTaken:
    """Slots of this machine: the kernel holds them for whoever has their descriptors open, as a driver does, too."""

    def __init__(self, handles: Sequence[int]) -> None:
        self.handles = handles

    def keep(self) -> bool:
        """Return whether they are still taken, which the kernel sees to."""
        return True

    def give_back(self) -> None:
        """Close what was taken here; a slot that a driver was handed stays taken till that ends."""
        for handle in self.handles:
            os.close(handle)


class LocalSlots:
    """The slots of all workers of this user on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def free(self, kind: str, most: int) -> int:
        """Return how many of the first *most* slots of a kind are free."""
        handles = [handle for number in range(most) if (handle := self._taken(kind, number)) is not None]
        LocalTaken(handles).give_back()
        return len(handles)

    def take(self, wanted: Mapping[str, int], order: str) -> LocalTaken | None:
        """Take a slot of each kind, of which there are so many; None if one is not free. Orders need none here.

        Raises:
            UserError: the disk does not take their files.
        """
        del order
        found: list[int] = []
        for kind, most in wanted.items():
            handle = next((one for number in range(most) if (one := self._taken(kind, number)) is not None), None)
            if handle is None:
                LocalTaken(found).give_back()
                return None
            found.append(handle)
        return LocalTaken(found)

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
