"""The *publish* door: moves the user's index and files, all at once or not at all."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Final

from pipeline.repo.locks import everywhere, free
from pipeline.repo.objects import ObjectDoor
from pipeline.repo.process import PUBLISHING, refuse_disk
from pipeline.repo.values import GITLINK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

CLOCK_TICK_S: Final = 0.02
"""The seconds that a file's time may be behind the clock."""


def _content(path: Path) -> bytes | None:
    """Return a file's content or a link's target; None for anything else."""
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else None


class PublishDoor(ObjectDoor):
    """The repository for changing the user's own index, files and worktrees; the only class that does."""

    def signing_key(self) -> str | None:
        """Return the key that the user signs commits with ("" = default), None if they do not sign."""
        wanted = self._answers("config", "--type=bool", "--get", "commit.gpgSign")
        return "" if wanted and wanted.strip() == b"true" else None

    def index_lock(self, since: float) -> Path | None:
        """Return the lock of the user's index if it cannot be removed; None when the index is free.

        Args:
            since: When we began to publish, in seconds since the epoch: a younger lock of a git that is dead was ours.
        """
        lock = self.git_dir / "index.lock"
        return None if free(lock, (self.worktree, self.git_dir), since=since) else lock

    def free_branch(self, ref: str, new: str, since: float) -> None:
        """Remove the locks that a killed git of ours left when it moved the branch *ref* to *new*, begun at *since*."""
        ours = (b"", f"{new}\n".encode())
        free(self.common_dir / f"{ref}.lock", everywhere(self.common_dir), since=since, contents=ours)
        free(self.git_dir / "HEAD.lock", everywhere(self.common_dir), since=since, contents=(b"",))

    def refresh_index(self) -> None:
        """Refresh the stat data of the user's index, so that touched files do not count as edited."""
        self._start(["update-index", "-q", "--refresh"], prefix=PUBLISHING)

    def index_is(self, commit: str) -> bool:
        """Return whether the user's index holds exactly the tree of *commit*."""
        done = self._start(["diff-index", "--cached", "--quiet", commit, "--"], prefix=PUBLISHING)
        return done.returncode == 0

    def staged(self, commit: str) -> tuple[str, ...]:
        """Return the paths in which the user's index differs from *commit*."""
        out = self._start(["diff-index", "--cached", "--name-only", "-z", commit, "--"], prefix=PUBLISHING).stdout
        return tuple(path for path in out.decode(errors="surrogateescape").split("\0") if path)

    def move_worktree(self, old: str, new: str) -> str | None:
        """Move the user's index and files from tree *old* to *new*; return git's refusal, else None.

        Raises:
            UserError: the disk is full: some files may be half written (see `take_back_half`).
        """
        in_the_way = self._in_the_way(old, new)
        if in_the_way:
            shown = f"git check-ignore -v -- {shlex.quote(in_the_way[0])}"
            return f"these files would be overwritten, and git does not know them ({shown}): {', '.join(in_the_way)}"
        done = self._start(["read-tree", "-m", "-u", old, new], prefix=PUBLISHING)
        refuse_disk(done, self.worktree)
        return done.stderr.decode(errors="replace").strip() or "refused" if done.returncode else None

    def _in_the_way(self, old: str, new: str) -> tuple[str, ...]:
        """Return the user's untracked files at the paths of new ones: git would overwrite ignored ones silently."""
        return self.untracked_at(old, (change.path for change in self.diff(old, new) if change.entry is not None))

    def untracked_at(self, old: str, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the user's files at and around *paths* that tree *old* does not have: the ignored ones, too."""
        before = {entry.path for entry in self.entries(old)}
        found: set[str] = set()
        for path in paths:
            if path in before:
                continue
            place = self.worktree / path
            above = [folder for folder in place.parents if folder.is_relative_to(self.worktree)]
            there = [one for one in (place, *above) if one.is_symlink() or one.is_file()]
            if not there and place.is_dir():
                there = [one for one in place.rglob("*") if one.is_symlink() or not one.is_dir()]
            found.update(str(one.relative_to(self.worktree)) for one in there)
        return tuple(sorted(found - before))

    def take_back_half(self, old: str, new: str, since: float) -> None:
        """Undo a killed `move_worktree`: restore the files that hold, in part or whole, what *new* has there.

        Such a file holds nothing that is lost: the user's index says that it was *old* when the move began. A file with
        any other content, or written before that, is the user's own and stays; so does every file when the index has
        another form of one of them than *old*.

        Args:
            old: What the files were before the move.
            new: What they were to become.
            since: When the move began, in seconds since the epoch.
        """
        dirty = set(self._git("diff-files", "--name-only", "-z").decode(errors="surrogateescape").split("\0"))
        entries = {c.path: c.entry for c in self.diff(old, new) if c.entry is not None and c.entry.mode != GITLINK}
        if not entries.keys().isdisjoint(self.staged(old)):
            return
        before = {entry.path for entry in self.entries(old, *entries)} if entries else set[str]()
        written = self.blobs(entry.oid for entry in entries.values())
        half: list[str] = []
        for path, entry in entries.items():
            place = self.worktree / path
            there = _content(place) if path in dirty or path not in before else None
            if (
                there is not None
                and place.lstat().st_mtime > since - CLOCK_TICK_S
                and written[entry.oid].startswith(there)
            ):
                half.append(path)
        for path in half:
            (self.worktree / path).unlink()
        names = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in half if path in before)
        if names:
            refuse_disk(
                self._start(["checkout-index", "-z", "--stdin", "-f", "-u"], stdin=names, prefix=PUBLISHING),
                self.worktree,
            )

    def add_worktree(self, folder: Path, branch: str, base: str | None, *, holds: Sequence[int] = ()) -> None:
        """Create *branch* at *base*, unless that is None, and a linked worktree of it at *folder* (run `--worktree`).

        git keeps the handles *holds*, and with them what they lock, when whoever started it is killed.
        """
        what = (str(folder), branch) if base is None else ("-b", branch, str(folder), base)
        self._git("worktree", "add", "--quiet", *what, keeps=holds)

    def remove_unfinished(self, folder: Path | None, branch: str, tip: str) -> None:
        """Remove what a git that was killed in `add_worktree` has left: a folder that nobody used, and the branch."""
        if folder is not None:
            self._start(("worktree", "remove", "--force", "--force", str(folder)))
        if self.resolve(f"refs/heads/{branch}") == tip:
            self._start(("branch", "--quiet", "--delete", "--force", branch))  # git refuses where it is checked out

    def remove_worktree(self, folder: Path, branch: str, tip: str, *, submodules: bool = False) -> None:
        """Remove a linked worktree without uncommitted changes, and its branch if that is still at *tip*.

        git removes none whose commit has submodules, unless it is forced to; with *submodules* the caller has seen that
        they hold nothing of their own, and that nothing else is uncommitted.
        """
        forced = ("--force",) if submodules else ()
        if self._start(("worktree", "remove", *forced, str(folder))).returncode == 0:
            self._start(("update-ref", "-d", f"refs/heads/{branch}", tip))
