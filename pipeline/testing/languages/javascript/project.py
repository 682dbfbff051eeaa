"""Reads a JavaScript project: package.json, workspaces, the runner, and which files are tests.

What the root's `test` script does decides: where it starts a runner itself, that one command measures the packages, as
vitest and jest do with `projects`. Where it only calls the packages' own scripts, or is none, each package with a
script that starts a runner is a project: with its own runner, settings and working folder, as `npm test -w NAME`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import islice, product
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.judge.evidence.observation import Layout
from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.testing.languages.javascript.command import Invocation, Runner, Unknown, of_script
from pipeline.testing.languages.protocol import Members
from pipeline.trees import NotRegularError, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


SOURCES: Final = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
TYPED: Final = (".ts", ".mts", ".cts", ".tsx")
_BY_NAME: Final = tuple(f"*.{word}{end}" for word in ("test", "spec") for end in SOURCES)
PATTERNS: Final[Mapping[Runner, tuple[str, ...]]] = {
    "node": tuple(
        f"{name}.{end}"
        for end in ("js", "mjs", "cjs", "ts", "mts", "cts")
        for name in ("*.test", "*-test", "*_test", "test-*", "test")
    ),
    "vitest": _BY_NAME,
    "jest": (*_BY_NAME, "__tests__/*", "*/__tests__/*"),
}
"""Default patterns of test files by runner, from the documentation of node, vitest and jest."""

_FOLDER: Final = "test"
"""The folder name in which node:test takes every source for a test."""
_ALTERNATIVES: Final = re.compile(r"\{([^{}]*)\}|([?+@])\(([^()]*)\)")
_MOST: Final = 200
_MOST_PATTERNS: Final = 500
"""The most workspace patterns; each is searched in the whole project."""
_MOST_PARTS: Final = 10
"""The most parts of one workspace pattern."""
_LARGEST: Final = 4_000_000
_CONFIGS: Final[Mapping[Runner, str]] = {"vitest": "vite*.config.*", "jest": "jest.config.*", "node": ""}


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Packages(_Value):
    packages: tuple[str, ...] = ()


class Manifest(_Value):
    """The parts of a package.json that are used here."""

    name: str = ""
    type: str = "commonjs"
    scripts: dict[str, str] = {}
    dependencies: dict[str, str] = {}
    devDependencies: dict[str, str] = {}  # noqa: N815  (npm's word)
    workspaces: tuple[str, ...] | _Packages = ()
    jest: object = None

    @property
    def needs(self) -> frozenset[str]:
        """Return the packages that must be installed."""
        return frozenset({*self.dependencies, *self.devDependencies})

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the patterns of a workspace's package folders."""
        return self.workspaces.packages if isinstance(self.workspaces, _Packages) else self.workspaces


@dataclass(frozen=True)
class Project:
    """The root package and those of its workspace, by folder; `""` is the root."""

    packages: Mapping[str, Manifest]

    @property
    def root(self) -> Manifest:
        """Return the package.json at the root."""
        return self.packages[""]

    @property
    def alone(self) -> Project:
        """Return the project without the packages of its workspace."""
        return Project({"": self.root})

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the project's own packages."""
        return frozenset(one.name for one in self.packages.values() if one.name)

    @property
    def needs(self) -> frozenset[str]:
        """Return the foreign packages that must be installed."""
        return frozenset(name for one in self.packages.values() for name in one.needs) - self.names

    def invocation(self) -> Invocation | Unknown:
        """Return the test command: that of the `test` script, else of a runner among the dependencies.

        Where the root says nothing, its packages are asked in order.
        """
        said = Unknown()
        for one in self.packages.values():
            script = one.scripts.get("test", "")
            found = of_script(script, one.scripts)
            if isinstance(found, Invocation):
                return found
            said = said if said.name else found
        runner = next((name for name in ("vitest", "jest") if name in self.needs), None)
        if runner is not None:
            return Invocation("vitest" if runner == "vitest" else "jest")
        return said if said.name else Invocation("node")

    def folders_with(self, runner: Runner, files: Iterable[str]) -> tuple[str, ...]:
        """Return the packages that configure a runner themselves, if the root does not."""
        pattern = _CONFIGS[runner]
        owners = {str(PurePosixPath(path).parent) for path in files if fnmatchcase(PurePosixPath(path).name, pattern)}
        owners |= {folder or "." for folder, one in self.packages.items() if runner == "jest" and one.jest is not None}
        if not pattern or "." in owners:
            return ()
        return tuple(sorted(owners & self.packages.keys()))


