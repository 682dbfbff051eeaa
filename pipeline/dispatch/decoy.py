"""A throw-away repository of one commit in the view, so that `git diff`, `git status` and ignore rules work there.

The real repository is never in reach of an agent. Nothing on the host reads the decoy again: the agent may write it.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from pipeline.process import SandboxError

if TYPE_CHECKING:
    from pathlib import Path

_ENV: Final = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "base",
    "GIT_AUTHOR_EMAIL": "base@localhost",
    "GIT_AUTHOR_DATE": "2000-01-01T00:00:00 +0000",
    "GIT_COMMITTER_NAME": "base",
    "GIT_COMMITTER_EMAIL": "base@localhost",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00 +0000",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
}
_CONFIG: Final = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\thooksPath = /dev/null
\tautocrlf = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tfsmonitor = false
[gc]
\tauto = 0
[commit]
\tgpgSign = false
[user]
\tname = agent
\temail = agent@localhost
"""
# Highest precedence: bytes are stored as they lie there, whatever filters (LFS, ident, eol) the project configures.
_ATTRIBUTES: Final = "* -text -filter -ident -working-tree-encoding\n"
_TIMEOUT_S: Final = 600


def make_decoy(tree: Path) -> None:
    """Put a repository into `tree` whose one commit holds every file there, also those that ignore rules name.

    The same files always give the same commit.

    Raises:
        SandboxError: git did not do it.
    """
    _git(tree, "init", "--quiet", "--template=", "--initial-branch=base")
    (tree / ".git" / "config").write_text(_CONFIG)
    (tree / ".git" / "info").mkdir(exist_ok=True)
    (tree / ".git" / "info" / "attributes").write_text(_ATTRIBUTES)
    _git(tree, "add", "--all", "--force", "--", ".")
    _git(tree, "commit", "--quiet", "--allow-empty", "--no-verify", "--message=base")


def _git(tree: Path, *arguments: str) -> None:
    env = {**_ENV, "PATH": os.environ.get("PATH", os.defpath), "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    try:
        subprocess.run(
            ["git", *arguments], cwd=tree, env=env, check=True, capture_output=True, timeout=_TIMEOUT_S, text=True
        )
    except subprocess.CalledProcessError as error:
        raise SandboxError(f"git {arguments[0]} failed in the view: {error.stderr.strip()}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"git {arguments[0]} failed in the view: {error}") from error
