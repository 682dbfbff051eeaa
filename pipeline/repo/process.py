"""Starts git processes through GitPython with hardened options, and turns their failures into user errors.

The entry has cleared the `GIT_*` variables that a hook sets (pipeline/search_path.py). GitPython itself is loaded with
the first process.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo.values import HARDENED_SETTINGS, GitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HARDENED: Final = (*(part for setting in HARDENED_SETTINGS for part in ("-c", setting)), "--no-optional-locks")
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
_ENVIRONMENT: Final = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":"}
_IN_ENGLISH: Final = {"LANGUAGE": "C", "LC_ALL": "C"}
"""What GitPython sets for each git, too: messages are read here."""

_LOCKED: Final = re.compile(r"Unable to create '(?P<lock>[^']+\.lock)': File exists")


class TooLargeError(UserError):
    """Git's answer is too large to be read here."""


def command(folder: Path, argv: Sequence[str], prefix: Sequence[str] = HARDENED) -> list[str]:
    """Return a command line of git for *folder*: GitPython would run in another one where that is gone."""
    return ["git", "-C", str(folder), *prefix, *argv]


def run(
    folder: Path,
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    stdin: bytes | BinaryIO = b"",
    *,
    prefix: Sequence[str] = HARDENED,
    limit_s: float | None = None,
    foreground: bool = False,
    keeps: Sequence[int] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run git in *folder* and return how it ended; its standard input is some bytes, or a file at its beginning.

    Raises:
        FileNotFoundError: git is not on PATH.
        subprocess.TimeoutExpired: it took longer than *limit_s*; it was killed with what it had started.
    """
    from pipeline.repo.gitpython import Git, GitCommandNotFound  # noqa: PLC0415  (slow: once a repository is opened)

    line = command(folder, argv, prefix)
    # An interrupt in the midst of the start would leave a git that nobody knows of.
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    let_in = partial(signal.pthread_sigmask, signal.SIG_SETMASK, held)
    with ExitStack() as stack:
        stack.callback(let_in)
        given = None if isinstance(stdin, bytes) else stdin  # a file of the caller stays open
        if isinstance(stdin, bytes) and stdin:
            given = stack.enter_context(tempfile.TemporaryFile())
            given.write(stdin)
            given.seek(0)
        try:
            started = Git().execute(
                line,
                istream=given,
                as_process=True,
                env={**_ENVIRONMENT, **(env or {})},
                # Ctrl-C at a terminal reaches the whole process group: it is for the driver, which knows a safe point.
                # Only a process that may ask for a passphrase stays in the foreground.
                process_group=None if foreground else 0,
                preexec_fn=let_in if foreground else None,
                pass_fds=keeps,
            )
        except GitCommandNotFound as error:
            raise FileNotFoundError("git") from error
        # GitPython's own limit is a thread: a Ctrl-C leaves it, and this process would wait for it at its end.
        git = cast("subprocess.Popen[bytes]", started.proc)  # pyright: ignore[reportUnknownMemberType]
        started.proc = None
        with git:
            try:
                let_in()
                out, said = git.communicate(timeout=limit_s)
            except BaseException:
                if limit_s is not None and git.poll() is None:
                    started_by = Path(f"/proc/{git.pid}/task/{git.pid}/children").read_text().split()
                    for pid in (git.pid, *map(int, started_by)):
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                raise
    return subprocess.CompletedProcess(line, git.returncode, out, said.removesuffix(b"\n"))


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
        self._environment: dict[str, str] = {}

    @property
    def main_checkout(self) -> Path:
        """Return the checkout that owns the common git folder, else this worktree."""
        return self.common_dir.parent if self.common_dir.name == ".git" else self.worktree

    def _start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
        *,
        prefix: Sequence[str] = HARDENED,
        limit_s: float | None = None,
        foreground: bool = False,
        keeps: Sequence[int] = (),
    ) -> subprocess.CompletedProcess[bytes]:
        return run(
            cwd or self.worktree,
            argv,
            {**self._environment, **(env or {})},
            stdin,
            prefix=prefix,
            limit_s=limit_s,
            foreground=foreground,
            keeps=keeps,
        )

    def _git(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
        keeps: Sequence[int] = (),
    ) -> bytes:
        done = self._start(argv, env, cwd, stdin, keeps=keeps)
        refuse_disk(done, self.common_dir)
        refuse_lock(done, self.common_dir)
        if done.returncode:
            raise GitError(argv, done.returncode, done.stderr.decode(errors="replace"))
        return done.stdout

    def _read(self, *argv: str, what: str, limit: int = LARGEST) -> bytes:
        """Return git's output; fail if it is larger than *limit*.

        Raises:
            TooLargeError: it is; the message begins with *what*.
            GitError: git fails.
        """
        line = command(self.worktree, argv)
        env = {**os.environ, **_IN_ENGLISH, **_ENVIRONMENT, **self._environment}
        out = bytearray()
        # GitPython reads to the end, however much it is. Errors go to a file: git waits for whoever reads a full pipe.
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                line, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, process_group=0
            ) as git,
        ):
            try:
                while git.stdout is not None and len(out) <= limit and (chunk := git.stdout.read(_CHUNK)):
                    out += chunk
            finally:
                if len(out) > limit or sys.exc_info()[0] is not None:
                    git.kill()
            git.wait()
            errors.seek(0)
            said = errors.read(_CHUNK)
        if len(out) > limit:
            raise TooLargeError(f"{what} is too large: git has more than {limit >> 20} MiB to say of it.", Reason.USAGE)
        if git.returncode:
            raise GitError(argv, git.returncode, said.decode(errors="replace"))
        return bytes(out)

    def _answers(self, *argv: str) -> bytes | None:
        """Return git's output, None if its exit code is not 0 (which is an answer here)."""
        done = self._start(argv)
        return None if done.returncode else done.stdout

    def _at(self, checkout: Path, index: Path | None = None) -> dict[str, str]:
        env = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(checkout)}
        return env | ({"GIT_INDEX_FILE": str(index)} if index else {})
