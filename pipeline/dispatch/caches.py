"""Where the tools that an agent runs keep their caches: outside the view, for the length of the run, for each role.

Nothing of it is ever merged, judged or seen by the program's own test runs, so what an agent puts there can fool nobody
but itself (architecture 6, Box).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.dispatch.trees import remove_tree
from pipeline.process import Mount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.process import Sandbox

CACHE: Final = Path("/redfirst-cache")
_LIMIT: Final = 4 << 30
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
    """The caches of one role in one run. `folder` is made when it is first used and emptied when it is too large."""

    folder: Path

    def mount(self, box: Sandbox) -> Mount:
        """Return how the box shows it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return Mount(self.folder, box.inside(self.folder, CACHE), writable=True)

    def env(self, box: Sandbox) -> dict[str, str]:
        """Return the variables by which tools find it."""
        top = box.inside(self.folder, CACHE)
        return {name: str(top / below) for name, below in _VARIABLES.items()}

    def trim(self, limit: int = _LIMIT) -> bool:
        """Empty it if it holds more than `limit` bytes; return whether that was so. Nothing may be at work in it."""
        if _size(self.folder, limit) <= limit:
            return False
        remove_tree(self.folder)
        return True


def _size(folder: Path, enough: int) -> int:
    total = 0
    if not folder.is_dir():
        return total
    for _, _, names, at in os.fwalk(folder):
        for name in names:
            try:
                total += os.stat(name, dir_fd=at, follow_symlinks=False).st_blocks * 512
            except OSError:
                continue
        if total > enough:
            break
    return total
