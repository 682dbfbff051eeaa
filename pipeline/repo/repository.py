"""Finds the repository around a folder, and its worktrees; as it is, or without ever writing to it (verify, tdd)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo.git_files import Worktree, branch_in_files, is_bare, linked_in_files
from pipeline.repo.objects import alternates
from pipeline.repo.process import run
from pipeline.repo.publishing import PublishDoor
from pipeline.repo.remotes import RemoteDoor
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLACES: Final = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
_NOWHERE: Final = "not a git repository (or any"
_BARE: Final = ("must be run in a work tree", "cannot use bare repository")


class NoRepositoryError(UserError):
    """A folder that is in no git repository."""


class Repository(PublishDoor, RemoteDoor):
    """A repository as seen from one worktree, with the read, object, publish and remote doors."""

    @classmethod
    def find(cls, start: Path) -> Repository:
        """Return the repository that contains the folder *start*.

        Raises:
            UserError: there is none, it has no worktree there, git is missing, or git refuses to work there.
        """
        places = _asked(start, _PLACES).split("\n")[:-1]
        if len(places) != len(_PLACES):  # a folder has a line break in its name
            places = [_asked(start, (place,)).removesuffix("\n") for place in _PLACES]
        worktree, git_dir, common_dir = places
        return cls(Path(worktree), Path(git_dir).resolve(), (start / common_dir).resolve())

    def worktrees(self) -> tuple[Worktree, ...]:
        """Return all worktrees, the main checkout first; also those that git lists though their folder is gone.

        Where a submodule or a git folder in another place has the main checkout, only itself knows where that is.
        """
        here = Worktree(self.worktree.resolve(), self.git_dir)
        main = Worktree(self.main_checkout.resolve(), self.common_dir)
        linked = linked_in_files(self.common_dir)
        known = (here, *linked) if is_bare(self.common_dir) else (main, here, *linked)
        found = {each.path: each for each in known}  # a linked one says more of itself
        return tuple(each for each in found.values() if each in linked or each.is_there)

    def unseen_branch(self) -> str | None:
        """Return the branch that the main checkout stands on, where only itself knows where it is; else None."""
        if is_bare(self.common_dir) or any(each.git_dir == self.common_dir for each in self.worktrees()):
            return None
        return branch_in_files(self.common_dir)

    def at(self, worktree: Worktree) -> Repository:
        """Return the same repository as seen from another of its worktrees."""
        is_here = worktree.path == self.worktree.resolve()  # then what is known already need not be asked again
        return self if is_here else Repository(worktree.path, worktree.git_dir, self.common_dir)


def _asked(start: Path, what: Sequence[str]) -> str:
    if not start.is_dir():
        raise UserError(f"{start} is no folder.", Reason.USAGE, path=str(start))
    try:
        done = run(start, ("rev-parse", *what))
    except FileNotFoundError as error:
        raise UserError("git is not installed, or not on PATH.", Reason.USAGE) from error
    if done.returncode == 0:
        return done.stdout.decode(errors="surrogateescape")
    said = done.stderr.decode(errors="replace").strip()
    if _NOWHERE in said:
        raise NoRepositoryError(
            f"{start} is not inside a git repository. Change into one, or: git init", Reason.USAGE, path=str(start)
        )
    if any(words in said for words in _BARE):
        raise UserError(
            "This is a bare repository, and redfirst needs a worktree. Create one: git worktree add ../work BRANCH "
            f"(git: {said})",
            Reason.BARE_REPOSITORY,
            path=str(start),
            actions=("git worktree add ../work BRANCH",),
        )
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    advised = tuple(line for line in lines if line.startswith("git "))
    told = "; ".join(line for line in lines if line not in advised and not line.endswith(":")) or said
    raise UserError(f"git refuses to work in {start}: {told}", Reason.USAGE, path=str(start), actions=advised)


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
