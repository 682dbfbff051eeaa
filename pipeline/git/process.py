"""Starts git processes with a cleaned environment and hardened options, and turns their failures into user errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.git.values import GitError
from pipeline.outcomes import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

HARDENED: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "protocol.ext.allow=never"),
    *("-c", "submodule.recurse=false"),
    *("-c", "gc.auto=0"),
    *("-c", "advice.detachedHead=false"),
    *("-c", "core.splitIndex=false"),
    *("-c", "safe.bareRepository=explicit"),  # a folder of the tree can be one, with settings of its own
    *("-c", "core.trustctime=true"),  # a modification time can be set back
    *("-c", "core.checkStat=default"),
    "--no-optional-locks",
)
"""The options of every command that reads or writes objects: of the repository's programs only clean filters run."""

PUBLISHING: Final = ("-c", "core.hooksPath=/dev/null", "-c", "submodule.recurse=false", "-c", "gc.auto=0")
"""The options for the user's own index and files: no hooks, but their fsmonitor, untracked cache and sparse
checkout."""

_DISK_FAULTS: Final = (
    *("No space left on device", "Disk quota exceeded", "Read-only file system", "File too large"),
    *("unable to write", "write error"),  # git does not always say why
)
"""Messages of git about a disk that cannot be written to."""

LARGEST: Final = 1 << 28
"""The largest output, in bytes, about data of strangers: a few objects can name any number of paths."""
_CHUNK: Final = 1 << 20

_LOCKED: Final = re.compile(r"Unable to create '(?P<lock>[^']+\.lock)': File exists")

_KEPT_ENVIRONMENT: Final = (
    *("GIT_SSH", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES"),
    *("GIT_CONFIG_", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
)
"""Prefixes of the variables that name the user's identity and configuration files, which git gets."""


class TooLargeError(UserError):
    """Git's answer is too large to be read here."""


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return our environment without the `GIT_*` variables that a hook or a wrapper may have set."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_KEPT_ENVIRONMENT)}
    return env | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_EDITOR": ":"} | dict(extra)


def refuse_disk(done: subprocess.CompletedProcess[bytes], where: Path) -> None:
    """Raise a user error if git failed because the disk is full or read-only.

    Raises:
        UserError: reason `disk`.
    """
    said = done.stderr.decode(errors="replace")
    fault = next((line for line in said.splitlines() if any(f in line for f in _DISK_FAULTS)), None)
    if done.returncode and fault is not None:
        raise UserError(
            f"git cannot write: {fault.strip()}. Make room or mend the permissions, then try again.",
            Reason.DISK,
            path=str(where),
            details={"git": said.strip()},
        )


def refuse_lock(done: subprocess.CompletedProcess[bytes], where: Path) -> None:
    """Raise a user error if git failed because of a lock; our own were removed before (`locks.free`).

    Raises:
        UserError: reason `locked`.
    """
    found = _LOCKED.search(done.stderr.decode(errors="replace")) if done.returncode else None
    if found is not None:
        raise UserError(
            f"Another git holds {found['lock']}. When it has ended, try again. If none is running, one was killed: "
            "remove that file first.",
            Reason.LOCKED,
            path=str(where),
            details={"lock": found["lock"]},
        )


class Door:
    """A repository as seen from one worktree; starts git processes in it.

    Attributes:
        worktree: Top level of the worktree the user stands in.
        git_dir: That worktree's git directory.
        common_dir: The directory all worktrees share.
    """

    def __init__(self, worktree: Path, git_dir: Path, common_dir: Path) -> None:
        self.worktree = worktree
        self.git_dir = git_dir
        self.common_dir = common_dir

    def _start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes | None = None,
        *,
        prefix: Sequence[str] = HARDENED,
        limit_s: float | None = None,
        foreground: bool = False,
        keeps: Sequence[int] = (),
    ) -> subprocess.CompletedProcess[bytes]:
        # Ctrl-C at a terminal reaches the whole process group: it is for the driver, which knows a safe point. Only a
        # process that may ask for a passphrase stays in the foreground.
        return subprocess.run(
            ["git", *prefix, *argv],
            cwd=cwd or self.worktree,
            env=self._environment(env or {}),
            input=stdin if stdin is not None else b"",
            capture_output=True,
            timeout=limit_s,
            process_group=None if foreground else 0,
            pass_fds=keeps,
            check=False,
        )

    def _git(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes | None = None,
        keeps: Sequence[int] = (),
    ) -> bytes:
        done = self._start(argv, env, cwd, stdin, keeps=keeps)
        refuse_disk(done, self.common_dir)
        refuse_lock(done, self.common_dir)
        if done.returncode:
            raise GitError(argv, done.returncode, done.stderr.decode(errors="replace"))
        return done.stdout

    def _read(self, *argv: str, what: str, stdin: bytes = b"", limit: int = LARGEST) -> bytes:
        """Return git's output; fail if it is larger than *limit*.

        Raises:
            TooLargeError: it is; the message begins with *what*.
            GitError: git fails.
        """
        out = bytearray()
        import tempfile  # noqa: PLC0415  (slow to load, and most commands write nothing)

        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
            given.write(stdin)
            given.seek(0)
            with subprocess.Popen(
                ["git", *HARDENED, *argv],
                cwd=self.worktree,
                env=self._environment({}),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=said,
                process_group=0,
            ) as git:
                try:
                    while git.stdout is not None and len(out) <= limit and (chunk := git.stdout.read(_CHUNK)):
                        out += chunk
                finally:
                    if len(out) > limit or sys.exc_info()[0] is not None:
                        git.kill()
            said.seek(0)
            stderr = said.read(_CHUNK).decode(errors="replace")
        if len(out) > limit:
            raise TooLargeError(f"{what} is too large: git has more than {limit >> 20} MiB to say of it.", Reason.USAGE)
        if git.returncode:
            raise GitError(argv, git.returncode, stderr)
        return bytes(out)

    def _talk(self, argv: tuple[str, ...]) -> subprocess.Popen[bytes]:
        """Start a git process that answers line by line; the caller ends it."""
        return subprocess.Popen(
            ["git", *HARDENED, *argv],
            cwd=self.worktree,
            env=self._environment({}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        return environment(extra)

    def _answers(self, *argv: str) -> bytes | None:
        """Return git's output, None if its exit code is not 0 (which is an answer here)."""
        done = self._start(argv)
        return None if done.returncode else done.stdout

    def _at(self, checkout: Path, index: Path | None = None) -> dict[str, str]:
        env = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(checkout)}
        return env | ({"GIT_INDEX_FILE": str(index)} if index else {})
