"""The *object* door: writes blobs, trees, commits, and our own refs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

from pipeline.repo.locks import everywhere, free
from pipeline.repo.process import PUBLISHING, refuse_disk
from pipeline.repo.reading import ReadDoor
from pipeline.repo.values import NO_OBJECT, GitError, Signature, SigningError, TreeChange
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

SIGNING_LIMIT_S: Final = 60.0
OWN_REFS: Final = "refs/redfirst/"
"""The prefix of this program's refs; nobody else has refs there."""


def alternates(*stores: Path) -> str:
    """Return the value of GIT_ALTERNATE_OBJECT_DIRECTORIES for these object folders."""
    escaped = (str(store).replace("\\", "\\\\").replace('"', '\\"') for store in stores)
    return ":".join(f'"{store}"' for store in escaped)


class ObjectDoor(ReadDoor):
    """The repository for writing objects and our own refs, with attributes that no agent has touched."""

    @property
    def _stores(self) -> tuple[Path, ...]:
        """Return the folders in which the repository's objects may be."""
        return (self.common_dir / "objects",)

    def write_blob(self, content: bytes, path: str | None = None, checkout: Path | None = None) -> str:
        """Write *content* as a blob; with *path* and *checkout* through the clean filters that the checkout names."""
        if path is None or checkout is None:
            return self._git("hash-object", "-w", "--stdin", "--no-filters", stdin=content).decode().strip()
        argv = ("hash-object", "-w", "--stdin", "--path", path)
        return self._git(*argv, env=self._at(checkout), cwd=checkout, stdin=content).decode().strip()

    def write_files(self, files: Iterable[tuple[str, bytes]]) -> dict[str, str]:
        """Write the contents of named files as blobs, unfiltered, in one process; return their object names.

        git is told no name of a file: it takes a quoted one for another, and ends one at a line break.
        """
        names: list[str] = []
        with scratch_folder("files") as place:
            for name, content in files:
                (place / str(len(names))).write_bytes(content)
                names.append(name)
            stdin = "".join(f"{number}\n" for number in range(len(names))).encode()
            argv = ("hash-object", "-w", "--no-filters", "--stdin-paths")
            out = self._git(*argv, env=self._at(place), cwd=place, stdin=stdin)
        return dict(zip(names, out.decode().split(), strict=True))

    def build_tree(self, base: str, changes: Iterable[TreeChange]) -> str:
        """Return the tree *base* with *changes*; no folder is scanned.

        A path that no checkout may have is left out.
        """
        from pipeline.repo.trees import NewTree  # noqa: PLC0415  (what only reads builds none)

        wanted = sorted(changes, key=lambda change: change.entry is not None)  # a file may give way to a folder
        if not wanted:
            return base
        new = NewTree(self._listing(base))
        for change in wanted:
            new.change(change)
        out = self._git("mktree", "--batch", "-z", stdin=b"".join(new.lines())).split()
        return out[-1].decode() if out else base

    def make_tree(self, trees: Mapping[str, str]) -> str:
        """Return a tree whose entries are the given trees by name."""
        lines = "".join(f"040000 tree {oid}\t{name}\0" for name, oid in sorted(trees.items()))
        return self._git("mktree", "-z", stdin=lines.encode()).decode().strip()

    def pack(self, tree: str, objects: Path) -> None:
        """Write a pack that holds exactly *tree* and everything in it into the object folder *objects*."""
        # git writes to its own objects first and then moves the pack, which no two file systems allow
        env = {"GIT_OBJECT_DIRECTORY": str(objects), "GIT_ALTERNATE_OBJECT_DIRECTORIES": alternates(*self._stores)}
        argv = ("pack-objects", "--quiet", "--revs", "--window=0", str(objects / "pack" / "pack"))
        self._git(*argv, env=env, stdin=f"{tree}\n".encode())

    def materialise(self, tree: str, folder: Path, index: Path) -> None:
        """Check out *tree* into *folder* with a private *index*; files that the index does not know stay.

        Raises:
            TooLargeError: the tree names paths without number.
        """
        self.entries(tree)  # git itself would never end
        whole = ("-c", "core.sparseCheckout=false")  # the user's sparse checkout is not ours
        self._git(*whole, "read-tree", "--reset", "-u", tree, env=self._at(folder, index), cwd=folder)

    def check_out(self, tree: str, paths: Iterable[str], folder: Path) -> None:
        """Write the files *paths* of *tree* into *folder*, with the attributes there; existing entries are replaced."""
        names = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in paths)
        if not names:
            return
        with scratch_folder("index") as place:
            self._git(
                *("--literal-pathspecs", "restore", "--quiet", "--worktree", f"--source={tree}"),
                *("--pathspec-from-file=-", "--pathspec-file-nul"),
                env=self._at(folder, place / "index"),
                cwd=folder,
                stdin=names,
            )

    def applied(self, tree: str, patch: bytes) -> str | None:
        """Return *tree* with a patch applied, None if git rejects it; only objects are written."""
        with scratch_folder("index") as place:
            env = self._at(place, place / "index")
            self._git("read-tree", tree, env=env, cwd=place)
            done = self._start(("apply", "--cached", "--whitespace=nowarn", "-"), env, cwd=place, stdin=patch)
            return None if done.returncode else self._git("write-tree", env=env, cwd=place).decode().strip()

    def commit_tree(
        self,
        tree: str,
        parents: Sequence[str],
        message: str,
        who: Signature,
        *,
        committer: Signature | None = None,
        sign: str | None = None,
    ) -> str:
        """Write a commit object and return its name.

        Args:
            tree: The commit's tree.
            parents: Its parents, in order.
            message: The whole message.
            who: Author and committer, and the date of both.
            committer: Who else commits it.
            sign: None for no signature, else the key ("" = the user's default key).

        Raises:
            SigningError: signing failed or took longer than `SIGNING_LIMIT_S`.
        """
        env = {
            f"GIT_{kind}_{what}": value
            for kind, one in (("AUTHOR", who), ("COMMITTER", committer or who))
            for what, value in (("NAME", one.name), ("EMAIL", one.email), ("DATE", one.date))
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
                argv,
                env,
                stdin=message.encode(),
                prefix=PUBLISHING,
                limit_s=SIGNING_LIMIT_S,
                foreground=sign is not None,
            )
        except subprocess.TimeoutExpired as error:
            raise SigningError(f"no signature within {SIGNING_LIMIT_S:.0f} s") from error
        refuse_disk(done, self.common_dir)
        if done.returncode:
            said = done.stderr.decode(errors="replace")
            if sign is not None:
                raise SigningError(said.strip())
            raise GitError(argv, done.returncode, said)
        return done.stdout.decode().strip()

    def pick(self, onto: str, commits: Sequence[str], who: Signature) -> tuple[int, str] | None:
        """Return how many of *commits* `git cherry-pick` can apply onto *onto*, and why it would stop at the next one.

        It is tried in objects alone. None where this git cannot (before 2.38).
        """
        tree = self.tree_of(onto)
        for done, commit in enumerate(commits):
            before = self._git("rev-parse", "--verify", f"{commit}^").decode().strip()
            side = self.commit_tree(tree, (before,), "tried", who)  # so that what is compared with is what came before
            argv = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", side, commit)
            found = self._start(argv)
            if found.returncode not in {0, 1}:
                return None
            result, *names = found.stdout.decode(errors="surrogateescape").rstrip("\0").split("\0")
            if found.returncode:
                return done, f"conflicts in {', '.join(names)}"
            if result == tree:
                return done, f"{commit[:12]} is in it already"
            tree = result
        return len(commits), ""

    def merges(self, one: str, other: str) -> bool:
        """Return whether git merges two commits without a conflict; only objects are written.

        A git that cannot (before 2.38) says no.
        """
        return self._start(("merge-tree", "--write-tree", "--no-messages", one, other)).returncode == 0

    def set_ref(self, ref: str, new: str, old: str | None = None) -> bool:
        """Point *ref* at *new*; with *old*, only if the ref points there now (NO_OBJECT: only if it does not exist)."""
        self._free(ref)
        told = [] if old is None else ["" if old == NO_OBJECT else old]  # how long a name is, only git knows
        done = self._start(("update-ref", "--no-deref", "-m", "redfirst", ref, new, *told))
        refuse_disk(done, self.common_dir)
        return done.returncode == 0

    def delete_ref_at(self, ref: str, old: str) -> bool:
        """Delete a ref if it points at *old* now; return whether it did."""
        self._free(ref)
        done = self._start(("update-ref", "--no-deref", "-d", ref, old))
        refuse_disk(done, self.common_dir)
        return done.returncode == 0

    def delete_ref(self, ref: str) -> None:
        """Delete one of our own refs; it may be missing.

        Raises:
            UserError: another git holds the refs.
        """
        self._free(ref)
        self._git("update-ref", "--no-deref", "-d", ref)

    def _free(self, ref: str) -> None:
        lock = self.common_dir / f"{ref}.lock"
        if ref.startswith(OWN_REFS) and lock.exists():
            free(lock, everywhere(self.common_dir))
