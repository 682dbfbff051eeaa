"""Opens the views of a run, as overlays or shadow copies, and keeps the checkouts that overlays use.

An overlay where the machine offers it (tried once), else a shadow copy; the same protocol either way. A lower checkout
is shared by the views of one tree and moved to another tree only while nobody uses it: that costs the difference. One
that a killed driver left may be half of something, and is made anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pipeline.process import WORKSPACE
from pipeline.run.ignored import ignored_names, kept_ignored
from pipeline.sandbox.views.copies import Copies, move
from pipeline.sandbox.views.decoy_repository import Decoy, ShownHistory, Source, history_shown
from pipeline.sandbox.views.overlay import OverlayView, overlay_works
from pipeline.sandbox.views.view import ShadowView, View
from pipeline.trees import remove_tree

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.run.checkout import PrivateCheckout
    from pipeline.sandbox.boxes.box import ProvableBox
    from pipeline.sandbox.views.manifest import Manifest


@dataclass
class _Lower:
    """A checkout of one tree with its decoy, shared read-only by overlay views."""

    folder: Path
    tree: str
    shown: ShownHistory
    users: int = 0

    @property
    def files(self) -> Path:
        return self.folder / "tree"

    @property
    def decoy(self) -> Decoy:
        return Decoy(self.folder / "decoy" / ".git", self.files, self.shown)

    def moved(self, paths: tuple[str, ...]) -> None:
        self.decoy.advance(paths)

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
    box: ProvableBox
    overlay: bool = True
    _lowers: list[_Lower] = field(default_factory=list[_Lower], init=False)
    _made: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._copies = Copies(self.checkout, "shadows", self.box)

    @cached_property
    def fault(self) -> str | None:
        """Return why views are shadow copies here, None if they are overlays."""
        if not self.overlay:
            return "shadow copies were asked for"
        if not self.box.maps_paths:
            return f"the box {self.box.name} shows the host's own paths"
        return overlay_works(self.checkout.views(), self.box.owner)

    def open(self, tree: str, *, writable: bool) -> View:
        """Return a fresh view of `tree`.

        Raises:
            BoxError: it could not be made.
        """
        return self._overlay(tree, writable=writable) if self.fault is None else self._shadow(tree, writable=writable)

    def _overlay(self, tree: str, *, writable: bool) -> OverlayView:
        where = self.checkout.new_folder("view")
        lower = self._lower(tree)
        lower.users += 1
        ignored = ignored_names(self.checkout.root)
        over = (kept_ignored(self.checkout.root),) if ignored else ()
        try:
            return OverlayView.open(
                (*over, lower.folder / "decoy", lower.files),
                where,
                workspace=self.box.inside(where, WORKSPACE),
                writable=writable,
                owner=self.box.owner,
                ignored=ignored,
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
            if move(self.checkout, idle, tree):
                return idle
            self._lowers.remove(idle)
            remove_tree(idle.folder)
        top = self.checkout.pool("lowers")
        if not self._made:
            remove_tree(top)
        self._made += 1
        shown = history_shown(self.checkout.repository, self.checkout.root)
        lower = _Lower(top / str(self._made), tree, shown)
        lower.files.mkdir(parents=True)
        self.checkout.fill(tree, lower.files)
        lower.decoy.make(Source(self.checkout.repository, tree))
        self._lowers.append(lower)
        return lower

    def _shadow(self, tree: str, *, writable: bool) -> ShadowView:
        copy = self._copies.lend(tree)
        try:
            copy.hand_over(self.checkout.root)
        except BaseException:
            self._copies.throw_away(copy)
            raise

        def release(after: Manifest | None) -> None:
            if after is None:  # nobody has looked at it
                self._copies.throw_away(copy)
            else:
                self._copies.take_back(copy, after)

        return ShadowView(copy.shadow, self.box.inside(copy.files, WORKSPACE), writable, release)
