"""A repository that is only looked at: what has to be written on the way goes to a folder of ours (verify, tdd)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.git.objects import alternates
from pipeline.git.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Mapping


class UntouchedRepository(Repository):
    """Somebody's repository; new blobs and trees lie in *objects*, which git takes for a part of it."""

    def __init__(self, worktree: Path, git_dir: Path, common_dir: Path, objects: Path) -> None:
        super().__init__(worktree, git_dir, common_dir)
        self._objects = objects
        theirs = alternates(common_dir / "objects")
        self._aside = {
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": theirs,
            "GIT_NO_REPLACE_OBJECTS": "1",  # what is asked about is what was committed
        }

    @property
    def _stores(self) -> tuple[Path, ...]:
        return (self._objects, self.common_dir / "objects")

    @classmethod
    def of(cls, repository: Repository, objects: Path) -> UntouchedRepository:
        """Return *repository* with a place for new objects, which is made."""
        objects.mkdir(parents=True)
        return cls(repository.worktree, repository.git_dir, repository.common_dir, objects)

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        return super()._environment({**self._aside, **extra})

    def worktree_tree(self) -> str:
        """Return what the worktree holds now as a tree: changed and new files too, ignored ones not.

        The user's index is copied, never written.
        """
        with tempfile.TemporaryDirectory(prefix="redfirst-index-") as place:
            index = Path(place) / "index"
            if (self.git_dir / "index").exists():
                shutil.copy2(self.git_dir / "index", index)  # git goes by its time
            env = self._at(self.worktree, index)
            self._git("add", "--all", "--", ":/", env=env)
            return self._git("write-tree", env=env).decode().strip()

    def trailers(self, commit: str) -> tuple[tuple[str, str], ...]:
        """Return the trailers of a commit's message, in order, as git reads them."""
        # `show` compares trees, also where it shows nothing of them
        plain = ("-c", "log.showSignature=false")  # the user's wish for their own eyes
        shown = self._git(*plain, "log", "--no-walk", "--format=%(trailers:only,unfold)", commit)
        out = shown.decode(errors="replace")
        pairs = (line.partition(":") for line in out.split("\n") if ":" in line)
        return tuple((key.strip(), value.strip()) for key, _, value in pairs)

    def parents(self, commit: str) -> tuple[str, ...]:
        """Return the parents of a commit; none of a root, and none where a shallow clone ends."""
        return tuple(self._git("rev-list", "--parents", "--max-count=1", commit).decode().split()[1:])

    def history(self, *revisions: str, saying: str = "") -> tuple[str, ...]:
        """Return the commits of some revisions (`A..B`, `HEAD`, `--all`), oldest first.

        Args:
            revisions: As `git rev-list` takes them.
            saying: Only those whose message has these words somewhere.
        """
        grep = ("--fixed-strings", f"--grep={saying}") if saying else ()
        return tuple(self._git("rev-list", "--topo-order", "--reverse", *grep, *revisions, "--").decode().split())

    def merged(self, base: bytes, one: bytes, other: bytes) -> bytes | None:
        """Return a file with both changes of it, None where they touch each other."""
        with tempfile.TemporaryDirectory(prefix="redfirst-merge-") as place:
            files = [Path(place) / name for name in ("one", "base", "other")]
            for file, content in zip(files, (one, base, other), strict=True):
                file.write_bytes(content)
            return self._answers("merge-file", "--stdout", *map(str, files))

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the commit where two histories part, or None."""
        found = self._answers("merge-base", one, other)
        return found.decode().split()[0] if found else None