def read_project(worktree: Path) -> Project | str:
    """Return the project in a folder, or why it cannot be read. Links are not followed."""
    root = _manifest(worktree / "package.json")
    if isinstance(root, str):
        return f"package.json {root}"
    packages = {"": root}
    patterns = frozenset((*root.patterns, *_pnpm(worktree)))
    if len(patterns) > _MOST_PATTERNS:
        return f"package.json and pnpm-workspace.yaml name {len(patterns)} workspaces; {_MOST_PATTERNS} are looked for"
    for folder in sorted(set(_folders(worktree, patterns))):
        found = _manifest(worktree / folder / "package.json")
        if isinstance(found, Manifest):
            packages[folder] = found
    return Project(packages)


def _manifest(path: Path) -> Manifest | str:
    try:
        if path.is_symlink():
            return "is a link"
        return Manifest.model_validate_json(read_regular(path, _LARGEST))
    except NotRegularError:
        return "is no file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except ValidationError as error:
        return f"is not what npm takes: {error.errors(include_url=False)[0]['msg']}"


def _folders(worktree: Path, patterns: Iterable[str]) -> Iterator[str]:
    inside = cache(partial(_subfolders, worktree))
    for pattern in patterns:
        clean = pattern.removeprefix("./").rstrip("/")
        parts = clean.split("/")
        if clean.startswith(("!", "/")) or ".." in parts or len(parts) > _MOST_PARTS:
            continue
        for folder in _matching(inside, parts):
            if "node_modules" not in folder.split("/") and (worktree / folder / "package.json").is_file():
                yield folder


def _matching(inside: Callable[[str], Sequence[str]], parts: Sequence[str]) -> list[str]:
    """Return the folders that match a pattern, up to a limit; links are not followed."""
    found = [""]
    for part in parts:
        if part == "**":
            found = [*found, *islice(_below(inside, found), _MOST)]
        else:
            inner = ((at, name) for at in found for name in inside(at))
            fitting = (f"{at}/{name}".lstrip("/") for at, name in inner if fnmatchcase(name, part))
            found = list(islice(fitting, _MOST))
    return sorted({folder for folder in found if folder})


def _below(inside: Callable[[str], Sequence[str]], folders: Sequence[str]) -> Iterator[str]:
    waiting = list(folders)
    while waiting:
        at = waiting.pop(0)
        inner = [f"{at}/{name}".lstrip("/") for name in inside(at) if name != "node_modules"]
        yield from inner
        waiting += inner


