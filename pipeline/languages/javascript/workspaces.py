"""Finds the packages of an npm, pnpm or yarn workspace that are tested from their own folder.

What the root's `test` script does decides: where it starts a runner itself, that one command measures the packages, as
vitest and jest do with `projects`. Where it only calls the packages' own scripts, or is none, each package with a
script that starts a runner is a project: with its own runner, settings and working folder, as `npm test -w NAME`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.languages.javascript.command import Invocation, of_script
from pipeline.languages.javascript.project import read_project
from pipeline.languages.protocol import Members

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

_MARKS: Final = ("package.json", "pnpm-workspace.yaml")
_DELEGATES: Final = re.compile(
    r"(?:^|\s)(?:-ws|--workspaces?(?:=\S+)?|-w|-r|--recursive|--filter(?:=\S+)?|-F|workspaces?|turbo|nx|lerna)(?=\s|$)"
)
"""Words of a script that call those of the packages."""


def members(worktree: Path, top: str, tracked: Collection[str], _: Callable[[str], bool]) -> Members:
    """Return the projects below a folder: see `protocol.Workspaces`."""
    front = f"{top}/" if top else ""
    known = set(tracked)
    project = read_project(worktree / top) if any(f"{front}{mark}" in known for mark in _MARKS) else ""
    if isinstance(project, str):
        return Members()
    inner = {
        folder: one for folder, one in project.packages.items() if folder and f"{front}{folder}/package.json" in known
    }
    workspace = frozenset(f"{front}{folder}" for folder in inner)
    script = project.root.scripts.get("test", "")
    starts = isinstance(of_script(script, project.root.scripts), Invocation)
    if starts and not _DELEGATES.search(script):
        return Members(workspace=workspace)
    tested = [
        f"{front}{folder}"
        for folder, one in inner.items()
        if isinstance(of_script(one.scripts.get("test", ""), one.scripts), Invocation)
    ]
    return Members(tuple(sorted(tested)), top_counts=starts or not tested, workspace=workspace)
