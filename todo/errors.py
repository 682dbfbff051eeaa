"""`TrackerError`, the one exception of the tracker library, with a kind from a closed list."""

from __future__ import annotations

from enum import StrEnum


class ErrorKind(StrEnum):
    """Why an operation on the tracker was refused; the words are those of the outcomes (contract 2)."""

    TRACKER_MISSING = "tracker_missing"
    TRACKER_INVALID = "tracker_invalid"
    ISSUE_NOT_FOUND = "issue_not_found"
    ISSUE_NOT_TODO = "issue_not_todo"
    DEPENDENCY_UNMET = "dependency_unmet"
    DEPENDENCY_MISSING = "dependency_missing"
    WORKTREE_CHANGED = "worktree_changed"
    USAGE = "usage"


class TrackerError(Exception):
    """The tracker is malformed, or the request cannot be fulfilled; nothing was written.

    Args:
        kind: The word of the closed list.
        message: One or two sentences: what is wrong, what to do.
        path: The file concerned, relative to the tracker folder.
        line: The line in that file, counted from 1.
    """

    def __init__(self, kind: ErrorKind, message: str, *, path: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.path = path
        self.line = line

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line) if part is not None)
        return f"{place}: {self.message}" if place else self.message


def invalid(message: str, *, path: str | None = None, line: int | None = None) -> TrackerError:
    """Return the error for a tracker file that breaks the format of contract 3."""
    return TrackerError(ErrorKind.TRACKER_INVALID, message, path=path, line=line)


def usage(message: str) -> TrackerError:
    """Return the error for a request that no tracker could fulfil."""
    return TrackerError(ErrorKind.USAGE, message)
