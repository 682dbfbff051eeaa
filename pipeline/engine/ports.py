"""The ports of a run: the store that keeps its files, and the lease that only one driver holds."""

from __future__ import annotations

from typing import Protocol


class Store(Protocol):
    """The storage of one run: an append-only journal, and files by name. What was written survives any crash."""

    @property
    def name(self) -> str:
        """Return the name of the run."""
        ...

    @property
    def host(self) -> str:
        """Return the name of the machine that this process writes from."""
        ...

    def where(self, name: str) -> str:
        """Return the path or address at which a person finds a file of the run."""
        ...

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            OSError: it is not there, or is none that a run writes.
        """
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically: after a crash it has the old content or the new one.

        Raises:
            UserError: the disk does not take it.
        """
        ...

    def journal(self) -> bytes:
        """Return the journal's bytes, empty if there is none yet.

        Raises:
            OSError: it cannot be read.
        """
        ...

    def append(self, line: bytes) -> None:
        """Append a line to the journal, whole or not at all.

        Raises:
            UserError: the disk does not take it.
        """
        ...

    def cut(self, size: int) -> None:
        """Truncate the journal to its first *size* bytes.

        Raises:
            UserError: the disk does not take it.
        """
        ...


class Lease(Protocol):
    """The lock of the process that drives a run; ended by `release`, or by the death of the process."""

    def release(self) -> None:
        """Release the lease; a second call does nothing."""
        ...
