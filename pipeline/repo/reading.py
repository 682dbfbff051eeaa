"""The *read* door: trees, commits, patches, attributes, refs, status, and what keeps git itself from working."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pipeline.outcomes import Reason
from pipeline.repo.git_files import branch_in_files, refs_in_files
from pipeline.repo.process import LARGEST, TooLargeError
from pipeline.repo.settings import SettingsDoor
from pipeline.repo.trees import Listing
from pipeline.repo.values import Entry, FileStat, GitError, Signature, TreeChange
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from pathlib import Path

    from pipeline.repo.gitpython import ObjectReader

OBJECT_NAME: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_ASKED: Final = 64
"""Processes of git that paths which it does not take may cost."""
_LISTINGS: Final = 8  # the trees that a step looks at
_ANSWERS: Final = 256
_LARGEST_ANSWER: Final = 1 << 18
_FEW: Final = ("refs/redfirst/", "refs/replace/")
"""Prefixes with so few refs that reading their files is faster than asking git."""
_FETCH_LIMIT_S: Final = 30.0
_PROGRAM: Final = re.compile(r"([A-Za-z0-9_.+/-]+)(?:\s|$)")
"""The program of a filter's command line, where it is a plain word; git gives the line to a shell."""


class ReadDoor(SettingsDoor):
    """The repository for reading; git runs with the user's config, but no hooks, fsmonitor or optional locks."""

    def __init__(self, worktree: Path, git_dir: Path, common_dir: Path) -> None:
        super().__init__(worktree, git_dir, common_dir)
        self._listings: dict[str, Listing] = {}
        self._list_once = threading.Lock()
        self._known: dict[Hashable, bytes] = {}

    @cached_property
    def _reader(self) -> ObjectReader:
        from pipeline.repo.gitpython import ObjectReader  # noqa: PLC0415  (slow: once a repository is opened)

        return ObjectReader(self.worktree, self._environment)

    def branch(self) -> str | None:
        """Return the short name of the branch that HEAD is on; None when HEAD is detached."""
        known = branch_in_files(self.git_dir)
        if known is not None:
            return known
        ref = self._answers("symbolic-ref", "--quiet", "HEAD")
        return ref.decode(errors="surrogateescape").rstrip("\n").removeprefix("refs/heads/") if ref else None

    def default_of_origin(self) -> str | None:
        """Return the branch that `origin` has as its own, `origin/main`; None where it is not known here."""
        head = "refs/remotes/origin/HEAD"
        ref = self._answers("symbolic-ref", "--quiet", head) if self.resolve(head) is not None else None
        return ref.decode(errors="surrogateescape").rstrip("\n").removeprefix("refs/remotes/") if ref else None

    def resolve(self, revision: str) -> str | None:
        """Return the object name of *revision*, None if there is none."""
        if "\n" in revision:  # no line can ask for it
            found = self._answers("rev-parse", "--verify", "--quiet", "--end-of-options", revision)
            return found.decode().strip() if found else None
        return self._reader.name_of(revision)

    def tree_of(self, commit: str) -> str:
        """Return the tree of *commit*."""
        tree = self.resolve(f"{commit}^{{tree}}")
        if tree is None:
            raise GitError(("rev-parse", "--verify", f"{commit}^{{tree}}"), 1, "there is no such tree")
        return tree

    def status(self, *exclude: str, ignored: bool = False) -> tuple[str, ...]:
        """Return the lines of `git status`, but for paths at or below *exclude*; *ignored* adds ignored ones."""
        pathspecs = [f":(exclude,top,literal){path}" for path in exclude]
        shown = ("--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
        shown += ("--ignored",) if ignored else ()
        out = self._git("status", *shown, "--", ":/", *pathspecs)
        return tuple(line.decode(errors="surrogateescape") for line in out.split(b"\0") if line)

    def entries(self, tree: str, *paths: str) -> tuple[Entry, ...]:
        """Return the entries of *tree* (all, or those at and below *paths*), blobs and gitlinks, recursively.

        Raises:
            TooLargeError: it names paths without number.
        """
        if not paths or tree in self._listings:
            listing = self._listing(tree)
            return listing.below(paths) if paths else listing.entries
        argv = ("--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", tree, "--", *paths)
        return _listed(self._of_objects(*argv, of=(tree,), what=f"The tree {tree}")).entries

    def _listing(self, tree: str) -> Listing:
        with self._list_once:
            if tree in self._listings:
                return self._listings[tree]
            listing = _listed(self._read("ls-tree", "-r", "-t", "-z", "--full-tree", tree, what=f"The tree {tree}"))
            if OBJECT_NAME.fullmatch(tree):  # an object never changes, a ref does
                while len(self._listings) >= _LISTINGS:
                    del self._listings[next(iter(self._listings))]
                self._listings[tree] = listing
            return listing

    def _of_objects(self, *argv: str, of: Iterable[str], what: str = "") -> bytes:
        """Return git's output for a command about the objects *of*; cached, for an object never changes.

        Args:
            argv: The command.
            of: The names in it; a ref among them can move, so that its answer is not kept.
            what: What is too large where the answer is.
        """

        def ask() -> bytes:
            return self._read(*argv, what=what) if what else self._git(*argv)

        return self._once(argv, ask) if all(map(OBJECT_NAME.fullmatch, of)) else ask()

    def _once(self, asked: Hashable, ask: Callable[[], bytes]) -> bytes:
        """Return the answer to a question that has only one; it is asked again when many others were asked since."""
        known = self._known.get(asked)
        if known is None:
            known = ask()
            if len(self._known) >= _ANSWERS:
                self._known.clear()
            if len(known) <= _LARGEST_ANSWER:
                self._known[asked] = known
        return known

    def names(self, tree: str, folder: str) -> tuple[str, ...]:
        """Return the names of the entries directly in *folder* of *tree*."""
        out = self._read(
            *("--literal-pathspecs", "ls-tree", "-z", "--full-tree", "--name-only", tree, "--", f"{folder}/"),
            what=f"The tree {tree}",
        )
        return tuple(path.rpartition("/")[2] for path in out.decode(errors="surrogateescape").split("\0") if path)

    def blob(self, revision: str, limit: int | None = None) -> bytes | None:
        """Return the bytes of a blob (`<tree>:<path>` or an object name), None if there is none.

        Raises:
            ValueError: it has more bytes than *limit*.
        """
        if "\n" in revision:  # no line can ask for it
            name = self.resolve(revision)
            return None if name is None else self.blob(name, limit)
        return self._reader.content(revision, LARGEST if limit is None else limit)

    def tracked(self, name: str) -> str | None:
        """Return a path at or below *name*, in any case, that the index or HEAD has; None if there is none.

        On a file system that takes upper and lower case for the same, each spelling is the same folder.
        """
        listed, folder = self._index(), os.fsencode(name)
        at_or_below = rb"(?is)(?:\A|\0). (%s(?:/[^\0]*)?)(?=\0)" % re.escape(folder)
        # every command asks this, of an index that may be large
        staged = re.findall(at_or_below, listed) if b" " + folder.lower() in listed.lower() else []
        tree = self.resolve("HEAD^{tree}")
        argv = ("ls-tree", "-z", "--full-tree", "--name-only", tree or "")
        committed = self._of_objects(*argv, of=(tree,)).split(b"\0") if tree is not None else []
        found = [*staged, *(entry for entry in committed if entry.decode(errors="replace").lower() == name.lower())]
        return next((path.decode(errors="surrogateescape") for path in found if path), None)

    def _index(self) -> bytes:
        """Return the paths of the user's index, each ended by NUL and behind the letter of how it is marked."""
        argv = ("ls-files", "-v", "-z", "--full-name", "--", ":/")
        return self._once((argv, self._index_state()), lambda: self._git(*argv))

    def _index_state(self) -> tuple[int, ...]:
        """Return numbers that change whenever git writes the index: it puts a new file in its place."""
        try:
            found = (self.git_dir / "index").stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def blobs(self, oids: Iterable[str], limit: int = LARGEST) -> dict[str, bytes]:
        """Return the bytes of many blobs by object name, read through one process.

        Raises:
            TooLargeError: together they have more than `limit` bytes.
        """
        found: dict[str, bytes] = {}
        left = limit
        for oid in dict.fromkeys(oids):
            try:
                content = self._reader.content(oid, left)
            except ValueError as error:
                said = f"What these files hold is too large: git has more than {limit >> 20} MiB to say of it."
                raise TooLargeError(said, Reason.USAGE) from error
            if content is None:
                raise GitError(("cat-file", "blob", oid), 1, "there is no such file")
            found[oid] = content
            left -= len(content)
        return found

    def diff(self, old: str, new: str) -> tuple[TreeChange, ...]:
        """Return the changes from tree *old* to *new* by path (a rename is a deletion and an addition)."""
        argv = ("diff-tree", "-r", "-z", "--no-renames", "--full-index", old, new)
        out = self._of_objects(*argv, of=(old, new)).split(b"\0")
        changes: list[TreeChange] = []
        for meta, name in zip(out[0::2], out[1::2], strict=False):
            _, mode, _, oid, status = meta.decode().split(" ")
            path = name.decode(errors="surrogateescape")
            changes.append(TreeChange(path, None if status == "D" else Entry(path, mode, oid)))
        return tuple(changes)

    def patch(self, old: str, new: str, *paths: str) -> str:
        """Return the patch from *old* to *new* for reading; no external diff, no textconv, no colour."""
        argv = ["diff-tree", "-p", "-r", "--no-ext-diff", "--no-textconv", "--no-color", "-M", old, new, "--", *paths]
        return self._git(*argv).decode(errors="replace")

    def numstat(self, old: str, new: str) -> tuple[FileStat, ...]:
        """Return the number of lines that each differing path gained and lost."""
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
        """Return the `filter` attribute, in *checkout*, of those *paths* that have one."""
        stdin = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in paths)
        out = self._git("check-attr", "-z", "--stdin", "filter", env=self._at(checkout), cwd=checkout, stdin=stdin)
        parts = out.decode(errors="surrogateescape").split("\0")
        return {p: v for p, v in zip(parts[0::3], parts[2::3], strict=False) if v not in {"unspecified", "unset"}}

    def foreign_filters(self, checkout: Path, paths: Iterable[str]) -> dict[str, str]:
        """Return the paths whose filter we may not run, each with a sentence on why.

        LFS is the one that is, where its program is set up: without it the content itself would be
        stored where a pointer belongs.
        """
        has_lfs = any(self.config(f"filter.lfs.{key}") for key in ("clean", "process"))
        unset = "" if has_lfs else ", and it is not set up here (git lfs install)"
        return {
            path: f"goes through the git filter {name!r}; only lfs is supported{unset if name == 'lfs' else ''}"
            for path, name in self.filters(checkout, paths).items()
            if name != "lfs" or not has_lfs
        }

    def ignored_paths(self, checkout: Path, paths: Iterable[str]) -> dict[str, str]:
        """Return those *paths* that a `.gitignore` of *checkout* matches, each with the file and pattern that does.

        The user's own ignore rules are not asked: they say nothing of the project. Where git cannot tell, it is none.
        git tells nothing at all where it does not take one of the paths; then the halves are asked, a bounded number.
        """
        argv = ("check-ignore", "--no-index", "--verbose", "-z", "--stdin")
        waiting, parts = [tuple(paths)], list[str]()
        for _ in range(_MOST_ASKED):
            if not waiting:
                break
            some = waiting.pop()
            stdin = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in some)
            done = self._start(argv, self._at(checkout), checkout, stdin)
            if done.returncode == 0:
                parts += done.stdout.decode(errors="surrogateescape").split("\0")[:-1]
            elif done.returncode != 1 and len(some) > 1:  # 1: none is ignored; some paths make git crash
                middle = len(some) // 2
                waiting += [some[middle:], some[:middle]]
        return {
            path: f"{source}: {pattern}"
            for source, pattern, path in zip(parts[0::4], parts[2::4], parts[3::4], strict=True)
            if source.rpartition("/")[2] == ".gitignore" and not source.startswith("/") and not pattern.startswith("!")
        }

    def tracked_in(self, folder: Path) -> frozenset[str]:
        """Return the absolute paths of the files below *folder* in the user's index; none outside the worktree."""
        top = self.worktree.resolve()
        if not folder.is_relative_to(top) or folder.is_relative_to(self.common_dir):
            return frozenset()
        argv = ("--literal-pathspecs", "ls-files", "-z", "--", str(folder.relative_to(top)))
        names = self._git(*argv).decode(errors="surrogateescape").split("\0")
        return frozenset(str(top / name) for name in names if name)

    def ignored_matching(self, patterns: Path) -> tuple[str, ...]:
        """Return the worktree's ignored files that match the ignore patterns in the file *patterns*."""
        both = ("--others", "--ignored", "-z")
        wanted = self._git("ls-files", *both, f"--exclude-from={patterns}").split(b"\0")
        ignored = set(self._git("ls-files", *both, "--exclude-standard").split(b"\0"))
        return tuple(sorted(p.decode(errors="surrogateescape") for p in wanted if p and p in ignored))

    def refs(self, *prefixes: str) -> dict[str, str]:
        """Return the refs at or below one of *prefixes*, each with the object it points to."""
        few = prefixes and all(prefix.startswith(_FEW) for prefix in prefixes)
        found = refs_in_files(self.common_dir, prefixes) if few else None
        if found is not None:
            return found
        out = self._git("for-each-ref", "--format=%(refname) %(objectname)", *prefixes).decode(errors="surrogateescape")
        lines = filter(None, out.split("\n"))  # a name may hold a line break of another kind
        return dict(line.split(" ", 1) for line in lines)  # type: ignore[misc]

    def subject(self, commit: str) -> str:
        """Return the first line of a commit's message."""
        out = self._of_objects("log", "--no-walk", "--format=%s", commit, of=(commit,))
        return out.decode(errors="replace").strip()

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether *old* is *new* or one of its ancestors; the answer is cached."""
        if old == new:
            return True
        asked = ("merge-base", "--is-ancestor", old, new)
        if not (OBJECT_NAME.fullmatch(old) and OBJECT_NAME.fullmatch(new)):
            return self._start(asked).returncode == 0
        # 1 is an answer; any other code is a failure, which may be none the next time
        code = self._once(asked, lambda: str(self._start(asked).returncode).encode())
        if code not in {b"0", b"1"}:
            self._known.pop(asked, None)
        return code == b"0"

    def trailers(self, commit: str) -> tuple[tuple[str, str], ...]:
        """Return the trailers of a commit's message, in order, as git reads them."""
        # `show` compares trees, also where it shows nothing of them
        plain = ("-c", "log.showSignature=false")  # the user's wish for their own eyes
        shown = self._git(*plain, "log", "--no-walk", "--format=%(trailers:only,unfold)", commit)
        out = shown.decode(errors="replace")
        pairs = (line.partition(":") for line in out.split("\n") if ":" in line)
        return tuple((key.strip(), value.strip()) for key, _, value in pairs)

    def message(self, commit: str) -> str:
        """Return the whole message of a commit."""
        return self._git("log", "--no-walk", "--format=%B", commit).decode(errors="replace").rstrip("\n") + "\n"

    def author(self, commit: str) -> Signature:
        """Return the author of a commit, with the date."""
        out = self._git("log", "--no-walk", "--date=raw", "--format=%an%x00%ae%x00%ad", commit)
        return Signature(*out.decode(errors="replace").rstrip("\n").split("\0"))

    def parents(self, commit: str) -> tuple[str, ...]:
        """Return the parents of a commit; none for a root commit, or where a shallow clone ends."""
        return tuple(self._git("rev-list", "--parents", "--max-count=1", commit).decode().split()[1:])

    def history(self, *revisions: str, saying: str = "") -> tuple[str, ...]:
        """Return the commits of revisions (`A..B`, `HEAD`, `--all`), oldest first.

        Args:
            revisions: As `git rev-list` takes them.
            saying: Only those whose message has these words somewhere.
        """
        grep = ("--fixed-strings", f"--grep={saying}") if saying else ()
        return tuple(self._git("rev-list", "--topo-order", "--reverse", *grep, *revisions, "--").decode().split())

    def tags(self, commit: str, most: int) -> tuple[tuple[str, bool, int], ...]:
        """Return the newest tags of *commit* and of those before it: name, whether annotated, seconds since 1970."""
        if refs_in_files(self.common_dir, ("refs/tags/",)) == {} or self.resolve(commit) is None:
            return ()
        form = "--format=%(refname:strip=2)%00%(objecttype)%00%(creatordate:unix)"
        asked = ("for-each-ref", f"--merged={commit}", "--sort=-creatordate", f"--count={most}", form, "refs/tags/")
        lines = self._git(*asked).decode(errors="surrogateescape").split("\n")
        parts = (line.split("\0") for line in lines if line)
        return tuple((name, kind == "tag", int(when or 0)) for name, kind, when in parts)

    def merged(self, base: bytes, one: bytes, other: bytes) -> bytes | None:
        """Return a file with the changes of both sides merged, None where they conflict."""
        with scratch_folder("merge") as place:
            files = [place / name for name in ("one", "base", "other")]
            for file, content in zip(files, (one, base, other), strict=True):
                file.write_bytes(content)
            return self._answers("merge-file", "--stdout", *map(str, files))

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the merge base of two commits, None if they have none."""
        found = self._answers("merge-base", one, other)
        return found.decode().split()[0] if found else None

    def touching(self, old: str, new: str, *paths: str) -> tuple[str, ...]:
        """Return the commits of `old..new` that change one of *paths*, oldest first."""
        argv = ("--literal-pathspecs", "rev-list", "--topo-order", "--reverse", f"{old}..{new}", "--", *paths)
        return tuple(self._git(*argv).decode().split())

    def missing_objects(self) -> tuple[str, ...]:
        """Return the objects of HEAD's tree that a partial clone does not have; nothing is fetched."""
        promised = ("extensions.partialclone", *(s.key for s in self.settings() if s.key.endswith(".promisor")))
        if all(self.config(key) is None for key in promised) or self.resolve("HEAD") is None:
            return ()
        out = self._git("rev-list", "--objects", "--missing=print", "--no-walk", "HEAD").decode(errors="replace")
        return tuple(line[1:] for line in out.splitlines() if line.startswith("?"))

    def can_fetch(self, name: str) -> bool:
        """Return whether git gets an object, from the remote where it is not here."""
        try:
            return self._start(("cat-file", "-e", name), limit_s=_FETCH_LIMIT_S).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def required_filters(self) -> Mapping[str, tuple[str, ...]]:
        """Return the filters without which git refuses to check out files of HEAD, each with these files."""
        required = {
            setting.key.split(".", 1)[1].removesuffix(".required")
            for setting in self.settings()
            if setting.key.startswith("filter.") and setting.key.endswith(".required")
            and setting.value.lower() in {"", "true", "yes", "on", "1"}
        }  # fmt: skip
        if not required or self.resolve("HEAD") is None:
            return {}
        found: dict[str, list[str]] = {}
        for path, name in self.filters(self.worktree, (entry.path for entry in self.entries("HEAD"))).items():
            if name in required:
                found.setdefault(name, []).append(path)
        return {name: tuple(paths) for name, paths in found.items()}

    def filter_programs(self, name: str) -> tuple[str, ...]:
        """Return the programs that a filter starts, where its command lines tell."""
        process = self.config(f"filter.{name}.process")
        lines = (process,) if process else (self.config(f"filter.{name}.{way}") for way in ("smudge", "clean"))
        found = (_PROGRAM.match(line.strip()) for line in lines if line)
        return tuple(dict.fromkeys(program[1] for program in found if program))

    def hidden_changes(self) -> tuple[str, ...]:
        """Return the files whose changes `git status` does not show: marked skip-worktree or assume-unchanged."""
        lines = os.fsdecode(self._index()).split("\0")
        marked = [line[2:] for line in lines if line and (line[0] == "S" or line[0].islower())]
        there = [path for path in marked if (self.worktree / path).is_symlink() or (self.worktree / path).exists()]
        if not there:
            return ()
        with scratch_folder("index") as place:
            env = self._at(self.worktree, place / "index")
            whole = ("-c", "core.sparseCheckout=false")  # it would mark them here, too
            self._git(*whole, "read-tree", "HEAD", env=env)
            argv = ("--literal-pathspecs", "diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--")
            changed = self._git(*whole, *argv, *there, env=env)
        return tuple(path.decode(errors="surrogateescape") for path in changed.split(b"\0") if path)

    def unsaved_files(self) -> set[str]:
        """Return the files that would be lost with the worktree, also those that git ignores or does not look at."""
        return {*(line[3:] for line in self.status(ignored=True)), *self.hidden_changes()}

    def ignored_by(self, path: str) -> str | None:
        """Return the rule by which git ignores a path that it does not track: FILE:LINE:PATTERN; None if it is none."""
        found = self._answers("check-ignore", "-v", "--", path)
        return found.decode(errors="replace").split("\t")[0] if found else None


def _listed(out: bytes) -> Listing:
    """Return the listing in the output of `git ls-tree -z`."""
    entries: list[Entry] = []
    folders: dict[str, str] = {}
    for line in filter(None, out.split(b"\0")):
        meta, _, name = line.partition(b"\t")
        mode, kind, oid = meta.decode().split(" ")
        path = name.decode(errors="surrogateescape")
        if kind == "tree":
            folders[path] = oid
        else:
            entries.append(Entry(path, mode, oid))
    return Listing(entries, folders)
