"""The only door to git. Three ways in, each hardened for what may already have happened (ADR-R8).

*read*: the user's config, but no hooks, no fsmonitor, no optional locks. *object*: writes objects and private refs with
the attributes of a checkout that no agent has touched. *publish*: the user's identity and signing, with a time limit.
GitPython finds the repository; its command object cannot unset an inherited `GIT_DIR`, so processes are our own.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.routing.vocabulary import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from git import Repo

HARDENED: Final = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "protocol.ext.allow=never"),
    *("-c", "submodule.recurse=false"),
    *("-c", "gc.auto=0"),
    *("-c", "advice.detachedHead=false"),
    *("-c", "core.splitIndex=false"),
    "--no-optional-locks",
)
"""For every command that reads or writes objects: nothing of the repository's own is run but its clean filters."""

PUBLISHING: Final = ("-c", "core.hooksPath=/dev/null", "-c", "submodule.recurse=false", "-c", "gc.auto=0")
"""For the user's own index and files: no hooks, but their fsmonitor, untracked cache and sparse checkout are kept."""

NO_OBJECT: Final = "0" * 40
_OBJECT_NAME: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LISTINGS: Final = 8  # the trees that a step looks at
SIGNING_LIMIT_S: Final = 60.0
GITLINK: Final = "160000"
LOCK_LIMIT_S: Final = 5.0
_PAUSE_S: Final = 0.02
_DISK_FAULTS: Final = ("No space left on device", "Disk quota exceeded", "Read-only file system", "File too large")
_KEPT_ENVIRONMENT: Final = (
    *("GIT_SSH", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES"),
    *("GIT_CONFIG_", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
)
"""Beginnings of the variables that say who the user is and where the user's configuration lies."""


class GitError(Exception):
    """git failed where it must not; carries the command and what git said."""

    def __init__(self, argv: Sequence[str], code: int, stderr: str) -> None:
        super().__init__(f"git {' '.join(argv)} ended with {code}: {stderr.strip()}")
        self.code = code
        self.stderr = stderr


def _refuse_disk(done: subprocess.CompletedProcess[bytes], where: Path) -> None:
    """Turn what a full or read-only disk made git say into the user's error.

    Raises:
        UserError: reason `disk`.
    """
    said = done.stderr.decode(errors="replace")
    fault = next((fault for fault in _DISK_FAULTS if fault in said), None) if done.returncode else None
    if fault is not None:
        raise UserError(
            f"git cannot write below {where}: {fault}. Make room or mend the permissions, then go on with the run.",
            Reason.DISK,
            path=str(where),
            details={"git": said.strip()},
            actions=("free disk space", "redfirst resume RUN"),
        )


def await_lock(lock: Path) -> bool:
    """Wait while the file *lock* is there, at most `LOCK_LIMIT_S`; return whether it is gone.

    When a driver is killed, its git process goes on for a moment: that lock is not stale, it is about to be let go.
    """
    deadline = time.monotonic() + LOCK_LIMIT_S
    while lock.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


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


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return our own environment without the `GIT_*` variables that a hook or a wrapper may have left in it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_KEPT_ENVIRONMENT)}
    return env | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_EDITOR": ":"} | dict(extra)


def _common_dir(git_dir: Path) -> Path:
    """Return the directory that the worktrees share (GitPython would believe an inherited GIT_COMMON_DIR)."""
    shared = git_dir / "commondir"
    return (git_dir / os.fsdecode(shared.read_bytes()).strip()).resolve() if shared.is_file() else git_dir


def _content(path: Path) -> bytes | None:
    """Return what a file holds, or where a link points to; None for anything else."""
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else None


def _worktree(repo: Repo, git_dir: Path, common_dir: Path) -> Path | None:
    """Return the top of the worktree that *repo* was found from; None where there is none."""
    linked = git_dir / "gitdir"
    if git_dir != common_dir and linked.is_file():
        # GitPython takes a linked worktree of a bare repository for bare itself
        return Path(os.path.normpath(git_dir / os.fsdecode(linked.read_bytes()).strip())).parent
    if repo.bare or repo.working_tree_dir is None:
        return None
    return Path(repo.working_tree_dir)


