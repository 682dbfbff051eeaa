"""What keeps the runners of one repository apart: a view of its own for each, and a cache of its own."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.box_folder import private_place
from pipeline.process import Mount
from pipeline.toolchains.protocol import Cache, View

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from pipeline.process import Sandbox


def cache_of(cache: Cache | None, name: str) -> Cache | None:
    """Return the part of a cache that one runner has."""
    if cache is None:
        return None
    folder = cache.folder / name
    folder.mkdir(exist_ok=True)
    return replace(cache, folder=folder)


@contextmanager
def own_views(sandbox: Sandbox, view: View, names: Iterable[str]) -> Generator[dict[str, View]]:
    """Lend a view to each runner: the first the view itself, the others copies of it, made before anything runs.

    Args:
        sandbox: Where they run.
        view: The files as they are.
        names: The runners, in the order in which they run.
    """
    with private_place("redfirst-several-") as place:
        views: dict[str, View] = {}
        for name in names:
            if not views:
                views[name] = view
                continue
            copy = place / name
            shutil.copytree(view.host, copy, symlinks=True)
            shown = sandbox.inside(copy, view.workspace)
            views[name] = View(Mount(copy, shown, writable=view.mount.writable))
        yield views
