"""The decoy: a throw-away repository of one commit in a view, so that `git diff`, `git status` and ignore rules work.

The real repository is never in reach of an agent. What an agent gets is a copy or a layer of the decoy, and nothing on
the host reads that again; the decoy itself it cannot reach. Everything is in packs: thousands of loose objects would
cost more to write and to remove than the view itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from pipeline.git import GITLINK, NO_OBJECT
from pipeline.git.process import refuse_disk
from pipeline.process import BoxError
from pipeline.runs.files import disk
from pipeline.views.decoy import NOTHING, ShownHistory

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from pipeline.git import Repository

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
_COMMIT: Final = b"commit refs/heads/base\nmark :1\ncommitter base <base@localhost> 946684800 +0000\ndata 5\nbase\n\n"
_FAST: Final = ("-c", "fastimport.unpackLimit=0", "-c", "pack.compression=1", "-c", "core.compression=1")
_WHICH_TREE: Final = b'\nls :1 ""\n'  # the empty line ends the commit
_TREE: Final = "base-tree"
"""The file in the decoy that names the commit's tree; git has no file of that name."""
_BASE: Final = "refs/heads/base"
_TIMEOUT_S: Final = 600
_SHA1: Final = 40
"""The length of the decoy's object names."""


@dataclass(frozen=True)
class Source:
    """The repository and tree that a decoy's files were checked out from."""

    repository: Repository
    tree: str


