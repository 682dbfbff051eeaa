"""A pool of tree copies, lent to one user at a time and cleaned: for shadow views and measurements.

A copy costs what the repository holds, so it is made once and then moved from tree to tree, which costs what differs.
One that cannot be put back, or moved, is thrown away. What a driver that was killed left of them is not trusted.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import anyio

from pipeline.process import Box, BoxError, Mount
from pipeline.repo import GitError
from pipeline.run.files import disk
from pipeline.run.ignored import ignored_names, put_ignored
from pipeline.sandbox.boxes.nobox import NoBox
from pipeline.sandbox.views.decoy_repository import Source, history_shown
from pipeline.sandbox.views.manifest import Limits, Manifest
from pipeline.sandbox.views.renames import Traces, watched_folders
from pipeline.sandbox.views.shadow import DECOY, Shadow, stamps_hold
from pipeline.trees import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pipeline.run.checkout import PrivateCheckout


class Movable(Protocol):
    """A folder that holds a tree and can be changed to hold another."""

    tree: str

    @property
    def files(self) -> Path:
        """Return the folder with the tree's files."""
        ...

    def moved(self, paths: tuple[str, ...]) -> None:
        """Record that the content of these paths is now another tree's."""
        ...


def move(checkout: PrivateCheckout, held: Movable, tree: str) -> bool:
    """Change an unused folder to hold another tree; return False where only a new copy can."""
    before, held.tree = held.tree, ""  # a failure on the way leaves a copy that is no tree
    try:
        paths = checkout.move(held.files, before, tree)
        if paths is None:
            return False
        held.moved(paths)
    except (BoxError, GitError, OSError):
        return False
    held.tree = tree
    return True


@dataclass
class Copy:
    """A copy in the pool, for one user at a time."""

    folder: Path
    tree: str
    shadow: Shadow
    lent: bool = False

    @property
    def files(self) -> Path:
        """Return the folder that holds the tree."""
        return self.shadow.files

    def moved(self, paths: tuple[str, ...]) -> None:
        """Record that the content of these paths is now another tree's."""
        self.shadow.moved(paths)

    def hand_over(self, place: Path, *, with_decoy: bool = True) -> None:
        """Prepare the copy for its next user, with the ignored files that *place* keeps.

        Raises:
            UserError: the disk does not take them.
        """
        self.shadow.hand_over(with_decoy=with_decoy)
        with disk(self.folder):
            self.shadow.lay_over(ignored_names(place), lambda files: put_ignored(place, files))


def shown_repository(files: Path, workspace: Path) -> Mount:
    """Return the mount of a repository of one commit for a folder that is lent out: the copy's decoy, read-only.

    Args:
        files: The folder.
        workspace: Where the box shows it.
    """
    return Mount(files.with_name(DECOY), workspace / ".git")


@dataclass
class Copies:
    """A pool of copies of trees.

    Args:
        checkout: The run's own place.
        name: Of the pool; no two of a run have the same.
        box: Where those run that get a copy.
        watch: What holds while one of them runs, other than a dispatch, which looks after itself.
    """

    checkout: PrivateCheckout
    name: str
    box: Box
    watch: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    one_at_a_time: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    """The lock of a measurement: two at once would distort each other's time."""
    _copies: list[Copy] = field(default_factory=list[Copy], init=False)
    _made: int = field(default=0, init=False)
    _trusting: bool | None = field(default=None, init=False)

    def lend(self, tree: str) -> Copy:
        """Return a copy that holds `tree`, for its one user until it is taken back.

        Raises:
            BoxError: it could not be made.
            UserError: the disk does not take it.
        """
        idle = [copy for copy in self._copies if not copy.lent]
        copy = next((copy for copy in idle if copy.tree == tree), next(iter(idle), None))
        if copy is not None and copy.tree != tree and not move(self.checkout, copy, tree):
            self.throw_away(copy)
            copy = None
        copy = copy or self._make(tree)
        copy.lent = True
        return copy

    def take_back(self, copy: Copy, after: Manifest) -> None:
        """Clean a copy, given its present content, and put it back into the pool."""
        try:
            copy.shadow.clean(after)
        except (BoxError, OSError):
            self.throw_away(copy)
        else:
            copy.lent = False

    def throw_away(self, copy: Copy) -> None:
        """Remove a copy whose content is unknown."""
        self._copies.remove(copy)
        remove_tree(copy.folder)

    @contextlib.contextmanager
    def lent(self, tree: str, told: Callable[[Traces], None] | None = None) -> Generator[Path]:
        """Yield a folder with `tree` and the ignored files, in which anything may be done.

        A box that maps paths shows a repository in it (`shown_repository`); elsewhere it has one of its own.

        Args:
            tree: What it is to hold.
            told: Hears at the end what was done to it.

        Raises:
            BoxError: it could not be made.
            Exception: what `watch` raises.
        """
        copy = self.lend(tree)
        try:
            copy.hand_over(self.checkout.root, with_decoy=not self.box.maps_paths)
            with self.watch(), watched_folders(copy.files, copy.shadow.folders if told else ()) as renames:
                yield copy.files
            after = copy.shadow.scan(Limits())
            if told is not None:
                told(Traces(copy.shadow.touched(after), renames))
        except BaseException:
            self.throw_away(copy)
            raise
        self.take_back(copy, after)

    def _make(self, tree: str) -> Copy:
        top = self.checkout.pool(self.name)
        if not self._made:
            remove_tree(top)
        self._made += 1
        folder = top / str(self._made)
        try:
            with disk(folder):
                copy = Copy(folder, tree, self._shadow(folder, tree))
        except BaseException:
            remove_tree(folder)
            raise
        self._copies.append(copy)
        return copy

    def _shadow(self, folder: Path, tree: str) -> Shadow:
        files = folder / "tree"
        files.mkdir(parents=True)
        if self._trusting is None:
            self._trusting = self._can_trust(folder)
        return Shadow.make(
            files,
            folder,
            lambda files: self.checkout.fill(tree, files),
            trusting=self._trusting,
            source=Source(self.checkout.repository, tree),
            shown=history_shown(self.checkout.repository, self.checkout.root),
        )

    def _can_trust(self, folder: Path) -> bool:
        # Who may set the clock can give a changed file its old time of change: root, where no box takes that away.
        may_set_clock = os.geteuid() == 0 and self.box.name == NoBox.name
        return not may_set_clock and stamps_hold(folder)
