"""Finds out which paths are tracked, or reached through tracked ones, and which ones a folder's own rules ignore."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.repo.process import run
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LINKS: Final = 40  # as many as the kernel follows


class TrackedFiles:
    """The tracked files of a repository's checkouts, read from their indexes when first needed."""

    def __init__(self, tops: Iterable[Path], search_path: str | None = None) -> None:
        """Set the checkouts and the search path for git.

        Args:
            tops: Their top folders; one that is no worktree tracks nothing.
            search_path: Where git is looked up, if not on PATH.
        """
        self._tops = tuple(dict.fromkeys(top.resolve() for top in tops))
        self._search_path = search_path
        self._known: dict[Path, frozenset[str]] = {}

    def lead_to(self, path: Path) -> bool:
        """Return whether a path is tracked, contains tracked files, or passes through a tracked link."""
        way = list(_way(path))
        return any(self._has(place) for place in way) or self._has_below(way[-1])

    def set_up(self, programs: Path) -> bool:
        """Return whether a file that a Python interpreter in the folder *programs* loads at its start is tracked."""
        around = programs.parent
        return any(map(self.lead_to, (programs / "pyvenv.cfg", around / "pyvenv.cfg", *around.glob("lib*/py*"))))

    def _has(self, place: Path) -> bool:
        """Return whether a path itself is tracked: a file, a link, or a nested repository."""
        return any(os.path.relpath(place, top) in self._paths(top) for top in self._tops_around(place))

    def _has_below(self, place: Path) -> bool:
        for top in self._tops_around(place):
            inside = f"{os.path.relpath(place, top)}/"
            if place == top or any(path.startswith(inside) for path in self._paths(top)):
                return True
        return False

    def _tops_around(self, place: Path) -> list[Path]:
        return [top for top in self._tops if place.is_relative_to(top)]

    def _paths(self, top: Path) -> frozenset[str]:
        if top not in self._known:
            path = {} if self._search_path is None else {"PATH": self._search_path}
            done = run(top, ("ls-files", "-z"), path)
            names = done.stdout.decode(errors="surrogateescape").split("\0") if done.returncode == 0 else []
            self._known[top] = frozenset(filter(None, names))
        return self._known[top]


def _way(path: Path) -> Iterator[Path]:
    """Yield each place that the kernel visits when it resolves a path, with links followed, the last one last."""
    at, rest, links = Path("/"), list(path.absolute().parts[1:]), 0
    yield at
    while rest:
        name = rest.pop(0)
        at = at.parent if name == ".." else at / name
        yield at
        try:
            target = at.readlink()
        except OSError:  # no link, or not there
            continue
        links += 1
        if links > _LINKS:
            return
        rest = [*(part for part in target.parts if part != "/"), *rest]
        at = Path("/") if target.is_absolute() else at.parent
    yield at


_NOBODYS: Final = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def ignored_in(folder: Path) -> frozenset[str]:
    """Return the paths below *folder* that its `.gitignore` files match, tracked or not.

    A folder ends with a slash and stands for all that is in it. Neither a repository in *folder* nor the user's own
    ignore rules are asked: what the project does not say itself is somebody's work.

    Raises:
        OSError: git cannot tell.
    """
    with scratch_folder("ignored") as empty:
        for name in ("objects", "refs"):
            (empty / name).mkdir()
        (empty / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")
        argv = ("ls-files", "--others", "--ignored", "--exclude-per-directory=.gitignore", "--directory", "-z")
        done = run(folder, argv, {**_NOBODYS, "GIT_DIR": str(empty), "GIT_WORK_TREE": str(folder)})
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise OSError(errno.EIO, f"git cannot tell what is ignored here: {said}", str(folder))
    return frozenset(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)
