"""The *read* door's questions on what keeps git itself from working: objects, filters, and files that it hides."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING, Final

from pipeline.git.reading import ReadDoor
from pipeline.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

_FETCH_LIMIT_S: Final = 30.0
_PROGRAM: Final = re.compile(r"([A-Za-z0-9_.+/-]+)(?:\s|$)")
"""The program of a filter's command line, where it is a plain word; git gives the line to a shell."""


class UnfitDoor(ReadDoor):
    """The repository for what git could not do in it."""

    def missing_objects(self) -> tuple[str, ...]:
        """Return the objects of HEAD's tree that a partial clone does not have; nothing is fetched."""
        promised = ("extensions.partialclone", *(s.key for s in self.settings() if s.key.endswith(".promisor")))
        if all(self.config(key) is None for key in promised) or self.resolve("HEAD") is None:
            return ()
        out = self._git("rev-list", "--objects", "--missing=print", "--no-walk", "HEAD").decode(errors="replace")
        return tuple(line[1:] for line in out.splitlines() if line.startswith("?"))

    def can_fetch(self, name: str) -> bool:
        """Return whether git gets an object, from the remote where it is not here."""
        try:
            return self._start(("cat-file", "-e", name), limit_s=_FETCH_LIMIT_S).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def required_filters(self) -> Mapping[str, tuple[str, ...]]:
        """Return the filters without which git refuses to check out files of HEAD, each with these files."""
        required = {
            setting.key.split(".", 1)[1].removesuffix(".required")
            for setting in self.settings()
            if setting.key.startswith("filter.") and setting.key.endswith(".required")
            and setting.value.lower() in {"", "true", "yes", "on", "1"}
        }  # fmt: skip
        if not required or self.resolve("HEAD") is None:
            return {}
        found: dict[str, list[str]] = {}
        for path, name in self.filters(self.worktree, (entry.path for entry in self.entries("HEAD"))).items():
            if name in required:
                found.setdefault(name, []).append(path)
        return {name: tuple(paths) for name, paths in found.items()}

    def filter_programs(self, name: str) -> tuple[str, ...]:
        """Return the programs that a filter starts, where its command lines tell."""
        process = self.config(f"filter.{name}.process")
        lines = (process,) if process else (self.config(f"filter.{name}.{way}") for way in ("smudge", "clean"))
        found = (_PROGRAM.match(line.strip()) for line in lines if line)
        return tuple(dict.fromkeys(program[1] for program in found if program))

    def hidden_changes(self) -> tuple[str, ...]:
        """Return the files whose changes `git status` does not show: marked skip-worktree or assume-unchanged."""
        lines = os.fsdecode(self._index()).split("\0")
        marked = [line[2:] for line in lines if line and (line[0] == "S" or line[0].islower())]
        there = [path for path in marked if (self.worktree / path).is_symlink() or (self.worktree / path).exists()]
        if not there:
            return ()
        with scratch_folder("index") as place:
            env = self._at(self.worktree, place / "index")
            whole = ("-c", "core.sparseCheckout=false")  # it would mark them here, too
            self._git(*whole, "read-tree", "HEAD", env=env)
            argv = ("--literal-pathspecs", "diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--")
            changed = self._git(*whole, *argv, *there, env=env)
        return tuple(path.decode(errors="surrogateescape") for path in changed.split(b"\0") if path)

    def ignored_by(self, path: str) -> str | None:
        """Return the rule by which git ignores a path that it does not track: FILE:LINE:PATTERN; None if it is none."""
        found = self._answers("check-ignore", "-v", "--", path)
        return found.decode(errors="replace").split("\t")[0] if found else None
