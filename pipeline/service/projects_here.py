"""Says which projects of a repository a run would measure, for `config show` and `init`."""

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


def projects_here(repository: Repository, config: Config) -> tuple[Project, ...]:
    """Return what would measure the tests of HEAD, as a run decides it."""
    commit = repository.resolve("HEAD")  # the listing of an object is kept, that of a name is not
    paths = (entry.path for entry in repository.entries(commit)) if commit is not None else ()
    return projects_in(choose(repository.worktree, config.toolchains, paths) or DEFAULT.toolchain)


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
