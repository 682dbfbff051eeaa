"""A throw-away repository of one commit in the view, so that `git diff`, `git status` and ignore rules work there.

The real repository is never in reach of an agent. Nothing on the host reads the decoy again: the agent may write it.
Everything is in one pack: thousands of loose objects would cost more to write and to remove than the view itself.
"""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from pipeline.process import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ENV: Final = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
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
\tcheckStat = minimal
\ttrustctime = false
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
_COMMIT: Final = b"commit refs/heads/base\ncommitter base <base@localhost> 946684800 +0000\ndata 5\nbase\n\n"
_FAST: Final = ("-c", "fastimport.unpackLimit=0", "-c", "pack.compression=1", "-c", "core.compression=1")
_TIMEOUT_S: Final = 600


@dataclass(frozen=True)
class Decoy:
    """A repository whose one commit holds every file below `tree`, also those that ignore rules name.

    The same files always give the same commit.

    Args:
        folder: The `.git`; it may lie outside of `tree`, to be shown there.
        tree: The files.
    """

    folder: Path
    tree: Path

    def make(self) -> None:
        """Make it from all files.

        Raises:
            SandboxError: it could not be made.
        """
        try:
            _lay_out(self.folder)
            self._import(_COMMIT, _files(self.tree))
            self._git("reset", "--quiet", stdin=subprocess.DEVNULL)
        except OSError as error:
            raise SandboxError(f"the decoy repository could not be made: {error}") from error

    def advance(self, paths: Iterable[str]) -> None:
        """Put another commit in the place of the first, given the paths in which the files differ now.

        Raises:
            SandboxError: it could not be made.
        """
        changed = [self.tree / path for path in paths]
        try:
            tree = self._git("rev-parse", "base^{tree}", stdin=subprocess.DEVNULL).strip()
            self._import(b'reset refs/heads/base\n\n%sM 040000 %s ""\n' % (_COMMIT, tree), changed)
            # Unlike a reset, this looks at no file: what has not changed keeps what the index knows of it.
            self._git("read-tree", "--reset", "base", stdin=subprocess.DEVNULL)
        except OSError as error:
            raise SandboxError(f"the decoy repository could not be made: {error}") from error

    def _import(self, commit: bytes, paths: Iterable[Path]) -> None:
        with tempfile.TemporaryFile() as stream:
            stream.write(commit)
            # removals first: a file may give way to a folder of the same name
            for path in sorted(paths, key=os.path.lexists):
                _write_entry(stream, os.fsencode(path.relative_to(self.tree)), path)
            stream.seek(0)
            self._git(*_FAST, "fast-import", "--quiet", "--force", stdin=stream)

    def _git(self, *arguments: str, stdin: IO[bytes] | int) -> bytes:
        where = {"GIT_DIR": str(self.folder), "GIT_WORK_TREE": str(self.tree)}
        env = {**_ENV, "PATH": os.environ.get("PATH", os.defpath), **where}
        argv = ["git", *arguments]
        try:
            return subprocess.run(
                argv, cwd=self.tree, env=env, stdin=stdin, check=True, capture_output=True, timeout=_TIMEOUT_S
            ).stdout
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip()
            raise SandboxError(f"git failed in the view: {' '.join(arguments)}: {said}") from error
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"git failed in the view: {error}") from error


def _lay_out(folder: Path) -> None:
    for name in ("objects", "refs/heads", "info"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/base\n")
    (folder / "config").write_text(_CONFIG)
    (folder / "info" / "attributes").write_text(_ATTRIBUTES)


def _files(folder: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(folder):
        here = Path(at)
        if here == folder and ".git" in folders:
            folders.remove(".git")
        paths = [here / name for name in (*names, *folders)]  # a link to a folder is listed as one
        yield from (path for path in paths if path.is_symlink() or path.is_file())


def _write_entry(stream: IO[bytes], name: bytes, path: Path) -> None:
    quoted = name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    if path.is_symlink():
        mode, content = b"120000", os.fsencode(path.readlink())
    elif not path.is_file():
        stream.write(b'D "%s"\n' % quoted)
        return
    else:
        mode, content = b"100755" if path.stat().st_mode & stat.S_IXUSR else b"100644", path.read_bytes()
    stream.write(b'M %s inline "%s"\ndata %d\n%s\n' % (mode, quoted, len(content), content))
