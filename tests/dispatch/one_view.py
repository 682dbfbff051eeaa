"""A shadow view for one use, without the pool that a run lends copies from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.sandbox.views.shadow import Shadow
from pipeline.sandbox.views.view import ShadowView
from pipeline.trees import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.sandbox.views.manifest import Manifest


def open_view(fill: Callable[[Path], None], where: Path, *, workspace: Path, writable: bool) -> ShadowView:
    """Return a view, in the empty folder *where*, of the files that *fill* writes there."""
    beside = where.with_name(f".{where.name}.beside")
    for folder in (where, beside):
        folder.mkdir(parents=True, exist_ok=True)

    def release(_: Manifest | None) -> None:
        remove_tree(where)
        remove_tree(beside)

    shadow = Shadow.make(where, beside, fill, trusting=False)
    shadow.hand_over()
    return ShadowView(shadow, workspace, writable, release)
