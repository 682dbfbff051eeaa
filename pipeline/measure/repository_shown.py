"""Shows a repository of one commit, the measured tree, to what is run over a copy: tests ask git, as at a desk.

It is the copy's own decoy, mounted read-only over the top of the view: what runs can change nothing in it, and it is no
part of the copy, so nothing of it is collected afterwards. The user's repository stays out of reach.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipeline.process import WORKSPACE
from pipeline.views.copies import shown_repository

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.process import Box, Command, Completed


def with_repository(box: Box, folder: Path) -> Box:
    """Return the box that shows its repository in a copy that is lent out; where nothing is mounted it has one."""
    return _WithRepository(box, folder) if box.maps_paths else box


class _WithRepository:
    def __init__(self, box: Box, folder: Path) -> None:
        self._box = box
        self._repository = shown_repository(folder, box.inside(folder, WORKSPACE))
        self.name = box.name
        self.maps_paths = box.maps_paths

    def inside(self, host: Path, target: Path) -> Path:
        return self._box.inside(host, target)

    async def run(self, command: Command) -> Completed:
        return await self._box.run(replace(command, mounts=(*command.mounts, self._repository)))