@dataclass(frozen=True)
class Decoy:
    """A repository whose one commit holds every file below `tree`, ignored ones included.

    The same files always give the same commit.

    Args:
        folder: The `.git`; it may lie outside of `tree`, to be shown there.
        tree: The files.
        shown: What it tells beside the files.
    """

    folder: Path
    tree: Path
    shown: ShownHistory = NOTHING

    def make(self, source: Source | None = None) -> None:
        """Create the repository with a commit of all files.

        Args:
            source: The tree that was checked out, so that what is stored already need not be stored again.

        Raises:
            BoxError: it could not be made.
            UserError: the disk does not take it.
        """
        with _told(self.folder):
            _lay_out(self.folder, self.shown)
            if source is None or len(source.tree) != _SHA1:
                self._import(_COMMIT, _files(self.tree))
                self._git("reset", "--quiet")
            else:
                self._borrow(source)

    def advance(self, paths: Iterable[str]) -> None:
        """Replace the commit after the files *paths* have changed.

        Raises:
            BoxError: it could not be made.
            UserError: the disk does not take it.
        """
        with _told(self.folder):
            tree = (self.folder / _TREE).read_bytes()
            self._note(self._commit(tree, (self.tree / path for path in paths)))

    def _borrow(self, source: Source) -> None:
        """Copy the objects of the source, then add files that differ from it: filtered files, submodules."""
        (self.folder / "objects" / "pack").mkdir()
        source.repository.pack(source.tree, self.folder / "objects")
        self._commit(source.tree.encode(), ())
        self._git("reset", "--refresh", _BASE)
        names = self._git("diff-files", "--name-only", "-z").split(b"\0")
        different = [self.tree / os.fsdecode(name) for name in names if name]
        for link in (
            self.tree / entry.path for entry in source.repository.entries(source.tree) if entry.mode == GITLINK
        ):
            different += [link, *_files(link)]
        if different:
            self._note(self._commit(source.tree.encode(), different))
            self._git("update-index", "-q", "--refresh")

    def _commit(self, tree: bytes, changed: Iterable[Path]) -> bytes:
        """Create the commit from an existing tree and the changed files; return their index entries for `_note`."""
        return self._import(b'reset refs/heads/base\n\n%sM 040000 %s ""\n' % (_COMMIT, tree), changed)

    def _note(self, entries: bytes) -> None:
        """Put entries into the index, without reading files as a reset would."""
        with tempfile.TemporaryFile() as stream:
            stream.write(entries)
            stream.seek(0)
            self._git("update-index", "-z", "--index-info", stdin=stream)

    def contents(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes that these files have in the commit, through one process.

        Raises:
            BoxError: one of them is not in it.
        """
        lines: list[str] = []
        for path in paths:
            if "\n" in path:  # no line can ask for it
                yield path, self._git("cat-file", "blob", f"{_BASE}:{path}")
            else:
                lines.append(path)
        if lines:
            yield from self._batch(lines)

    def _batch(self, paths: list[str]) -> Iterator[tuple[str, bytes]]:
        with tempfile.TemporaryFile() as asked:
            asked.writelines(os.fsencode(f"{_BASE}:{path}\n") for path in paths)
            asked.seek(0)
            argv = ("git", "cat-file", "--batch", "--buffer")
            with subprocess.Popen(
                argv, cwd=self.folder, env=self._env(), stdin=asked, stdout=subprocess.PIPE, process_group=0
            ) as git:
                answers = cast("IO[bytes]", git.stdout)
                for path in paths:
                    said = answers.readline().split(b" ")
                    size = int(said[2]) if said[1:2] == [b"blob"] else -1
                    content = answers.read(size + 1)
                    if size < 0 or len(content) <= size:
                        raise BoxError(f"the decoy repository does not have {path!r}")
                    yield path, content[:size]

    def _import(self, commit: bytes, paths: Iterable[Path]) -> bytes:
        with tempfile.TemporaryFile() as stream:
            stream.write(commit)
            # removals first: a file may give way to a folder of the same name
            ordered = [(os.fsencode(path.relative_to(self.tree)), path) for path in sorted(paths, key=os.path.lexists)]
            entries = [_write_entry(stream, name, path) for name, path in ordered]
            stream.write(_WHICH_TREE)
            stream.write(self.shown.commands(b":1"))
            stream.seek(0)
            said = self._git(*_FAST, "fast-import", "--quiet", "--force", stdin=stream)
        (self.folder / _TREE).write_bytes(said.split()[2])  # "040000 tree <name>"
        return b"".join(entries)

    def _env(self) -> dict[str, str]:
        where = {"GIT_DIR": str(self.folder), "GIT_WORK_TREE": str(self.tree)}
        return {**_ENV, "PATH": os.environ.get("PATH", os.defpath), **where}

    def _git(self, *arguments: str, stdin: IO[bytes] | int = subprocess.DEVNULL) -> bytes:
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=self.tree,
                env=self._env(),
                stdin=stdin,
                capture_output=True,
                timeout=_TIMEOUT_S,
                process_group=0,  # Ctrl-C at a terminal is for the driver
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BoxError(f"git failed in the view: {error}") from error
        refuse_disk(done, self.folder)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise BoxError(f"git failed in the view: {' '.join(arguments)}: {said}")
        return done.stdout


@contextlib.contextmanager
def _told(folder: Path) -> Generator[None]:
    """Turn an OSError into a BoxError that says that the decoy cannot be made."""
    try:
        with disk(folder):
            yield
    except OSError as error:
        raise BoxError(f"the decoy repository could not be made: {error}") from error


def _lay_out(folder: Path, shown: ShownHistory) -> None:
    for name in ("objects", "refs/heads", "info"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/base\n")
    (folder / "config").write_text(_CONFIG + shown.settings())
    (folder / "info" / "attributes").write_text(_ATTRIBUTES)


def _files(folder: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(folder):
        here = Path(at)
        if here == folder and ".git" in folders:
            folders.remove(".git")
        paths = [here / name for name in (*names, *folders)]  # a link to a folder is listed as one
        yield from (path for path in paths if path.is_symlink() or path.is_file())


def _write_entry(stream: IO[bytes], name: bytes, path: Path) -> bytes:
    """Write a file's present content for git fast-import; return its entry for git update-index."""
    quoted = name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    if path.is_symlink():
        mode, content = b"120000", os.fsencode(path.readlink())
    elif not path.is_file():
        stream.write(b'D "%s"\n' % quoted)
        return b"0 %s\t%s\0" % (NO_OBJECT.encode(), name)
    else:
        mode, content = b"100755" if path.stat().st_mode & stat.S_IXUSR else b"100644", path.read_bytes()
    stream.write(b'M %s inline "%s"\ndata %d\n%s\n' % (mode, quoted, len(content), content))
    oid = hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()
    return b"%s %s\t%s\0" % (mode, oid.encode(), name)
