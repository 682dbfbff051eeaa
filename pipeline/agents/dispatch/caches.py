"""Cache folders for the tools that agents run: outside the view, one for each role in each lane.

Nothing of it is ever merged, judged or seen by the program's own test runs, so what an agent puts there can fool nobody
but itself.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.matrix.engine.protocols import TRUNK
from pipeline.process import Box, Mount
from pipeline.trees import make_folder, opened, remove_tree

if TYPE_CHECKING:
    from collections.abc import Mapping


CACHE: Final = Path("/redfirst-cache")
_LIMIT: Final = 4 << 30
_ENTRY: Final = 4096
"""The bytes that each name counts at least: empty files fill a disk as well."""
_DEPTH: Final = 128
"""The deepest cache that is measured; no tool nests deeper."""
_VARIABLES: Final[Mapping[str, str]] = {
    "XDG_CACHE_HOME": "xdg",
    "PYTHONPYCACHEPREFIX": "pycache",
    "RUFF_CACHE_DIR": "ruff",
    "MYPY_CACHE_DIR": "mypy",
    "HYPOTHESIS_STORAGE_DIRECTORY": "hypothesis",
    "COVERAGE_FILE": "coverage",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "CARGO_TARGET_DIR": "target",
    "GOCACHE": "go-build",
    "npm_config_cache": "npm",
}


@dataclass(frozen=True)
class Cache:
    """The cache folder of a role in a lane, created when it is first used and emptied when it is too large."""

    folder: Path

    @classmethod
    def of(cls, top: Path, role: str, lane: str) -> Cache:
        """Return the caches of a role in a lane; *top* is the folder for the whole run."""
        return cls(top / (role if lane == TRUNK else f"{role}@{lane}"))

    def mount(self, box: Box) -> Mount:
        """Return the mount that shows the caches in a box."""
        # An agent can leave a set-user program there, which on disk is one of the driver's user: no other may reach it.
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o700)
        return Mount(self.folder, box.inside(self.folder, CACHE), writable=True)

    def env(self, box: Box) -> dict[str, str]:
        """Return the environment variables that point tools to the caches."""
        return variables(box.inside(self.folder, CACHE))

    def trim(self, limit: int = _LIMIT) -> bool:
        """Empty the caches if they hold more than `limit` bytes; return whether they did. No process may use them."""
        if not self.folder.is_dir():
            return False
        with opened(self.folder.parent) as parent:
            if _size(parent, self.folder.name, limit, 1) <= limit:
                return False
        remove_tree(self.folder)
        return True


def remove_caches(top: Path, lane: str) -> None:
    """Remove the caches of a lane that has ended."""
    for folder in top.glob(f"*@{lane}"):
        remove_tree(folder)


def variables(folder: Path) -> dict[str, str]:
    """Return the environment variables that put tools' caches below a folder."""
    return {name: str(folder / below) for name, below in _VARIABLES.items()}


def _size(parent: int, name: str, enough: int, depth: int) -> int:
    """Return the bytes that a folder holds, or more than `enough`; unreadable folders are made readable."""
    make_folder(parent, name)
    total = 0
    with opened(name, parent) as folder, os.scandir(folder) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            total += max(_ENTRY, status.st_blocks * 512)
            if stat.S_ISDIR(status.st_mode):
                total += _size(folder, entry.name, enough, depth + 1) if depth < _DEPTH else enough
            if total > enough:
                break
    return total