class Repository:
    """A repository as seen from one worktree.

    Attributes:
        worktree: Top level of the worktree the user stands in.
        git_dir: That worktree's git directory.
        common_dir: The directory all worktrees share.
    """

    def __init__(self, worktree: Path, git_dir: Path, common_dir: Path) -> None:
        self.worktree = worktree
        self.git_dir = git_dir
        self.common_dir = common_dir
        self._listings: dict[str, tuple[Entry, ...]] = {}

    @classmethod
    def find(cls, start: Path) -> Repository:
        """Return the repository around *start*.

        Raises:
            UserError: there is none, it is bare, git is missing, or git refuses to work there.
        """
        # loaded here, off the path of --help: it is slow, and importing it asks git for its version
        os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # else the import fails where git is not installed
        try:
            from git import InvalidGitRepositoryError, NoSuchPathError, Repo  # noqa: PLC0415
        except ImportError as error:
            said = str(error).strip().splitlines()[-1].strip()
            raise UserError(f"git does not work here: {said}", Reason.USAGE, path=str(start)) from error
        try:
            with Repo(start, search_parent_directories=True) as repo:
                git_dir = Path(repo.git_dir).resolve()
                common_dir = _common_dir(git_dir)
                worktree = _worktree(repo, git_dir, common_dir)
        except (InvalidGitRepositoryError, NoSuchPathError) as error:
            raise UserError(
                f"{start} is not inside a git repository. Change into one, or: git init",
                Reason.USAGE,
                path=str(start),
            ) from error
        if worktree is None:
            raise UserError(
                "This is a bare repository; redfirst needs a worktree. Create one: git worktree add ../work BRANCH",
                Reason.BARE_REPOSITORY,
                path=str(start),
                actions=("git worktree add ../work BRANCH",),
            )
        found = cls(worktree, git_dir, common_dir)
        found._require_git()
        return found

    def _require_git(self) -> None:
        """Ask git one question now, so that its refusals (another owner, a broken configuration) are told as such."""
        try:
            done = self._start(("rev-parse", "--git-dir"))
        except FileNotFoundError as error:
            raise UserError("git is not installed, or not on PATH.", Reason.USAGE) from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise UserError(f"git refuses to work in {self.worktree}: {said}", Reason.USAGE, path=str(self.worktree))

    @property
    def main_checkout(self) -> Path:
        """Return the checkout that owns the common dir (its parent), or the worktree itself where there is none."""
        return self.common_dir.parent if self.common_dir.name == ".git" else self.worktree

    # --- the doors ---------------------------------------------------------------------------------------------

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
    ) -> subprocess.CompletedProcess[bytes]:
        # Ctrl-C at a terminal reaches the whole process group: it is for the driver, which knows a safe point. Only a
        # process that may ask for a passphrase stays in the foreground.
        return subprocess.run(
            ["git", *prefix, *argv],
            cwd=cwd or self.worktree,
            env=_environment(env or {}),
            input=stdin if stdin is not None else b"",
            capture_output=True,
            timeout=limit_s,
            process_group=None if foreground else 0,
            check=False,
        )

    def _git(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bytes | None = None,
    ) -> bytes:
        done = self._start(argv, env, cwd, stdin)
        _refuse_disk(done, self.common_dir)
        if done.returncode:
            raise GitError(argv, done.returncode, done.stderr.decode(errors="replace"))
        return done.stdout

    def _answers(self, *argv: str) -> bytes | None:
        """Return what git prints, or None where it says no (a non-zero exit is an answer here)."""
        done = self._start(argv)
        return None if done.returncode else done.stdout

    # --- read ------------------------------------------------------------------------------------------------------

    def branch(self) -> str | None:
        """Return the short name of the branch that HEAD is on; None when HEAD is detached."""
        ref = self._answers("symbolic-ref", "--quiet", "HEAD")
        return ref.decode().strip().removeprefix("refs/heads/") if ref else None

    def resolve(self, revision: str) -> str | None:
        """Return the object name that *revision* stands for, or None."""
        found = self._answers("rev-parse", "--verify", "--quiet", "--end-of-options", revision)
        return found.decode().strip() if found else None

    def tree_of(self, commit: str) -> str:
        """Return the tree of *commit*."""
        return self._git("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()

    def subject(self, commit: str) -> str:
        """Return the first line of a commit's message."""
        return self._git("show", "--no-patch", "--format=%s", commit).decode(errors="replace").strip()

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether *old* is *new* or one of its ancestors."""
        return self._answers("merge-base", "--is-ancestor", old, new) is not None

    def status(self, *exclude: str) -> tuple[str, ...]:
        """Return the lines of `git status`, but for paths at or below *exclude*."""
        pathspecs = [f":(exclude,top,literal){path}" for path in exclude]
        shown = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
        out = self._git("status", *shown, "--", ":/", *pathspecs)
        return tuple(line.decode(errors="surrogateescape") for line in out.split(b"\0") if line)

    def entries(self, tree: str, *paths: str) -> tuple[Entry, ...]:
        """Return the entries of *tree* (all, or those at and below *paths*), blobs and gitlinks, recursively."""
        if not paths and tree in self._listings:
            return self._listings[tree]
        literal = ("--literal-pathspecs",) if paths else ()
        out = self._git(*literal, "ls-tree", "-r", "-z", "--full-tree", tree, "--", *paths)
        found: list[Entry] = []
        for line in out.split(b"\0"):
            if line:
                meta, _, path = line.partition(b"\t")
                mode, _, oid = meta.decode().split(" ")
                found.append(Entry(path.decode(errors="surrogateescape"), mode, oid))
        if not paths and _OBJECT_NAME.fullmatch(tree):  # an object never changes, a ref does
            while len(self._listings) >= _LISTINGS:
                del self._listings[next(iter(self._listings))]
            self._listings[tree] = tuple(found)
        return tuple(found)

    def blob(self, revision: str) -> bytes | None:
        """Return the bytes of a blob (`<tree>:<path>` or an object name), or None where there is none."""
        return self._answers("cat-file", "blob", revision)

    def blobs(self, oids: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of many blobs by object name, through one process."""
        wanted = list(dict.fromkeys(oids))
        out = self._git("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in wanted).encode())
        found: dict[str, bytes] = {}
        at = 0
        for oid in wanted:
            end = out.index(b"\n", at)
            size = int(out[at:end].split(b" ")[2])
            found[oid] = out[end + 1 : end + 1 + size]
            at = end + size + 2
        return found

    def diff(self, old: str, new: str) -> tuple[TreeChange, ...]:
        """Return how *new* differs from *old*, path by path (a rename is a deletion and an addition)."""
        out = self._git("diff-tree", "-r", "-z", "--no-renames", "--full-index", old, new).split(b"\0")
        changes: list[TreeChange] = []
        for meta, name in zip(out[0::2], out[1::2], strict=False):
            _, mode, _, oid, status = meta.decode().split(" ")
            path = name.decode(errors="surrogateescape")
            changes.append(TreeChange(path, None if status == "D" else Entry(path, mode, oid)))
        return tuple(changes)

    def patch(self, old: str, new: str, *paths: str) -> str:
        """Return a readable patch; no external diff, no textconv, no colour."""
        argv = ["diff-tree", "-p", "-r", "--no-ext-diff", "--no-textconv", "--no-color", "-M", old, new, "--", *paths]
        return self._git(*argv).decode(errors="replace")

    def numstat(self, old: str, new: str) -> tuple[FileStat, ...]:
        """Return how many lines each differing path gained and lost."""
        out = self._git(
            "diff-tree", "-r", "-z", "--no-renames", "--numstat", "--no-ext-diff", "--no-textconv", old, new
        )
        found: list[FileStat] = []
        for line in out.split(b"\0"):
            if line:
                added, deleted, path = line.split(b"\t", 2)
                counts = (None, None) if added == b"-" else (int(added), int(deleted))
                found.append(FileStat(path.decode(errors="surrogateescape"), *counts))
        return tuple(found)

    def filters(self, checkout: Path, paths: Iterable[str]) -> dict[str, str]:
        """Return the `filter` attribute of the *paths* that have one, by the attributes of *checkout*."""
        stdin = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in paths)
        out = self._git("check-attr", "-z", "--stdin", "filter", env=self._at(checkout), cwd=checkout, stdin=stdin)
        parts = out.decode(errors="surrogateescape").split("\0")
        return {p: v for p, v in zip(parts[0::3], parts[2::3], strict=False) if v not in {"unspecified", "unset"}}

    def ignored_matching(self, patterns: Path) -> tuple[str, ...]:
        """Return the ignored files of the worktree that match the ignore patterns in the file *patterns*."""
        both = ("--others", "--ignored", "-z")
        wanted = self._git("ls-files", *both, f"--exclude-from={patterns}").split(b"\0")
        ignored = set(self._git("ls-files", *both, "--exclude-standard").split(b"\0"))
        return tuple(sorted(p.decode(errors="surrogateescape") for p in wanted if p and p in ignored))

    def config(self, key: str) -> str | None:
        """Return the value of a config key as git resolves it, or None."""
        found = self._answers("config", "--get", key)
        return found.decode(errors="replace").rstrip("\n") if found is not None else None

    def local_config(self) -> str:
        """Return the repository's own configuration: key, line break, value; NUL between the entries."""
        return (self._answers("config", "--local", "--list", "--null") or b"").decode(errors="replace")

    def is_clean(self, checkout: Path, index: Path) -> bool:
        """Return whether *checkout* holds exactly what its private *index* says."""
        env = self._at(checkout, index)
        changed = self._start(["diff-files", "--quiet"], env, checkout).returncode != 0
        return not changed and not self._git("ls-files", "--others", "-z", env=env, cwd=checkout)

    def identity(self) -> tuple[str, str]:
        """Return the user's name and e-mail address as git would commit with them.

        Raises:
            UserError: git has no identity to commit with.
        """
        found = self._answers("var", "GIT_AUTHOR_IDENT")
        if found is None:
            raise UserError(
                "git does not know who commits. Set it: git config user.name ... and git config user.email ...",
                Reason.CONFIG,
                actions=("git config user.name NAME", "git config user.email ADDRESS"),
            )
        name, _, rest = found.decode(errors="replace").partition(" <")
        return name, rest.partition(">")[0]

    def refs(self, prefix: str) -> dict[str, str]:
        """Return the refs below *prefix* and what they point to."""
        out = self._git("for-each-ref", "--format=%(refname) %(objectname)", prefix).decode()
        return dict(line.split(" ", 1) for line in out.splitlines())  # type: ignore[misc]

    # --- object ------------------------------------------------------------------------------------------------

    def _at(self, checkout: Path, index: Path | None = None) -> dict[str, str]:
        env = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(checkout)}
        return env | ({"GIT_INDEX_FILE": str(index)} if index else {})

    def write_blob(self, content: bytes, path: str | None = None, checkout: Path | None = None) -> str:
        """Store *content*; with *path* and *checkout* through the clean filters that the checkout's attributes name."""
        if path is None or checkout is None:
            return self._git("hash-object", "-w", "--stdin", "--no-filters", stdin=content).decode().strip()
        argv = ("hash-object", "-w", "--stdin", "--path", path)
        return self._git(*argv, env=self._at(checkout), cwd=checkout, stdin=content).decode().strip()

    def write_files(self, folder: Path, names: Sequence[str]) -> tuple[str, ...]:
        """Store files below *folder* as they are, through one process; return their object names, in order."""
        stdin = "".join(f"{name}\n" for name in names).encode(errors="surrogateescape")
        argv = ("hash-object", "-w", "--no-filters", "--stdin-paths")
        out = self._git(*argv, env=self._at(folder), cwd=folder, stdin=stdin)
        return tuple(out.decode().split())

    def build_tree(self, base: str, changes: Iterable[TreeChange]) -> str:
        """Return *base* with *changes*: built from the list, never by scanning a folder (architecture 8)."""
        lines: list[bytes] = []
        for change in changes:
            mode, oid = (change.entry.mode, change.entry.oid) if change.entry else ("0", NO_OBJECT)
            lines.append(f"{mode} {oid}\t".encode() + change.path.encode(errors="surrogateescape") + b"\0")
        if not lines:
            return base
        # removals first: a file may give way to a folder of the same name
        lines.sort(key=lambda line: not line.startswith(b"0 "))
        with tempfile.TemporaryDirectory(prefix="redfirst-index-") as folder:
            env = {"GIT_INDEX_FILE": str(Path(folder) / "index"), "GIT_DIR": str(self.git_dir)}
            self._git("read-tree", base, env=env)
            self._git("update-index", "-z", "--index-info", env=env, stdin=b"".join(lines))
            return self._git("write-tree", env=env).decode().strip()

    def make_tree(self, trees: Mapping[str, str]) -> str:
        """Return a tree whose entries are these trees, by name."""
        lines = "".join(f"040000 tree {oid}\t{name}\0" for name, oid in sorted(trees.items()))
        return self._git("mktree", "-z", stdin=lines.encode()).decode().strip()

    def materialise(self, tree: str, folder: Path, index: Path) -> None:
        """Make *folder* hold *tree*, by way of a private *index*; what the index knows of is updated, nothing else."""
        whole = ("-c", "core.sparseCheckout=false")  # the user's sparse checkout is not ours
        self._git(*whole, "read-tree", "--reset", "-u", tree, env=self._at(folder, index), cwd=folder)

    def commit_tree(
        self, tree: str, parents: Sequence[str], message: str, who: Signature, *, sign: str | None = None
    ) -> str:
        """Return a new commit object.

        Args:
            tree: The commit's tree.
            parents: Its parents, in order.
            message: The whole message.
            who: Author and committer, and the date of both.
            sign: None for no signature, else the key ("" = the user's default key).

        Raises:
            SigningError: signing failed or took longer than `SIGNING_LIMIT_S`.
        """
        env = {
            f"GIT_{kind}_{what}": value
            for kind in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", who.name), ("EMAIL", who.email), ("DATE", who.date))
        }
        argv = [
            "-c",
            "i18n.commitEncoding=UTF-8",
            "commit-tree",
            tree,
            *(part for parent in parents for part in ("-p", parent)),
        ]
        argv += [] if sign is None else [f"-S{sign}"]
        try:
            done = self._start(
                argv, env, stdin=message.encode(), prefix=PUBLISHING, limit_s=SIGNING_LIMIT_S, foreground=True
            )
        except subprocess.TimeoutExpired as error:
            raise SigningError(f"no signature within {SIGNING_LIMIT_S:.0f} s") from error
        _refuse_disk(done, self.common_dir)
        if done.returncode:
            said = done.stderr.decode(errors="replace")
            if sign is not None:
                raise SigningError(said.strip())
            raise GitError(argv, done.returncode, said)
        return done.stdout.decode().strip()

    def set_ref(self, ref: str, new: str, old: str | None = None) -> bool:
        """Point *ref* at *new*; with *old*, only if it is there now (NO_OBJECT: only if the ref does not exist)."""
        done = self._start(("update-ref", "--no-deref", "-m", "redfirst", ref, new, *([] if old is None else [old])))
        _refuse_disk(done, self.common_dir)
        return done.returncode == 0

    def delete_ref(self, ref: str) -> None:
        """Delete one of our own refs; a missing one is fine."""
        self._git("update-ref", "--no-deref", "-d", ref)

    # --- publish -----------------------------------------------------------------------------------------------

    def signing_key(self) -> str | None:
        """Return None when the user does not sign commits, else the key to name ("" = default)."""
        wanted = self._answers("config", "--type=bool", "--get", "commit.gpgSign")
        return "" if wanted and wanted.strip() == b"true" else None

    def refresh_index(self) -> None:
        """Refresh the stat information of the user's index: a touched file is not an edited one."""
        await_lock(self.git_dir / "index.lock")
        self._start(["update-index", "-q", "--refresh"], prefix=PUBLISHING)

    def index_is(self, commit: str) -> bool:
        """Return whether the user's index holds exactly the tree of *commit*."""
        done = self._start(["diff-index", "--cached", "--quiet", commit, "--"], prefix=PUBLISHING)
        return done.returncode == 0

    def move_worktree(self, old: str, new: str) -> str | None:
        """Take the user's index and files from tree *old* to *new*; None, or git's refusal with nothing changed.

        Raises:
            UserError: the disk is full: some files may be half written (see `take_back_half`).
        """
        in_the_way = self._in_the_way(old, new)
        if in_the_way:
            return f"these files would be overwritten, and git does not know them: {', '.join(in_the_way)}"
        done = self._start(["read-tree", "-m", "-u", old, new], prefix=PUBLISHING)
        _refuse_disk(done, self.worktree)
        return done.stderr.decode(errors="replace").strip() or "refused" if done.returncode else None

    def _in_the_way(self, old: str, new: str) -> tuple[str, ...]:
        """Return the user's files at the places of new ones: git would overwrite ignored ones without a word."""
        before = {entry.path for entry in self.entries(old)}
        found: set[str] = set()
        for change in self.diff(old, new):
            if change.entry is None or change.path in before:
                continue
            place = self.worktree / change.path
            above = [folder for folder in place.parents if folder.is_relative_to(self.worktree)]
            there = [path for path in (place, *above) if path.is_symlink() or path.is_file()]
            if not there and place.is_dir():
                there = [path for path in place.rglob("*") if path.is_symlink() or not path.is_dir()]
            found.update(str(path.relative_to(self.worktree)) for path in there)
        return tuple(sorted(found - before))

    def take_back_half(self, old: str, new: str) -> None:
        """Undo what a killed `move_worktree` left: files that hold the beginning of what *new* has there, or all of it.

        Such a file holds nothing that is lost: the user's index says that it was *old* when the move began. A file with
        any other content is the user's own and stays; so does everything when the index is not *old*.
        """
        if self._start(["diff-index", "--cached", "--quiet", old, "--"], prefix=PUBLISHING).returncode:
            return
        dirty = set(self._git("diff-files", "--name-only", "-z").decode(errors="surrogateescape").split("\0"))
        entries = {c.path: c.entry for c in self.diff(old, new) if c.entry is not None and c.entry.mode != GITLINK}
        before = {entry.path for entry in self.entries(old, *entries)} if entries else set[str]()
        written = self.blobs(entry.oid for entry in entries.values())
        half: list[str] = []
        for path, entry in entries.items():
            there = _content(self.worktree / path) if path in dirty or path not in before else None
            if there is not None and written[entry.oid].startswith(there):
                half.append(path)
        for path in half:
            (self.worktree / path).unlink()
        names = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in half if path in before)
        if names:
            _refuse_disk(
                self._start(["checkout-index", "-z", "--stdin", "-f", "-u"], stdin=names, prefix=PUBLISHING),
                self.worktree,
            )

    def add_worktree(self, folder: Path, branch: str, base: str) -> None:
        """Create *branch* at *base* and a linked worktree of it at *folder* (run `--worktree`)."""
        self._git("worktree", "add", "--quiet", "-b", branch, str(folder), base)
