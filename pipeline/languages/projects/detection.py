"""Detects which toolchains measure a repository: by marker files, or by `[toolchains]`.

At the top every toolchain is asked. One that recognises nothing there is looked for one and two folders further down,
and is taken where exactly one project of it is found: `web/package.json` beside a Python package. A single toolchain at
the top is that toolchain itself, without anything around it.
"""

from __future__ import annotations

import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pipeline.languages.projects.combined import Projects
from pipeline.languages.projects.project import Project
from pipeline.languages.table import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipeline.languages.protocol import Tables, Toolchain

TOP: Final = "."
"""What the top of the repository is called in a list of folders."""

_DEPTH: Final = 2
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
        folders = dict.fromkeys((named,) if isinstance(named, str) else named)
        return [Project(toolchain, "" if folder == TOP else folder) for folder in folders]
    if toolchain.detect(worktree):
        return [Project(toolchain)]
    folder = folder_below(name, tracked)
    return [Project(toolchain, folder or "")] if folder is not None or tables.use is not None else []


def _parts(folder: str) -> list[str]:
    return folder.split("/") if folder else []


def _is_ours(folder: str) -> bool:
    return not any(part.startswith(".") or part.casefold() in _NOT_OURS for part in _parts(folder))
