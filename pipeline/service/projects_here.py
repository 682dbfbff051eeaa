"""Says what measures the tests of a repository: for a run, what verifies, `config show`, `init` and trust."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipeline.languages.projects.combined import projects_in
from pipeline.languages.projects.detection import TOP, choose
from pipeline.languages.table import DEFAULT

if TYPE_CHECKING:
    from pipeline.config.model import Config
    from pipeline.git import Repository
    from pipeline.languages.projects.project import Project
    from pipeline.languages.protocol import Toolchain


def projects_here(repository: Repository, config: Config) -> tuple[Project, ...]:
    """Return what would measure the tests of HEAD, as a run decides it."""
    # the listing of an object is kept, that of a name is not
    return projects_in(toolchain_of(repository, config, repository.resolve("HEAD")))


def toolchain_of(repository: Repository, config: Config, tree: str | None) -> Toolchain:
    """Return what measures the project as a tree or commit has it; None is one that has nothing yet."""
    paths = (entry.path for entry in repository.entries(tree)) if tree is not None else ()
    return choose(repository.worktree, config.toolchains, paths) or DEFAULT.toolchain


def as_tables(projects: tuple[Project, ...]) -> str:
    """Return the configuration that names the projects, for each toolchain that has several; empty if none has."""
    tables: dict[str, list[str]] = {}
    for one in projects:
        tables.setdefault(one.name, []).append(one.folder or TOP)
    return "".join(
        f"\n[toolchains.{name}]  # found here; without these lines they are looked for in each run\n"
        f"folder = {json.dumps(folders, ensure_ascii=False)}\n"
        for name, folders in tables.items()
        if len(folders) > 1
    )
