"""Finds recipes: the program's own, the user's, and those of the repository and its skills at a commit.

Of one name the repository's counts, then the user's, then the program's, then a skill's; `builtin:NAME` is exact. What
a checkout or an agent leaves in the worktree is no recipe of the repository before it is committed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from pipeline.agents.dispatch.roles import data_folder
from pipeline.config.problems import did_you_mean
from pipeline.config.sources import tracker_folder
from pipeline.config.user_folders import config_folder, short
from pipeline.errors import UserError
from pipeline.judge.policy.paths import TRACKER
from pipeline.matrix.recipes.check import Source
from pipeline.matrix.recipes.model import SLUG
from pipeline.matrix.recipes.reading import LARGEST
from pipeline.outcomes import Reason
from pipeline.repo import PLAIN, Entry, Repository
from pipeline.trees import read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.resources.abc import Traversable


FOLDER: Final = ".redfirst/recipes"
"""Where a repository has them."""
SKILLS: Final = (".claude/skills", ".agents/skills")
"""Where a repository has skills; one may bring recipes along, in a folder `recipes`."""
BUILTIN: Final = "builtin:"
_SUFFIX: Final = ".yaml"
_SUFFIXES: Final = (".yaml", ".yml")
_MOST_BYTES: Final = 4 * LARGEST
"""Of a file: a character takes at most four; longer ones are refused when they are read."""


class Origin(StrEnum):
    """Who wrote a recipe, from the weakest word to the strongest; a file was named by its path."""

    SKILL = "skill"
    BUILTIN = "builtin"
    USER = "user"
    REPOSITORY = "repository"
    FILE = "file"


@dataclass(frozen=True)
class RecipeFile(Source):
    """A recipe as it was found, and who wrote it."""

    origin: Origin


class RecipeFiles:
    """Every recipe that can be named here.

    Args:
        repository: The repository that somebody stands in, if there is one.
        commit: What of it counts; None where it has no commit yet.
        environ: The user's environment, which says where the user's are.
    """

    def __init__(self, repository: Repository | None, commit: str | None, environ: Mapping[str, str]) -> None:
        self._repository = repository
        self._commit = commit
        self._environ = environ
        self._known: dict[Origin, dict[str, Callable[[], RecipeFile]]] = {}

    @property
    def tracker(self) -> str:
        """Return the folder of the issues of the repository; the usual one where there is none."""
        return TRACKER if self._repository is None else tracker_folder(self._repository.worktree)

    def all(self) -> tuple[tuple[str, Origin], ...]:
        """Return every recipe, by name, the one that counts first."""
        order = list(Origin)
        found = [(name, origin) for origin in order if origin is not Origin.FILE for name in self._of(origin)]
        return tuple(sorted(found, key=lambda one: (one[0], -order.index(one[1]))))

    def read(self, name: str, origin: Origin) -> RecipeFile:
        """Return one of them.

        Raises:
            UserError: it cannot be read.
        """
        return self._of(origin)[name]()

    def names(self) -> tuple[str, ...]:
        """Return every name."""
        return tuple(dict.fromkeys(name for name, _ in self.all()))

    def find(self, name: str) -> RecipeFile | None:
        """Return the recipe of that name which counts, None if there is none.

        Raises:
            UserError: it cannot be read.
        """
        if name.startswith(BUILTIN):
            read = self._of(Origin.BUILTIN).get(name.removeprefix(BUILTIN))
            return None if read is None else read()
        theirs = self._at_commit(name)
        if theirs is not None:
            return theirs
        found = (self._of(origin).get(name) for origin in (Origin.USER, Origin.BUILTIN, Origin.SKILL))
        read = next((one for one in found if one is not None), None)
        return None if read is None else read()

    def _at_commit(self, name: str) -> RecipeFile | None:
        """Return the repository's recipe of that name; no listing is asked of git for it."""
        if self._repository is None or self._commit is None or not re.fullmatch(SLUG, name):
            return None
        path = f"{FOLDER}/{name}{_SUFFIX}"
        return _from_git(self._repository, f"{self._commit}:{path}", path, name)

    def meant(self, word: str) -> RecipeFile:
        """Return the recipe that a person names, or the file, for a path.

        Raises:
            UserError: there is none, or it cannot be read.
        """
        if is_path(word):
            return _from_disk(Path(word), "", Origin.FILE, self._environ)
        found = self.find(word)
        if found is not None:
            return found
        near = did_you_mean(word, self.names())
        hint = f' Did you mean "{near}"?' if near else ""
        lost = f"{FOLDER}/{word}{_SUFFIX}"
        if self._repository is not None and (self._repository.worktree / lost).is_file():
            hint = f" {lost} is not committed, and counts only then; a file is named by its path: ./{lost}"
        raise UserError(
            f'There is no recipe "{word}".{hint}',
            Reason.RECIPE_NOT_FOUND,
            details={"accepted": list(self.names()), "did_you_mean": near},
            actions=("redfirst recipes list",),
        )

    def _of(self, origin: Origin) -> dict[str, Callable[[], RecipeFile]]:
        """Return what reads each recipe of an origin, by name: one that cannot be read is in nobody else's way."""
        if origin not in self._known:
            listed = {
                Origin.SKILL: self._of_skills,
                Origin.BUILTIN: _builtin,
                Origin.USER: self._user,
                Origin.REPOSITORY: self._committed,
            }
            self._known[origin] = dict(listed[origin]())
        return self._known[origin]

    def _user(self) -> Iterator[tuple[str, Callable[[], RecipeFile]]]:
        folder = config_folder(self._environ) / "recipes"
        for path in sorted(folder.glob(f"*{_SUFFIX}")) if folder.is_dir() else ():
            yield path.stem, partial(_from_disk, path, path.stem, Origin.USER, self._environ)

    def _committed(self) -> Iterator[tuple[str, Callable[[], RecipeFile]]]:
        if self._repository is None or self._commit is None:
            return
        for entry in self._repository.entries(self._repository.tree_of(self._commit), FOLDER):
            name = entry.path.removeprefix(f"{FOLDER}/")
            if "/" not in name and name.endswith(_SUFFIX) and entry.mode in PLAIN:
                stem = name.removesuffix(_SUFFIX)
                yield stem, partial(self._listed, entry, stem, Origin.REPOSITORY)

    def _of_skills(self) -> Iterator[tuple[str, Callable[[], RecipeFile]]]:
        if self._repository is None or self._commit is None:
            return
        tree = self._repository.tree_of(self._commit)
        found: dict[str, Entry] = {}
        for folder in SKILLS:
            for entry in self._repository.entries(tree, folder):
                match entry.path.removeprefix(f"{folder}/").split("/"):
                    case [_, "recipes", name] if name.endswith(_SUFFIX) and entry.mode in PLAIN:
                        found.setdefault(name.removesuffix(_SUFFIX), entry)
                    case _:
                        pass
        yield from ((name, partial(self._listed, entry, name, Origin.SKILL)) for name, entry in found.items())

    def _listed(self, entry: Entry, name: str, origin: Origin) -> RecipeFile:
        found = _from_git(cast("Repository", self._repository), entry.oid, entry.path, name, origin)
        return found or RecipeFile(name, entry.path, "", origin)


