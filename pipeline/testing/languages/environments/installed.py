"""Shows packages that are installed inside a checkout, such as `node_modules`, in a view; git trees lack them.

Where the box shows mounts at their targets, the folder is mounted read-only. Elsewhere the view gets a folder of links
for as long as the tests run. A link to one of the project's own packages (a workspace) leads into the view in both
cases, never back into the checkout: the tests would judge other files than the measured ones.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.process import Mount
from pipeline.sandbox.boxes.box_folder import remove_below

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pipeline.testing.languages.protocol import Environment, PlacedFolder, View


def installed_mounts(env: Environment, view: View) -> tuple[Mount, ...]:
    """Return the mounts of installed packages in the view; a folder that the view itself has stays."""
    return tuple(
        Mount(folder.path, Path(os.path.normpath(view.workspace / folder.relative)))
        for folder, _, _ in _lacking(env, view)
    )


@contextlib.contextmanager
def linked(env: Environment, view: View, *, isolated: bool) -> Generator[None]:
    """Link installed packages into the view while the context lasts, where nothing can be mounted.

    Args:
        env: The environment.
        view: The view; what is made in it is taken away again, whatever it is by then, and no link is followed.
        isolated: The box shows mounts at their targets: nothing is to do.
    """
    made: list[tuple[Path, str]] = []
    try:
        for folder, top, inside in _lacking(env, view) if not isolated else ():
            made.append((top, inside))
            _link(folder, inside, top)
        yield
    finally:
        for top, inside in reversed(made):
            with contextlib.suppress(OSError):  # the tests have moved what is around it
                remove_below(top, inside)


def _lacking(env: Environment, view: View) -> Iterator[tuple[PlacedFolder, Path, str]]:
    """Yield the folders of packages that the view lacks, the folder of the files in which each is shown, and where.

    That of a workspace is around the view.
    """
    for folder in env.installed:
        top, parts = view.host, list(Path(folder.relative).parts)
        while parts[0] == "..":
            top = top.parent
            parts.pop(0)
        inside = "/".join(parts)
        if _has_parent(top, inside) and not os.path.lexists(top / inside):
            yield folder, top, inside


def _has_parent(top: Path, inside: str) -> bool:
    """Return whether the files have the folder's parent, reached through no link."""
    at = top
    for part in Path(inside).parent.parts:
        at /= part
        if at.is_symlink() or not at.is_dir():
            return False
    return True


def _link(folder: PlacedFolder, inside: str, view: Path) -> None:
    checkout, place = folder.path, view / inside
    for _ in Path(inside).parts:
        checkout = checkout.parent
    place.mkdir()
    place.chmod(0o777)  # tools keep caches in it; it is the view's own
    for entry in sorted(folder.path.iterdir()):
        if entry.name.startswith("@") and entry.is_dir() and not entry.is_symlink():
            (place / entry.name).mkdir()
            for inner in sorted(entry.iterdir()):
                (place / entry.name / inner.name).symlink_to(_target(inner, checkout, view))
        else:
            (place / entry.name).symlink_to(_target(entry, checkout, view))


def _target(entry: Path, checkout: Path, view: Path) -> Path:
    """Return the target of a link: in the view for a package of the project, else where it is installed."""
    real = entry.resolve()
    if entry.is_symlink() and real.is_relative_to(checkout):
        inside = real.relative_to(checkout)
        if "node_modules" not in inside.parts:
            return view / inside
    return entry


def editable_mounts(env: Environment, view: View) -> tuple[Mount, ...]:
    """Return the mounts that show the view at the paths of editable installs.

    They come before the environment's own mounts, which may lie inside: `.venv` in the checkout it was installed from.
    What is installed inside a checkout (`node_modules`) is shown in the view.
    """
    return installed_mounts(env, view) + tuple(
        view.mount.below(root.relative, root.path)
        for root in env.editable_roots
        if (view.host / root.relative).is_dir() and root.path != view.workspace / root.relative
    )


def editable_paths(env: Environment, view: View, *, isolated: bool) -> tuple[Path, ...]:
    """Return the folders for PYTHONPATH: uninstalled sources, and without mounts also editable installs."""
    roots = [] if isolated else [root.relative for root in env.editable_roots]
    # a package is imported from the folder that contains it
    is_package = {root: (view.host / root / "__init__.py").is_file() for root in roots}
    places = (posixpath.dirname(root) or "." if is_package[root] else root for root in roots)
    return tuple(dict.fromkeys(view.workspace / name for name in (*places, *env.source_folders)))