def _subfolders(worktree: Path, folder: str) -> list[str]:
    try:
        with os.scandir(worktree / folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _pnpm(worktree: Path) -> tuple[str, ...]:
    """Return the patterns of a pnpm workspace's package folders."""
    try:
        content = read_regular(worktree / "pnpm-workspace.yaml", _LARGEST)
        return limited(packages_in)(content)
    except (OSError, UnreadableError):
        return ()


def packages_in(content: bytes) -> tuple[str, ...]:
    """Return the patterns in a `pnpm-workspace.yaml`, none if it is something else."""
    try:
        return _Packages.model_validate(yaml.safe_load(content)).packages
    except (ValueError, yaml.YAMLError):
        return ()


def files_with_tests(files: Iterable[str], arguments: Sequence[str]) -> list[str]:
    """Return the files that `node --test` would run: those in its arguments, else those with names of tests.

    Args:
        files: The paths of the project.
        arguments: Files, folders and patterns.
    """
    chosen = [word for word in arguments if not word.startswith("-")]
    known = [path for path in files if path.endswith(SOURCES) and "node_modules" not in path.split("/")]
    if not chosen:
        return sorted(path for path in known if is_named_as_test(path) and not path.endswith(".jsx"))
    return sorted({path for path in known for word in chosen if _is_chosen(path, word)})


def is_named_as_test(path: str) -> bool:
    """Return whether node takes a file for a test by its name or folder."""
    pure = PurePosixPath(path)
    in_folder = _FOLDER in pure.parts[:-1] and not path.endswith((".jsx", ".tsx", *TYPED))
    return in_folder or any(fnmatchcase(pure.name, pattern) for pattern in PATTERNS["node"])


def _is_chosen(path: str, word: str) -> bool:
    clean = word.removeprefix("./").rstrip("/")
    if path == clean:
        return True
    if not any(sign in clean for sign in "*?[{("):
        return path.startswith(f"{clean}/") and is_named_as_test(path)
    return any(fnmatchcase(path, one) for pattern in expanded(clean) for one in _depths(pattern))


def expanded(pattern: str) -> list[str]:
    """Return the patterns without alternatives that one with `{a,b}` or `?(a|b)` stands for, at most some hundred."""
    parts: list[list[str]] = []
    at = 0
    for found in _ALTERNATIVES.finditer(pattern):
        parts.append([pattern[at : found.start()]])
        choices = found[1].split(",") if found[1] is not None else found[3].split("|")
        parts.append([*choices, *([""] if found[2] == "?" else [])])
        at = found.end()
    parts.append([pattern[at:]])
    return ["".join(words) for _, words in zip(range(_MOST), product(*parts), strict=False)]


def node_layout(invocation: Invocation, files: set[str]) -> Layout:
    """Return the layout of node's tests: folders named `test`, names of tests, or paths in the command."""
    names = (*PATTERNS["node"], *(f"{above}test/*.{end}" for above in ("", "*/") for end in ("js", "mjs", "cjs")))
    words = [word.removeprefix("./").rstrip("/") for word in invocation.arguments if not word.startswith("-")]
    globs = [one for word in words for one in expanded(word) if any(sign in one for sign in "*?[")]
    exact = [word for word in words if not any(sign in word for sign in "*?[{(") and "." in word.rpartition("/")[2]]
    folders = tuple(word for word in words if word not in exact and not any(sign in word for sign in "*?[{("))
    if not words:
        return Layout(python_files=names, collected=frozenset(files))
    if folders and not globs:
        return Layout(testpaths=folders, python_files=(*names, *exact), collected=frozenset(files))
    return Layout(python_files=(*names_in(globs), *exact), testpaths=(".",), collected=frozenset(files))


def names_in(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return path patterns in the form of `Layout.python_files`: a name, or a pattern of a whole path."""
    found: list[str] = []
    for one in (one for pattern in patterns for one in expanded(pattern.removeprefix("./"))):
        rest = one.removeprefix("**/")
        if rest != one and "/" not in rest:
            found.append(rest)
        else:
            found += [f"{above}{deep}" for deep in _depths(rest) for above in (("", "*/") if rest != one else ("",))]
    return tuple(dict.fromkeys(found))


def _depths(pattern: str) -> tuple[str, ...]:
    """Return the pattern, also with `**/` for no folder, for which `fnmatch` requires the slash."""
    return tuple(dict.fromkeys((pattern, pattern.replace("**/", ""))))


_MARKS: Final = ("package.json", "pnpm-workspace.yaml")
_DELEGATES: Final = re.compile(
    r"(?:^|\s)(?:-ws|--workspaces?(?:=\S+)?|-w|-r|--recursive|--filter(?:=\S+)?|-F|workspaces?|turbo|nx|lerna)(?=\s|$)"
)
"""Words of a script that call those of the packages."""


def members(worktree: Path, top: str, tracked: Collection[str], _: Callable[[str], bool]) -> Members:
    """Return the projects below a folder: see `Toolchain.members`."""
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
