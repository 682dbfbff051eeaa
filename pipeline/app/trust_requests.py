"""Lists all that a repository asks for and that needs trust: in its configuration, and by its files.

The commands that start anything have no other way to ask: nothing of a repository runs on the host before
`redfirst trust` (ADR-R89).

It also asks things of commits that a run could not keep: a form of messages, and hooks. A run commits by writing
objects, so that no hook of git runs. One counts as handled if a command of `[checks]` names the tool that it starts, or
the hook itself, or if `[commits] hooks` names it.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.config.commits import misfits
from pipeline.config.trust import Widening
from pipeline.errors import UserError
from pipeline.outcomes import Reason
from pipeline.repo.settings import hooks_folder
from pipeline.repo.tracked_paths import TrackedFiles
from pipeline.run.ignored import INCLUDE_FILE, include_patterns
from pipeline.testing.languages.projects.combined import TOP, choose, projects_in
from pipeline.testing.languages.table import DEFAULT, LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.config.load import Loaded
    from pipeline.config.model import Config
    from pipeline.repo import Repository
    from pipeline.testing.languages.projects.project import Project
    from pipeline.testing.languages.protocol import Checkouts
    from pipeline.testing.languages.toolchain import Toolchain


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


_STARTED: Final = "this program of the repository is started on the host to ask for its environment"
_CARRIED: Final = "copies of the ignored files that match are given to tests and agents"


def widening_in(repository: Repository, loaded: Loaded, environ: Mapping[str, str]) -> tuple[Widening, ...]:
    """Return what needs trust: the keys first, then the files.

    Raises:
        UserError: `.worktreeinclude` cannot be read.
    """
    found = _Files(repository, loaded, environ.get("PATH", os.defpath)).widening()
    return (*loaded.widening, *{one.key: one for one in found}.values())  # members of a workspace share what is asked


class _Files:
    def __init__(self, repository: Repository, loaded: Loaded, search_path: str) -> None:
        self._repository = repository
        self._loaded = loaded
        self._search_path = search_path
        self._tracked = TrackedFiles((repository.worktree, repository.main_checkout))
        self._having: dict[Path, bool] = {}

    def widening(self) -> Iterator[Widening]:
        tables, keys = self._loaded.config.toolchains, {item.key for item in self._loaded.widening}
        for project in projects_here(self._repository, self._loaded.config):
            table, checkouts = tables.settings_of(project.name), LANGUAGES[project.name].checkouts
            command = table.command
            if command is None and checkouts is not None:
                yield from self._of_environments(project, checkouts, prepared=table.setup is not None)
            elif command is not None and f"toolchains.{project.name}.command" not in keys:
                program = self._folders(project)[0] / command[0]
                theirs = self._tracked.lead_to(program) or self._tracked.set_up(program.parent)
                if "/" in command[0] and theirs:
                    yield Widening(self._shown(program), "tracked", _STARTED, is_file=True)
        patterns = include_patterns(self._repository.worktree)
        if patterns and self._tracked.lead_to(self._repository.worktree / INCLUDE_FILE):
            yield Widening(INCLUDE_FILE, list(patterns), _CARRIED, is_file=True)

    def _levels(self, project: Project) -> tuple[tuple[Path, ...], ...]:
        """Return the folders in which its environment may be: its own, and those around it that serve it, too."""
        own = self._folders(project)
        outer = self._repository.worktree, self._repository.main_checkout
        shared = tuple(dict.fromkeys(one / (project.home or "") for one in outer)) if project.folder else ()
        return tuple(filter(None, (own, tuple(one for one in shared if one not in own))))

    def _folders(self, project: Project) -> tuple[Path, ...]:
        """Return where its project is, in this checkout and in the main one."""
        main = self._repository.main_checkout
        inside = main / project.folder
        folders = (self._repository.worktree / project.folder, inside if inside.is_dir() else main)
        return tuple(dict.fromkeys(folders))

    def _of_environments(self, project: Project, known: Checkouts, *, prepared: bool) -> Iterator[Widening]:
        levels = self._levels(project)
        places = [folder / name for folders in levels for folder in folders for name in known.PLACES]
        theirs = [place for place in places if self._is_theirs(place)]
        for place in theirs:
            yield Widening(self._shown(place), "tracked", _STARTED, is_file=True)
        for folders in levels if not prepared else ():
            locked = known.is_locked(folders[0], self._search_path)
            there = [one for one in known.interpreters(folders, locked=locked) if one.parent.parent not in theirs]
            if (locked or len(levels) > 1) and any(self._has_runner(known, one) for one in there):
                return
            if locked:
                key = self._shown(folders[0] / known.LOCK)
                yield Widening(key, known.MADE_BY, known.BUILT, is_file=True, instead=known.INSTEAD)
                return

    def _has_runner(self, known: Checkouts, interpreter: Path) -> bool:
        if interpreter not in self._having:
            self._having[interpreter] = known.has_runner(interpreter, self._search_path)
        return self._having[interpreter]

    def _is_theirs(self, place: Path) -> bool:
        python = place / "bin" / "python"
        return self._tracked.lead_to(place) and (os.path.lexists(python) or self._tracked.lead_to(python))

    def _shown(self, path: Path) -> str:
        top = self._repository.worktree
        return path.relative_to(top).as_posix() if path.is_relative_to(top) else str(path)


_HOOKS: Final = ("pre-commit", "prepare-commit-msg", "commit-msg")
_TOOLS: Final = (
    "pre-commit", "prek", "lefthook", "husky", "lint-staged", "commitlint", "gitlint", "overcommit", "commitizen",
)  # fmt: skip
_MOST: Final = 65536


@dataclass(frozen=True)
class Hook:
    """A hook that the user's git would run: its name, its file, and the tool that it starts, where one is known."""

    name: str
    path: str
    tools: frozenset[str]

    def told(self) -> str:
        """Return what is not run, and what to do."""
        tool = ", ".join(sorted(self.tools)) or self.path
        return (
            f"the {self.name} hook ({self.path}) is not run over commits of redfirst. Have what it checks as a command "
            f'of [checks] that names {tool}, or say that you know: [commits] hooks = ["{self.name}"]'
        )


def unrun_hooks(repository: Repository, config: Config) -> Iterator[Hook]:
    """Yield the hooks of commits that nothing stands in for."""
    folder = hooks_folder(repository, repository.settings())
    words = [word for argv in (*config.checks.commands, *config.checks.fix) for word in argv]
    named = {PurePosixPath(word).name for word in words}
    for name in _HOOKS:
        path = folder / name
        if name in config.commits.hooks or not path.is_file() or not os.access(path, os.X_OK):
            continue
        with path.open("rb") as file:
            text = file.read(_MOST).decode("utf-8", "replace")
        tools = frozenset(tool for tool in _TOOLS if re.search(rf"(?<![\w-]){tool}(?![\w-])", text))
        if not (tools & named or str(path) in words or any(word.endswith(f"/{name}") for word in words)):
            yield Hook(name, str(path), tools)


def refuse_misfit(config: Config, issue: str) -> None:
    """Refuse a pattern of subjects that the commits of a run would break, before anybody is asked.

    Raises:
        UserError: the first subject that it refuses.
    """
    broken = misfits(config.commits, issue)
    if broken:
        raise UserError(
            f"[commits] pattern {config.commits.pattern!r} refuses the subject {broken[0]!r} of a run's commits. "
            'Have subjects made so that they fit: [commits] subject = "{issue}: {type}: {title}", or mend the pattern.',
            Reason.USAGE,
            actions=("redfirst config show",),
        )
