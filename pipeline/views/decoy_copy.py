"""Copies the decoy into a shadow view for an agent, anew for each dispatch, from one out of its reach."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.trees import opened, opened_parent, remove_entry, remove_tree
from pipeline.views.manifest import Stamp

if TYPE_CHECKING:
    from pipeline.views.decoy import Decoy


@dataclass
class DecoyCopy:
    """The `.git` at the top of a view, a copy of a decoy elsewhere.

    Args:
        decoy: What it is a copy of; it lies in the same file system, out of the agent's reach.
        top: The view.
        trusting: Whether an unchanged stamp means an unchanged file.
    """

    decoy: Decoy
    top: Path
    trusting: bool
    _copied: dict[str, tuple[Stamp, Stamp]] = field(default_factory=dict[str, tuple[Stamp, Stamp]], init=False)
    _settled_ns: int = field(default=0, init=False)

    def renew(self) -> None:
        """Restore the copy to equal the decoy. Untouched files stay: a pack can be large."""
        made = self.decoy.folder.with_name("copy")
        remove_tree(made)
        copied: dict[str, tuple[Stamp, Stamp]] = {}
        with opened(self.top) as top:
            for at, _, names in os.walk(self.decoy.folder):
                below = Path(at).relative_to(self.decoy.folder)
                (made / below).mkdir()
                for name in names:
                    source, target = Path(at, name), made / below / name
                    path = str(Path(".git", below, name))
                    if not self._keep(top, path, source, target):
                        shutil.copyfile(source, target)
                    copied[path] = (Stamp.of(source.lstat()), Stamp.of(target.lstat()))
            remove_entry(top, ".git")
        made.rename(self.top / ".git")
        self._copied = copied

    def settle(self, now_ns: int) -> None:
        """Record the time at which an agent gets the copy; a file written at that very time is not trusted later."""
        self._settled_ns = now_ns

    def _keep(self, top: int, path: str, source: Path, target: Path) -> bool:
        """Move a file of the old copy if neither it nor its source has changed; return whether it was."""
        before = self._copied.get(path)
        if before is None or not self.trusting or before[1].changed_ns >= self._settled_ns:
            return False
        with contextlib.suppress(OSError), opened_parent(top, path) as (parent, name):
            now = (Stamp.of(source.lstat()), Stamp.of(os.stat(name, dir_fd=parent, follow_symlinks=False)))
            if now == before:
                os.rename(name, target, src_dir_fd=parent)
                return True
        return False
