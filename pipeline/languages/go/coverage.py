"""Computes which functions of production code a traced test reached, from the blocks of a coverage profile."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import Fault, Reach
from pipeline.languages.go.project import is_test_side
from pipeline.languages.go.sources import functions_of, names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.languages.go.messages import Ended
    from pipeline.languages.go.project import Project, Test
    from pipeline.languages.go.sources import Function

_BLOCK: Final = re.compile(r"(?P<file>.+\.go):(?P<line>\d+)\.\d+,\d+\.\d+")
_STARTS: Final = frozenset({"Command", "CommandContext", "StartProcess"})


class Map:
    """The names and functions of production code; each file is read once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._functions: dict[str, tuple[Function, ...]] = {}
        self._defined: dict[str, str] | None = None

    def reach(self, test: Test, ended: Ended, idle: Mapping[str, int], fault: Fault | None) -> Reach:
        """Return the reach of a test.

        Args:
            test: The test.
            ended: Its record, with the blocks that it entered if it wrote them down.
            idle: How often each block is entered when no test runs: by initialisation, and by `TestMain`.
            fault: Why it failed; production on the way there was reached too.
        """
        blocks = [block for block, count in ended.blocks or () if count > idle.get(block, 0)]
        entered = [name for block in blocks if (name := self._function(block))]
        frames = [frame for frame in (fault.frames if fault is not None else ()) if frame.path]
        entered += [f"{frame.path}::{frame.function}" for frame in frames if not is_test_side(frame.path)]
        mentioned = _mentioned(test)
        defined = self._names()
        references = sorted(f"{defined[name]}::{name}" for name in mentioned & set(defined))
        doors = [*self._opened(test, ended.doors), *(("process",) if mentioned & _STARTS else ())]
        return Reach(functions=tuple(dict.fromkeys(entered)), references=tuple(references), doors=tuple(doors))

    def _function(self, block: str) -> str:
        found = _BLOCK.match(block)
        folder = self._project.names.folder_of(posixpath.dirname(found["file"])) if found is not None else None
        if found is None or folder is None:
            return ""
        path = posixpath.normpath(posixpath.join(folder, posixpath.basename(found["file"])))
        if path not in self._functions:
            self._functions[path] = functions_of(self._project.measured, path)
        line = int(found["line"])
        around = (one.name for one in self._functions[path] if one.first <= line <= one.last)
        name = next(around, "")
        return f"{path}::{name}" if name else ""

    def _names(self) -> Mapping[str, str]:
        if self._defined is None:
            self._defined = {}
            for path in self._project.production():
                for name in names_of(self._project.measured, path):
                    self._defined.setdefault(name, path)
        return self._defined

    def _opened(self, test: Test, log: Iterable[str]) -> list[str]:
        """Return the workspace's files that were opened; relative names are resolved by the folder at that time."""
        folder = posixpath.join(self._project.workspace, test.unit.folder)
        found: dict[str, None] = {}
        for line in log:
            word, _, name = line.partition(" ")
            place = posixpath.normpath(posixpath.join(folder, name))
            if word == "chdir":
                folder = place
            elif (path := self._project.below(place)) not in {"", "."}:
                found[path] = None
        return list(found)


def _mentioned(test: Test) -> frozenset[str]:
    """Return the names in a test, and in the test helpers that it mentions."""
    helpers = test.unit.sources.helpers
    found = set(test.source.mentions)
    waiting = list(found)
    while waiting:
        more = helpers.get(waiting.pop(), frozenset[str]()) - found
        found |= more
        waiting += more
    return frozenset(found)
