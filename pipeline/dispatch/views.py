"""Which kind of view a dispatch gets here, and the copies of trees that are kept from one view to the next.

An overlay where the machine offers it (tried once), else a shadow copy; the same protocol either way. A copy costs what
the repository holds, so it is made once and then moved from tree to tree, which costs what differs. What a driver that
was killed left of them is not trusted.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline.dispatch.decoy import Decoy, Source
from pipeline.dispatch.nobox import NoBox
from pipeline.dispatch.overlay import OverlayView, overlay_works
from pipeline.dispatch.shadow import Shadow, stamps_hold
from pipeline.dispatch.trees import remove_tree
from pipeline.dispatch.view import ShadowView
from pipeline.git import GitError
from pipeline.process import WORKSPACE, SandboxError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dispatch.box import Box
    from pipeline.dispatch.manifest import Manifest
    from pipeline.dispatch.view import View
    from pipeline.runs.checkout import PrivateCheckout


@dataclass
class _Lower:
    """A checkout of one tree with its decoy, for overlay views to lie on: many at a time, nobody writes there."""

    folder: Path
    tree: str
    users: int = 0

    @property
    def files(self) -> Path:
        return self.folder / "tree"

    @property
    def decoy(self) -> Decoy:
        return Decoy(self.folder / "decoy" / ".git", self.files)

    def moved(self, paths: tuple[str, ...]) -> None:
        self.decoy.advance(paths)

    def release(self) -> None:
        self.users -= 1


@dataclass
class _Pooled:
    """A shadow copy of one tree, for one view at a time."""

    folder: Path
    tree: str
    shadow: Shadow
    users: int = 0

    @property
    def files(self) -> Path:
        return self.shadow.files

    def moved(self, paths: tuple[str, ...]) -> None:
        self.shadow.moved(paths)


@dataclass
class Views:
    """Opens the views of one run.

    Args:
        checkout: The run's own place.
        box: Where the views are shown.
        overlay: False for shadow copies even where overlays work.
    """

    checkout: PrivateCheckout
    box: Box
    overlay: bool = True
    _lowers: list[_Lower] = field(default_factory=list[_Lower], init=False)
    _shadows: list[_Pooled] = field(default_factory=list[_Pooled], init=False)
    _made: int = field(default=0, init=False)
    _fault: str | None = field(default=None, init=False)
    _tried: bool = field(default=False, init=False)
    _trusting: bool | None = field(default=None, init=False)

    @property
    def fault(self) -> str | None:
        """Return why views are shadow copies here, None if they are overlays."""
        if not self._tried:
            self._fault = self._try()
            self._tried = True
        return self._fault

    def open(self, tree: str, *, writable: bool) -> View:
        """Return a fresh view of `tree`.

        Raises:
            SandboxError: it could not be made.
        """
        return self._overlay(tree, writable=writable) if self.fault is None else self._shadow(tree, writable=writable)

    def _try(self) -> str | None:
        if not self.overlay:
            return "shadow copies were asked for"
        if not self.box.maps_paths:
            return f"the box {self.box.name} shows the host's own paths"
        return overlay_works(self.checkout.views(), self.box.owner)

    # --- overlays --------------------------------------------------------------------------------------------------

    def _overlay(self, tree: str, *, writable: bool) -> OverlayView:
        where = self.checkout.new_folder("view")
        lower = self._lower(tree)
        lower.users += 1
        try:
            return OverlayView.open(
                (lower.folder / "decoy", lower.files),
                where,
                workspace=self.box.inside(where, WORKSPACE),
                writable=writable,
                owner=self.box.owner,
                release=lower.release,
            )
        except BaseException:
            lower.release()
            raise

    def _lower(self, tree: str) -> _Lower:
        same = next((lower for lower in self._lowers if lower.tree == tree), None)
        if same is not None:
            return same
        idle = next((lower for lower in reversed(self._lowers) if lower.users == 0), None)
        if idle is not None:
            if self._move(idle, tree):
                return idle
            self._lowers.remove(idle)
            remove_tree(idle.folder)
        lower = _Lower(self._new_folder(), tree)
        lower.files.mkdir()
        self.checkout.fill(tree, lower.files)
        lower.decoy.make(Source(self.checkout.repository, tree))
        self._lowers.append(lower)
        return lower

    # --- shadow copies ---------------------------------------------------------------------------------------------

    def _shadow(self, tree: str, *, writable: bool) -> ShadowView:
        pooled = self._copy(tree)
        pooled.users += 1
        try:
            pooled.shadow.hand_over()
        except BaseException:
            self._throw_away(pooled)
            raise
        workspace = self.box.inside(pooled.files, WORKSPACE)
        return ShadowView(pooled.shadow, workspace, writable, lambda after: self._take_back(pooled, after))

    def _copy(self, tree: str) -> _Pooled:
        idle = [pooled for pooled in self._shadows if pooled.users == 0]
        found = next((pooled for pooled in idle if pooled.tree == tree), next(iter(idle), None))
        if found is not None:
            if found.tree == tree or self._move(found, tree):
                return found
            self._throw_away(found)
        folder = self._new_folder()
        files = folder / "tree"
        files.mkdir()
        if self._trusting is None:
            self._trusting = self._can_trust(folder)
        shadow = Shadow.make(
            files,
            folder,
            lambda files: self.checkout.fill(tree, files),
            trusting=self._trusting,
            source=Source(self.checkout.repository, tree),
        )
        pooled = _Pooled(folder, tree, shadow)
        self._shadows.append(pooled)
        return pooled

    def _can_trust(self, folder: Path) -> bool:
        # Who may set the clock can give a changed file its old time of change: root, where no box takes that away.
        may_set_clock = os.geteuid() == 0 and self.box.name == NoBox.name
        return not may_set_clock and stamps_hold(folder)

    def _take_back(self, pooled: _Pooled, after: Manifest | None) -> None:
        """Put a copy back that an agent had; what has not been looked at, or cannot be put back, is thrown away."""
        if after is not None:
            with contextlib.suppress(SandboxError, OSError):
                pooled.shadow.clean(after)
                pooled.users -= 1
                return
        self._throw_away(pooled)

    def _throw_away(self, pooled: _Pooled) -> None:
        self._shadows.remove(pooled)
        remove_tree(pooled.folder)

    # --- both ------------------------------------------------------------------------------------------------------

    def _new_folder(self) -> Path:
        if not self._made:
            remove_tree(self.checkout.pool())
        self._made += 1
        folder = self.checkout.pool() / str(self._made)
        folder.mkdir()
        return folder

    def _move(self, idle: _Lower | _Pooled, tree: str) -> bool:
        """Move a copy to another tree; return False where only a new one would do."""
        before, idle.tree = idle.tree, ""  # a failure on the way leaves a copy that is no tree
        try:
            paths = self.checkout.move(idle.files, before, tree)
            if paths is None:
                return False
            idle.moved(paths)
        except (SandboxError, GitError, OSError):
            return False
        idle.tree = tree
        return True
