"""Detects which toolchains measure a repository: by marker files, or by `[toolchains]`.

At the top every toolchain is asked. One that recognises nothing there is looked for one and two folders further down,
and is taken where exactly one project of it is found: `web/package.json` beside a Python package. Below a project the
language says what is measured from its own folder (`Toolchain.members`): members of a workspace, folders with
settings of their own. A single toolchain at the top is that toolchain itself, without anything around it.
"""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.testing.languages.projects.combined import Projects
from pipeline.testing.languages.projects.project import Project
from pipeline.testing.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.testing.languages.protocol import Members, Tables
    from pipeline.testing.languages.toolchain import Toolchain

TOP: Final = "."
"""What the top of the repository is called in a list of folders."""

_DEPTH: Final = 2
_DEEPEST: Final = 4
"""How far down a folder may be that says itself how its tests are run."""
_NOT_OURS: Final = frozenset(
    {
        # other people's code, and what is made of ours
        "node_modules", "vendor", "third_party", "third-party", "thirdparty", "external", "deps", "target", "dist",
        "build", "out", "venv", "env", "site-packages", "bower_components",
        # projects that are data: of tests, of documentation, to be copied
        "test", "tests", "spec", "specs", "testdata", "test-data", "test_data", "fixture", "fixtures", "__fixtures__",
        "snapshots", "corpus", "example", "examples", "sample", "samples", "demo", "demos", "template", "templates",
        "doc", "docs", "bench", "benches", "benchmark", "benchmarks", "fuzz",
    }
)  # fmt: skip


def choose(worktree: Path, tables: Tables, tracked: Iterable[str] = ()) -> Toolchain | None:
    """Return the toolchain of a repository, combined if there are several; None if none recognises it.

    Args:
        worktree: The checkout to look into.
        tables: `[toolchains]`: `use` names those to take, in order; `folder` says where a project is.
        tracked: The paths that the repository has, for projects below the top; what git ignores is nobody's project.
    """
    names = tuple(LANGUAGES) if tables.use is None else tuple(dict.fromkeys(map(str, tables.use)))
    paths = tuple(tracked)
    found = [project for name in names for project in _chosen(name, worktree, tables, paths)]
    if len(found) == 1 and not found[0].folder:
        return found[0].toolchain
    if len(found) > 1:
        found = [
            replace(one, table=tables.settings_of(one.name), asked=tables.is_configured(one.name)) for one in found
        ]
    return Projects(found) if found else None


def looked_for() -> str:
    """Return the marker files of all languages in words."""
    return "; ".join(f"{name}: {', '.join(language.marks)}" for name, language in LANGUAGES.items())


def folder_below(name: str, tracked: Iterable[str]) -> str | None:
    """Return the folder of a toolchain's only project one or two levels below the top; None if it is not alone.

    A project inside another one belongs to that: the members of a workspace.
    """
    folders = {posixpath.dirname(path) for path in tracked if posixpath.basename(path) in LANGUAGES[name].marks}
    near = {folder for folder in folders if 0 < len(_parts(folder)) <= _DEPTH and _is_ours(folder)}
    outer = [folder for folder in near if not any(folder.startswith(f"{other}/") for other in near)]
    return outer[0] if len(outer) == 1 else None


def _chosen(name: str, worktree: Path, tables: Tables, tracked: tuple[str, ...]) -> list[Project]:
    toolchain, named = LANGUAGES[name].toolchain, tables.settings_of(name).folder
    if named is not None:
        folders = ("" if one == TOP else one for one in dict.fromkeys((named,) if isinstance(named, str) else named))
        return [Project(toolchain, folder, home=_home(name, worktree, folder, tracked)) for folder in folders]
    is_top = toolchain.detect(worktree)
    top = "" if is_top else folder_below(name, tracked) or ""
    found = _members(name, worktree, top, tracked)
    below = [Project(toolchain, folder, home=top if is_top or top else None) for folder in found.folders]
    if (is_top or top) and (found.top_counts or not below):
        return [Project(toolchain, top), *below]
    return below or ([Project(toolchain)] if tables.use is not None else [])


def _members(name: str, worktree: Path, top: str, tracked: tuple[str, ...]) -> Members:
    return LANGUAGES[name].toolchain.members(worktree, top, tracked, _may_be_found)


def _home(name: str, worktree: Path, folder: str, tracked: tuple[str, ...]) -> str | None:
    """Return the nearest folder above that declares a folder as member of its workspace, None if none does."""
    parts = _parts(folder)
    above = ("/".join(parts[:depth]) for depth in reversed(range(len(parts))))
    return next((top for top in above if folder in _members(name, worktree, top, tracked).workspace), None)


def _may_be_found(folder: str) -> bool:
    return len(_parts(folder)) <= _DEEPEST and _is_ours(folder)


def _parts(folder: str) -> list[str]:
    return folder.split("/") if folder else []


def _is_ours(folder: str) -> bool:
    return not any(part.startswith(".") or part.casefold() in _NOT_OURS for part in _parts(folder))
