"""The decoy: a throw-away repository of one commit in a view, so that `git diff`, `git status` and ignore rules work.

The real repository is never in reach of an agent. What an agent gets is a copy or a layer of the decoy, and nothing on
the host reads that again; the decoy itself it cannot reach. Everything is in packs: thousands of loose objects would
cost more to write and to remove than the view itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from pipeline.data_types import Frozen
from pipeline.process import BoxError
from pipeline.repo import GITLINK, NO_OBJECT, GitError, Repository
from pipeline.repo.process import refuse_disk, run
from pipeline.run.files import disk, write_atomic
from pipeline.sandbox.views.manifest import Stamp
from pipeline.trees import opened, opened_parent, remove_entry, remove_tree

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator


_FILE: Final = "history.json"
_MOST: Final = 50
"""The most tags that are told, the newest: each is a file of the decoy, which views copy."""
_SSH: Final = re.compile(r"([\w.-]+@)?[\w.-]+:(?!//)[^\s?#]*")
_HTTP: Final = ("http", "https")


class ShownTag(Frozen):
    """A tag of the commit that the branch stands on, or of one before it; `seconds` is when it was made."""

    name: str
    annotated: bool
    seconds: int


class ShownHistory(Frozen):
    """The tags, and the address of `origin`, empty where there is none.

    Tests and builds ask for a version (`git describe`) or for the project's name. Neither commits nor contents are
    told, no credential of an address, and no path of the host. It is asked once for a run: what tests see of it must
    not differ between the baseline and what is compared with it.
    """

    tags: tuple[ShownTag, ...] = ()
    origin: str = ""

    def settings(self) -> str:
        """Return the part of a git configuration file about `origin`."""
        return f'[remote "origin"]\n\turl = "{self.origin}"\n' if self.origin else ""

    def commands(self, mark: bytes) -> bytes:
        """Return the commands for git fast-import that put every tag on one commit.

        `git describe` takes an annotated tag before others, and of those the newest: so tags without a note get one
        where no tag has one, else it would take them by their names.
        """
        with_note = any(tag.annotated for tag in self.tags)
        lines: list[bytes] = []
        for tag in self.tags:
            name = tag.name.encode(errors="surrogateescape")
            if tag.annotated or not with_note:
                tagger = b"base <base@localhost> %d +0000" % tag.seconds
                lines.append(b"tag %s\nfrom %s\ntagger %s\ndata 0\n" % (name, mark, tagger))
            else:
                lines.append(b"reset refs/tags/%s\nfrom %s\n\n" % (name, mark))
        return b"".join(lines)


NOTHING: Final = ShownHistory()


def history_shown(repository: Repository, place: Path) -> ShownHistory:
    """Return what is told of a repository, as it was when it was asked first.

    Args:
        repository: The user's.
        place: The run's own folder, which keeps the answer.
    """
    kept = place / _FILE
    try:
        return ShownHistory.model_validate_json(kept.read_bytes())
    except (OSError, ValidationError):
        pass
    asked = (tag for tag in repository.tags("HEAD", _MOST) if tag[0].isprintable())
    tags = (ShownTag(name=name, annotated=noted, seconds=when) for name, noted, when in asked)
    found = ShownHistory(tags=tuple(tags), origin=_without_secrets(repository.config("remote.origin.url") or ""))
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(kept, found.model_dump_json(), durable=False)
    return found


def _without_secrets(address: str) -> str:
    """Return an address without credentials and queries; of a folder of this machine only its name."""
    if not address.isprintable() or set(address) & set('"\\'):
        return ""
    if "://" not in address:
        return address if _SSH.fullmatch(address) else address.rstrip("/").rpartition("/")[2]
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    if not parts.hostname:
        return parts.path.rstrip("/").rpartition("/")[2]
    user = f"{parts.username}@" if parts.username and not parts.password and parts.scheme not in _HTTP else ""
    return f"{parts.scheme}://{user}{parts.hostname}{port}{parts.path}"


_ENV: Final = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_PARAMETERS": "",
    "HOME": "/nonexistent",
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
        self._git("update-index", "-z", "--index-info", stdin=entries)

    def contents(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes that these files have in the commit, through one process.

        Raises:
            BoxError: one of them is not in it.
        """
        from pipeline.repo.gitpython import ObjectReader  # noqa: PLC0415  (slow: once a repository is opened)

        reader = ObjectReader(self.folder, self._env())
        for path in paths:
            revision = f"{_BASE}:{path}"
            try:
                # no line can ask for a name with a line break
                found = (
                    self._git("cat-file", "blob", revision) if "\n" in path else reader.content(revision, sys.maxsize)
                )
            except GitError as error:
                raise BoxError(f"the decoy repository cannot be read: {error}") from error
            if found is None:
                raise BoxError(f"the decoy repository does not have {path!r}")
            yield path, found

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
        return {**_ENV, "GIT_DIR": str(self.folder), "GIT_WORK_TREE": str(self.tree)}

    def _git(self, *arguments: str, stdin: bytes | BinaryIO = b"") -> bytes:
        try:
            done = run(self.tree, arguments, self._env(), stdin, prefix=(), limit_s=_TIMEOUT_S)
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


@dataclass
class DecoyCopy:
    """The `.git` at the top of a view, a copy of a decoy elsewhere.

    Args:
        decoy: What it is a copy of; it lies in the same file system, out of the agent's reach.
        top: The view.
        trusting: Whether an unchanged stamp means an unchanged file.
    """

    decoy: Decoy
    top: Path
    trusting: bool
    _copied: dict[str, tuple[Stamp, Stamp]] = field(default_factory=dict[str, tuple[Stamp, Stamp]], init=False)
    _settled_ns: int = field(default=0, init=False)

    def renew(self) -> None:
        """Restore the copy to equal the decoy. Untouched files stay: a pack can be large."""
        made = self.decoy.folder.with_name("copy")
        remove_tree(made)
        copied: dict[str, tuple[Stamp, Stamp]] = {}
        with opened(self.top) as top:
            for at, _, names in os.walk(self.decoy.folder):
                below = Path(at).relative_to(self.decoy.folder)
                (made / below).mkdir()
                for name in names:
                    source, target = Path(at, name), made / below / name
                    path = str(Path(".git", below, name))
                    if not self._keep(top, path, source, target):
                        shutil.copyfile(source, target)
                    copied[path] = (Stamp.of(source.lstat()), Stamp.of(target.lstat()))
            remove_entry(top, ".git")
        made.rename(self.top / ".git")
        self._copied = copied

    def settle(self, now_ns: int) -> None:
        """Record the time at which an agent gets the copy; a file written at that very time is not trusted later."""
        self._settled_ns = now_ns

    def _keep(self, top: int, path: str, source: Path, target: Path) -> bool:
        """Move a file of the old copy if neither it nor its source has changed; return whether it was."""
        before = self._copied.get(path)
        if before is None or not self.trusting or before[1].changed_ns >= self._settled_ns:
            return False
        with contextlib.suppress(OSError), opened_parent(top, path) as (parent, name):
            now = (Stamp.of(source.lstat()), Stamp.of(os.stat(name, dir_fd=parent, follow_symlinks=False)))
            if now == before:
                os.rename(name, target, src_dir_fd=parent)
                return True
        return False
