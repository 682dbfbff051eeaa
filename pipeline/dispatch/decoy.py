"""A throw-away repository of one commit in the view, so that `git diff`, `git status` and ignore rules work there.

The real repository is never in reach of an agent. Nothing on the host reads the decoy again: the agent may write it.
Everything is in one pack: thousands of loose objects would cost more to write and to remove than the view itself.
"""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from pipeline.process import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def make_decoy(tree: Path) -> None:
    """Put a repository into `tree` whose one commit holds every file there, also those that ignore rules name.

    The same files always give the same commit.

    Raises:
        SandboxError: it could not be made.
    """
    try:
        _lay_out(tree / ".git")
        _import(tree)
        _git(tree, "reset", "--quiet", stdin=subprocess.DEVNULL)
    except OSError as error:
        raise SandboxError(f"the decoy repository could not be made: {error}") from error


def _lay_out(folder: Path) -> None:
    for name in ("objects", "refs/heads", "info"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/base\n")
    (folder / "config").write_text(_CONFIG)
    (folder / "info" / "attributes").write_text(_ATTRIBUTES)


def _import(tree: Path) -> None:
    with tempfile.TemporaryFile() as stream:
        stream.write(_COMMIT)
        for path in _files(tree):
            _write_entry(stream, os.fsencode(path.relative_to(tree)), path)
        stream.seek(0)
        _git(tree, *_FAST, "fast-import", "--quiet", stdin=stream)


def _files(folder: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(folder):
        here = Path(at)
        if here == folder:
            folders.remove(".git")
        paths = [here / name for name in (*names, *folders)]  # a link to a folder is listed as one
        yield from (path for path in paths if path.is_symlink() or path.is_file())


def _write_entry(stream: IO[bytes], name: bytes, path: Path) -> None:
    if path.is_symlink():
        mode, content = b"120000", os.fsencode(path.readlink())
    else:
        mode, content = b"100755" if path.stat().st_mode & stat.S_IXUSR else b"100644", path.read_bytes()
    quoted = name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    stream.write(b'M %s inline "%s"\ndata %d\n%s\n' % (mode, quoted, len(content), content))


def _git(tree: Path, *arguments: str, stdin: IO[bytes] | int) -> None:
    env = {**_ENV, "PATH": os.environ.get("PATH", os.defpath), "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    try:
        subprocess.run(
            ["git", *arguments], cwd=tree, env=env, stdin=stdin, check=True, capture_output=True, timeout=_TIMEOUT_S
        )
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise SandboxError(f"git failed in the view: {' '.join(arguments)}: {said}") from error
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"git failed in the view: {error}") from error
