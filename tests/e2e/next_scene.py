"""The project in which advice is typed: sums with a script of honest answers, in a folder with a space in its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from e2e.shapes import SUMS, SUMS_HONEST, sums_project
from kit import ISSUE, README
from next_lines import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kit import Entry, Project

FILES: Final = SUMS
HONEST: Final = SUMS_HONEST
FAST: Final = '[agents.simplify]\nbackend = "off"\n'
FAILING: Final[list[Entry]] = [{"when": {"kind": "plan"}, "exit": 3}] * 2
"""An agent that cannot be used: that it is asked shows that a run begins or goes on."""
SECOND: Final = {
    "TODO/GAL-2.md": ISSUE.replace("GAL-1", "GAL-2"),
    "TODO/README.md": f"{README}- [ ] [GAL-2](GAL-2.md) Reject empty names\n",
}


def make_scene(folder: Path, script: Sequence[Entry]) -> Scene:
    """Return the project, in a new folder."""
    place = folder / "a place"
    place.mkdir()
    return Scene(sums_project(place, script, extra=FAST), place)


def dirty(project: Project) -> None:
    project.write({"greet.sum": "greet n = n + 0\n", "new.txt": "mine\n"})


def detached(project: Project) -> None:
    project.git("switch", "--quiet", "--detach")


def no_tracker(project: Project) -> None:
    project.git("rm", "--quiet", "-r", "TODO")
    project.commit()


def issue_with(old: str, new: str) -> Callable[[Project], None]:
    """Return what changes the issue's file, and commits it."""

    def prepare(project: Project) -> None:
        assert old in ISSUE
        project.write({"TODO/GAL-1.md": ISSUE.replace(old, new)})
        project.commit()

    return prepare
