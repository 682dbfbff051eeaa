"""Values that doors to git take and return: entries, changes, signatures, errors; and the settings of commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HARDENED_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "advice.detachedHead=false",
    "core.splitIndex=false",
    "safe.bareRepository=explicit",  # a folder of the tree can be one, with settings of its own
    "core.trustctime=true",  # a modification time can be set back
    "core.checkStat=default",
    "i18n.commitEncoding=UTF-8",  # what is written here is UTF-8, and so is what is read
    "i18n.logOutputEncoding=UTF-8",
)
"""The settings of every command that reads or writes objects."""

NO_OBJECT: Final = "0" * 40
GITLINK: Final = "160000"
PLAIN: Final = frozenset({"100644", "100755"})
"""The modes of regular files."""
REFETCH: Final = "git fetch --refetch --no-filter"
"""The command that brings all that a partial clone left out."""
_MISSING: Final = ("promisor remote", "missing blob", "unable to read tree", "unable to read sha1", "bad object")


class GitError(Exception):
    """A git command failed unexpectedly; carries the command and git's message."""

    def __init__(self, argv: Sequence[str], code: int, stderr: str) -> None:
        super().__init__(f"git {' '.join(argv)} ended with {code}: {stderr.strip()}")
        self.code = code
        self.stderr = stderr

    def told(self) -> UserError:
        """Return it for the user: git's own sentence, and what to do."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        said = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines[-1:] or [str(self)]
        whole = " ".join(dict.fromkeys(said))
        if any(mark in self.stderr for mark in _MISSING):
            what = f"Objects are not here. If this is a partial clone, reach its remote, then: {REFETCH}"
            return UserError(f"git: {whole}. {what}", Reason.ENVIRONMENT, actions=(REFETCH, "git fsck"))
        what = "Mend what git says, then try again."
        return UserError(f"git: {whole}. {what}", Reason.ENVIRONMENT, actions=("git status", "git fsck"))


class SigningError(Exception):
    """The commit could not be signed in time."""


@dataclass(frozen=True)
class Entry:
    """An entry of a tree. `oid` names a blob, or a commit when `mode` is a gitlink."""

    path: str
    mode: str
    oid: str


@dataclass(frozen=True)
class TreeChange:
    """A path that differs in a new tree: it has this entry, or is gone (`entry` None)."""

    path: str
    entry: Entry | None


@dataclass(frozen=True)
class Setting:
    """A git setting: section and last part of `key` in lower case; `origin` is its file, None for the environment."""

    key: str
    value: str
    origin: Path | None = None


@dataclass(frozen=True)
class FileStat:
    """The lines added and deleted in a path between two trees; both None for a binary file."""

    path: str
    added: int | None
    deleted: int | None


@dataclass(frozen=True)
class Signature:
    """Name, e-mail address and date for a commit; `date` is `<seconds> <zone>`."""

    name: str
    email: str
    date: str