def is_path(word: str) -> bool:
    """Return whether somebody names a file, and not a recipe."""
    return "/" in word or word.endswith(_SUFFIXES)


def library_here() -> RecipeFiles:
    """Return the recipes that can be named where somebody stands; that need not be a repository."""
    try:
        return files_here(Repository.find(Path.cwd()))
    except UserError:
        return files_here(None)


def files_here(repository: Repository | None, environ: Mapping[str, str] | None = None) -> RecipeFiles:
    """Return the recipes that can be named where somebody stands: of the repository those of HEAD."""
    commit = repository.resolve("HEAD") if repository is not None else None
    return RecipeFiles(repository, commit, os.environ if environ is None else environ)


def _builtin() -> Iterator[tuple[str, Callable[[], RecipeFile]]]:
    for entry in data_folder("commands").iterdir():
        if entry.name.endswith(_SUFFIX):
            name = entry.name.removesuffix(_SUFFIX)
            yield name, partial(_from_program, entry, name)


def _from_program(entry: Traversable, name: str) -> RecipeFile:
    return RecipeFile(name, f"{BUILTIN}{name}", entry.read_text(encoding="utf-8"), Origin.BUILTIN)


def _from_git(
    repository: Repository, revision: str, path: str, name: str, origin: Origin = Origin.REPOSITORY
) -> RecipeFile | None:
    try:
        content = repository.blob(revision, _MOST_BYTES)
    except ValueError:
        raise UserError(f"{path} is too large for a recipe.", Reason.RECIPE_INVALID, path=path) from None
    return None if content is None else RecipeFile(name, path, _text(content, path), origin)


def _from_disk(path: Path, name: str, origin: Origin, environ: Mapping[str, str]) -> RecipeFile:
    shown = short(path, environ)
    try:
        content = read_regular(path.resolve(), _MOST_BYTES)
    except FileNotFoundError:
        raise UserError(f"There is no file {shown}.", Reason.RECIPE_NOT_FOUND, path=str(path)) from None
    except OSError as error:
        why = error.strerror or str(error) or "it is no file"
        raise UserError(f"{shown} cannot be read: {why}.", Reason.RECIPE_INVALID, path=str(path)) from None
    return RecipeFile(name, shown, _text(content, shown), origin)


def _text(content: bytes, shown: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{shown} is not UTF-8 (byte {error.start}).", Reason.RECIPE_INVALID, path=shown) from None
