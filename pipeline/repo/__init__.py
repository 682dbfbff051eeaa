"""How does anything read or change a repository? Only here, through doors of increasing rights (ADR-R8).

*read*: the user's config, but no hooks, no fsmonitor, no optional locks. *object*: writes objects and private refs with
the attributes of a checkout that no agent has touched. *publish*: the user's identity and signing, with a time limit.
*remote*: refs of the hub of a fleet.
"""

from __future__ import annotations

from pipeline.repo.git_files import Worktree
from pipeline.repo.locks import LOCK_LIMIT_S, await_lock
from pipeline.repo.process import TooLargeError
from pipeline.repo.remotes import RefMove, UnreachableError
from pipeline.repo.repository import NoRepositoryError, Repository, UntouchedRepository
from pipeline.repo.values import (
    GITLINK,
    NO_OBJECT,
    PLAIN,
    REFETCH,
    Entry,
    FileStat,
    GitError,
    Setting,
    Signature,
    SigningError,
    TreeChange,
)

__all__ = [
    "GITLINK",
    "LOCK_LIMIT_S",
    "NO_OBJECT",
    "PLAIN",
    "REFETCH",
    "Entry",
    "FileStat",
    "GitError",
    "NoRepositoryError",
    "RefMove",
    "Repository",
    "Setting",
    "Signature",
    "SigningError",
    "TooLargeError",
    "TreeChange",
    "UnreachableError",
    "UntouchedRepository",
    "Worktree",
    "await_lock",
]
