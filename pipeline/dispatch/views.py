"""Which kind of view a dispatch gets here, and the checkouts that overlay views lie on.

An overlay where the machine offers it (tried once), else a shadow copy; the same protocol either way. A lower checkout
is shared by the views of one tree and moved to another tree only while nobody uses it: that costs the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline.dispatch.decoy import Decoy
from pipeline.dispatch.overlay import OverlayView, overlay_works
from pipeline.dispatch.trees import remove_tree
from pipeline.dispatch.view import ShadowView
from pipeline.git import GITLINK
from pipeline.process import WORKSPACE

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dispatch.box import Box
    from pipeline.dispatch.view import View
    from pipeline.runs.checkout import PrivateCheckout


@dataclass
class _Lower:
    """A checkout of one tree with its decoy; nobody but `Views` writes there."""

    folder: Path
    tree: str
    has_submodules: bool
    users: int = 0

    @property
    def files(self) -> Path:
        return self.folder / "tree"

    @property
    def decoy(self) -> Decoy:
        return Decoy(self.folder / "decoy" / ".git", self.files)

    def release(self) -> None:
        self.users -= 1


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
    _fault: str | None = field(default=None, init=False)
    _tried: bool = field(default=False, init=False)

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
        where = self.checkout.new_folder("view")
        workspace = self.box.inside(where, WORKSPACE)
        if self.fault is not None:
            return ShadowView.open(
                lambda folder: self.checkout.fill(tree, folder), where, workspace=workspace, writable=writable
            )
        lower = self._lower(tree)
        lower.users += 1
        try:
            return OverlayView.open(
                (lower.folder / "decoy", lower.files),
                where,
                workspace=workspace,
                writable=writable,
                owner=self.box.owner,
                release=lower.release,
            )
        except BaseException:
            lower.release()
            raise

    def _try(self) -> str | None:
        if not self.overlay:
            return "shadow copies were asked for"
        if not self.box.maps_paths:
            return f"the box {self.box.name} shows the host's own paths"
        return overlay_works(self.checkout.views(), self.box.owner)

    def _lower(self, tree: str) -> _Lower:
        same = next((lower for lower in self._lowers if lower.tree == tree), None)
        if same is not None:
            return same
        idle = next((lower for lower in reversed(self._lowers) if lower.users == 0), None)
        if idle is not None and self._advance(idle, tree):
            return idle
        if idle is not None:
            self._lowers.remove(idle)
            remove_tree(idle.folder)
        return self._new(tree)

    def _new(self, tree: str) -> _Lower:
        if not self._lowers:  # what a killed driver left may be half of something
            remove_tree(self.checkout.lowers())
        folder = self.checkout.lowers() / str(1 + max((int(lower.folder.name) for lower in self._lowers), default=0))
        files = folder / "tree"
        files.mkdir(parents=True)
        self.checkout.fill(tree, files, index=folder / "index")
        links = any(entry.mode == GITLINK for entry in self.checkout.repository.entries(tree))
        lower = _Lower(folder, tree, links)
        lower.decoy.make()
        self._lowers.append(lower)
        return lower

    def _advance(self, lower: _Lower, tree: str) -> bool:
        """Move an idle checkout to another tree; return False where only a new one would do."""
        changes = self.checkout.repository.diff(lower.tree, tree)
        if lower.has_submodules or any(change.entry and change.entry.mode == GITLINK for change in changes):
            return False
        before, lower.tree = lower.tree, ""  # a failure on the way leaves a checkout that is no tree
        self.checkout.repository.move(before, tree, lower.files, lower.folder / "index")
        lower.decoy.advance(change.path for change in changes)
        lower.tree = tree
        return True
