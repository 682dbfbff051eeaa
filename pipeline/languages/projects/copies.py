"""Separates the runners of one repository: each gets its own view and its own cache."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from pipeline.languages.protocol import Cache, View
from pipeline.process import Mount
from pipeline.scratch import scratch_folder
from pipeline.views.manifest import EntryKind, scan
from pipeline.views.renames import Traces, watched_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from pathlib import Path

    from pipeline.process import Box


def cache_of(cache: Cache | None, name: str) -> Cache | None:
    """Return the part of a cache that belongs to one runner."""
    if cache is None:
        return None
    folder = cache.folder / _as_name(name)
    folder.mkdir(exist_ok=True)
    return replace(cache, folder=folder)


@contextmanager
def own_views(box: Box, view: View, names: Iterable[str], told: Callable[[Traces], None]) -> Generator[dict[str, View]]:
    """Yield a view for each runner: the view itself for the first, copies made in advance for the others.

    Args:
        box: Where they run.
        view: The files as they are.
        names: The runners, in the order in which they run.
        told: Hears at the end what was done to each of the copies.
    """
    with scratch_folder("several") as place, ExitStack() as traced:
        views: dict[str, View] = {}
        for name in names:
            if not views:
                views[name] = view
                continue
            copy = place / _as_name(name)
            shutil.copytree(view.host, copy, symlinks=True)
            shown = box.inside(copy, view.workspace)
            views[name] = View(Mount(copy, shown, writable=view.mount.writable))
            traced.enter_context(_traced_copy(copy, told))
        yield views


def _as_name(name: str) -> str:
    """Return a runner's name as that of one folder: of one project among several it has a path in it."""
    return quote(name, safe="")


@contextmanager
def _traced_copy(copy: Path, told: Callable[[Traces], None]) -> Generator[None]:
    base = scan(copy)
    folders = {path for path, entry in base.items() if entry.kind is EntryKind.FOLDER}
    with watched_folders(copy, folders) as renames:
        yield
    after = scan(copy, base, trusting=True)
    changed = {path for path in base.keys() | after.keys() if after.get(path) is not base.get(path)}
    is_folder = {path for path in changed if (after.get(path) or base[path]).kind is EntryKind.FOLDER}
    told(Traces(frozenset(changed - is_folder), renames))
