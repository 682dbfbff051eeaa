"""The ports of a run: the store that keeps it, and the lease that makes a driver its only one."""

from __future__ import annotations

from typing import Protocol


class Store(Protocol):
    """Where one run is kept: a journal that only grows, and files by name. What was written outlives any crash."""

    @property
    def name(self) -> str:
        """Return the name of the run."""
        ...

    @property
    def host(self) -> str:
        """Return the name of the machine that writes."""
        ...

    def where(self, name: str) -> str:
        """Return where a person finds a file of the run."""
        ...

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            OSError: it is not there, or is none that a run writes.
        """
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a file: a crash leaves the old content or the new one.

        Raises:
            UserError: the disk does not take it.
        """
        ...

    def journal(self) -> bytes:
        """Return the journal as it is, empty where there is none yet.

        Raises:
            OSError: it cannot be read.
        """
        ...

    def append(self, line: bytes) -> None:
        """Add a line to the journal, all of it or nothing.

        Raises:
            UserError: the disk does not take it.
        """
        ...

    def cut(self, size: int) -> None:
        """Leave only the first *size* bytes of the journal.

        Raises:
            UserError: the disk does not take it.
        """
        ...


class Lease(Protocol):
    """Held while a run is driven; given back by `release`, or by the death of the process."""

    def release(self) -> None:
        """Give it back; twice is fine."""
        ...
