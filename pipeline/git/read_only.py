"""A repository that is not written to: new objects go to a folder of ours (verify, tdd)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.git.objects import alternates
from pipeline.git.repository import Repository
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from pathlib import Path


class UntouchedRepository(Repository):
    """Somebody's repository; new blobs and trees are written to the folder *objects*, which git reads as well."""

    def __init__(self, worktree: Path, git_dir: Path, common_dir: Path, objects: Path) -> None:
        super().__init__(worktree, git_dir, common_dir)
        self._environment |= {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": alternates(common_dir / "objects"),
            "GIT_NO_REPLACE_OBJECTS": "1",  # what is asked about is what was committed
        }
        self._objects = objects

    @property
    def _stores(self) -> tuple[Path, ...]:
        return (self._objects, self.common_dir / "objects")

    @classmethod
    def of(cls, repository: Repository, objects: Path) -> UntouchedRepository:
        """Return *repository* with new objects going to the folder *objects*, which is created."""
        objects.mkdir(parents=True)
        return cls(repository.worktree, repository.git_dir, repository.common_dir, objects)

    def worktree_tree(self) -> str:
        """Return the worktree's files as a tree: changed and new ones too, ignored ones not.

        The user's index is copied, never written.
        """
        import shutil  # noqa: PLC0415  (slow to load, and most commands write nothing)

        with scratch_folder("index") as place:
            index = place / "index"
            if (self.git_dir / "index").exists():
                shutil.copy2(self.git_dir / "index", index)  # git goes by its time
            env = self._at(self.worktree, index)
            self._git("add", "--all", "--", ":/", env=env)
            return self._git("write-tree", env=env).decode().strip()
