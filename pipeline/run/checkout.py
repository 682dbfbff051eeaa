"""Keeps the run's own checkout and the place of its views, outside the repository.

It is a plain folder with a private index, not a linked worktree: nothing is registered in the user's repository, so no
lock is shared, nothing can be left behind there, and parallel runs cannot race.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path, PurePosixPath

from pipeline.repo import GITLINK, Entry, Repository, TreeChange, await_lock
from pipeline.run.files import Seal, disk


class PrivateCheckout:
    """The folder `root` and what is below it; only our code writes there."""

    def __init__(self, repository: Repository, root: Path) -> None:
        self.repository = repository
        self.root = root
        self.tree = root / "tree"
        self._index = root / "index"
        self._number = 0
        self._seal = Seal.of()

    def open(self, tree: str) -> None:
        """Make the checkout hold *tree*; a killed driver's git may end first, a stale lock of ours is cleared.

        Raises:
            UserError: the disk does not take it.
        """
        lock = self._index.with_name("index.lock")
        await_lock(lock)
        with disk(self.root):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)  # agents leave files there that are ours on disk
            self.tree.mkdir(exist_ok=True)
            lock.unlink(missing_ok=True)
        self.repository.materialise(tree, self.tree, self._index)
        self.seal()

    def seal(self) -> None:
        """Take for ours what is in the checkout now, such as an environment that the user's setup made there."""
        self._seal = Seal.of(self.tree, self._index)

    def is_intact(self) -> bool:
        """Return whether nobody but us has changed the checkout."""
        return not self._seal.broken()

    def fill(self, tree: str, folder: Path) -> None:
        """Make *folder* (empty) hold *tree*, with the submodules that the user's worktree has initialised."""
        # an index of its own: a killed driver's git may still be at work on another folder
        _fill(self.repository, tree, folder, folder.with_name(f".{folder.name}.index"))

    def move(self, folder: Path, old: str, new: str) -> tuple[str, ...] | None:
        """Make *folder*, which holds exactly *old*, hold *new*; return the paths in which they differ.

        The work is proportional to these. None, and nothing done, where only `fill` would do: when submodules or
        attributes differ, files can have other content than their own entries say.
        """
        changes = self.repository.diff(old, new)
        folders = {str(parent) for change in changes for parent in PurePosixPath(change.path).parents}
        if any(
            PurePosixPath(one.path).name == ".gitattributes" or _is_submodule(folder, one, folders) for one in changes
        ):
            return None
        for path in (folder / change.path for change in changes if change.entry is None):
            path.unlink()
            _remove_empty(path.parent, folder)
        self.repository.check_out(new, (change.path for change in changes if change.entry is not None), folder)
        return tuple(change.path for change in changes)

    def views(self) -> Path:
        """Return the folder below which views are made."""
        return self._made(self.root / "views")

    def pool(self, name: str) -> Path:
        """Return the folder below which copies of trees are kept for further use, those of one kind."""
        return self._made(self.root / "pool" / name)

    @staticmethod
    def _made(folder: Path) -> Path:
        with disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def new_folder(self, name: str) -> Path:
        """Return a new empty folder for a view or a measurement, called *name* and a number."""
        while True:
            self._number += 1
            folder = self.views() / f"{name}-{self._number}"
            if not folder.exists():
                with disk(folder):
                    folder.mkdir()
                return folder

    def close(self) -> None:
        """Remove everything below `root`; only this run made it."""
        remove_tree(self.root)


def _fill(repository: Repository, tree: str, folder: Path, index: Path) -> None:
    index.unlink(missing_ok=True)
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
    repository.materialise(tree, folder, index)
    fill_submodules(repository, tree, folder, index)


def fill_submodules(here: Repository, tree: str, folder: Path, index: Path) -> None:
    """Fill the submodules of *tree* in a new worktree, from the objects that submodules of *here* have.

    They are plain files: nothing is fetched, and nothing is written into the configuration that worktrees share.

    Args:
        here: The repository as seen from where somebody stands.
        tree: What was checked out.
        folder: The worktree.
        index: A place for an index of ours, outside of it.
    """
    for entry in here.entries(tree):
        if entry.mode == GITLINK:
            _fill_submodule(here, entry, folder / entry.path, index)
    index.unlink(missing_ok=True)


def has_submodules(repository: Repository, commit: str) -> bool:
    """Return whether a commit has submodules."""
    return any(entry.mode == GITLINK for entry in repository.entries(commit))


def _is_submodule(folder: Path, change: TreeChange, folders: set[str]) -> bool:
    """Return whether it is one, or was; *folders* are those of the changed files."""
    path = folder / change.path
    was_one = path.is_dir() and not path.is_symlink() and change.path not in folders
    return was_one or (change.entry is not None and change.entry.mode == GITLINK)


def _remove_empty(folder: Path, top: Path) -> None:
    with contextlib.suppress(OSError):  # of the first that is not empty
        while folder != top:
            folder.rmdir()
            folder = folder.parent


def _fill_submodule(repository: Repository, entry: Entry, folder: Path, index: Path) -> None:
    """Fill a submodule where this worktree, or else the main checkout, has it with its commit; else leave it empty."""
    for checkout in dict.fromkeys((repository.worktree, repository.main_checkout)):
        source = checkout / entry.path
        if not (source / ".git").exists():
            continue
        inner = Repository.find(source)
        if inner.worktree.resolve() == source.resolve() and inner.resolve(f"{entry.oid}^{{commit}}") is not None:
            folder.mkdir(parents=True, exist_ok=True)
            _fill(inner, inner.tree_of(entry.oid), folder, index)
            return


def remove_tree(folder: Path) -> None:
    """Remove *folder* with everything in it, also where an agent took the permissions away; follows no symlink."""
    if not folder.exists():
        return
    if folder.stat().st_mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(stat.S_IRWXU)
    for at, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(at, name)  # noqa: PTH118  (a walk of bytes that may be no text)
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(path, stat.S_IRWXU)  # noqa: PTH101
    shutil.rmtree(folder)
