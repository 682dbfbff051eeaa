"""What goes in and out of git: entries, changes, signatures, and what can go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NO_OBJECT: Final = "0" * 40
GITLINK: Final = "160000"


class GitError(Exception):
    """git failed where it must not; carries the command and what git said."""

    def __init__(self, argv: Sequence[str], code: int, stderr: str) -> None:
        super().__init__(f"git {' '.join(argv)} ended with {code}: {stderr.strip()}")
        self.code = code
        self.stderr = stderr


class SigningError(Exception):
    """The commit could not be signed in time."""


@dataclass(frozen=True)
class Entry:
    """One entry of a tree. `oid` names a blob, or a commit when `mode` is a gitlink."""

    path: str
    mode: str
    oid: str


@dataclass(frozen=True)
class TreeChange:
    """One path that a new tree has otherwise: with this entry, or not at all (`entry` None)."""

    path: str
    entry: Entry | None


@dataclass(frozen=True)
class Setting:
    """One setting: section and last part of `key` in lower case; `origin` is its file, None for the environment."""

    key: str
    value: str
    origin: Path | None = None


@dataclass(frozen=True)
class FileStat:
    """One path that differs between two trees; the counts are None for a binary file."""

    path: str
    added: int | None
    deleted: int | None


@dataclass(frozen=True)
class Signature:
    """Who and when, as git's environment wants them; `date` is `<seconds> <zone>`."""

    name: str
    email: str
    date: str
