"""Finds Python projects below another one: members of a uv workspace, and folders with pytest settings of their own.

pytest started in such a folder takes other settings, another root and other names of test modules than pytest started
above it. A member without settings is left to the settings above it if these name its tests (`testpaths`).
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.testing.languages.protocol import Members
from pipeline.trees import NotRegularError, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

_LARGEST: Final = 1_000_000
_PYPROJECT: Final = "pyproject.toml"
_OWN: Final = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
"""Files that are pytest settings, whatever they say."""
_SECTIONS: Final = {"tox.ini": re.compile(rb"(?m)^\[pytest\]"), "setup.cfg": re.compile(rb"(?m)^\[tool:pytest\]")}
"""Files that are pytest settings if they have the section."""
_TESTS: Final = ("test_*.py", "*_test.py")


class _Settings(NamedTuple):
    """The parts of a pyproject.toml that count here; `testpaths` is None where it has no pytest settings."""

    testpaths: tuple[str, ...] | None = None
    members: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def members(worktree: Path, top: str, tracked: Collection[str], is_ours: Callable[[str], bool]) -> Members:
    """Return the projects below a folder: see `Toolchain.members`."""
    below = [path for path in tracked if not top or path.startswith(f"{top}/")]
    settings = _settings(worktree / top / _PYPROJECT)
    workspace = _members(top, settings, below)
    own = {folder for folder in _with_settings(worktree, below) if folder != top and is_ours(folder)}
    with_tests = {folder for folder in workspace if _has_tests(folder, below)}
    if settings.testpaths is not None:
        names = [posixpath.normpath(entry) for entry in settings.testpaths]
        with_tests = {one for one in with_tests if not _named(posixpath.relpath(one, top or "."), names)}
    folders = own | with_tests
    rest = (path for path in below if path.endswith(".py"))
    outside = any(not any(path.startswith(f"{folder}/") for folder in folders) for path in rest)
    return Members(tuple(sorted(folders)), top_counts=outside or not folders, workspace=workspace)


def is_workspace(folder: Path) -> bool:
    """Return whether a folder is the root of a uv workspace."""
    return bool(_settings(folder / _PYPROJECT).members)


def _with_settings(worktree: Path, tracked: Iterable[str]) -> set[str]:
    """Return the folders with pytest settings."""
    found: set[str] = set()
    for path in tracked:
        folder, _, name = path.rpartition("/")
        if name in _OWN or (
            (name in _SECTIONS and _SECTIONS[name].search(_content(worktree / path)))
            or (name == _PYPROJECT and folder and _settings(worktree / path).testpaths is not None)
        ):
            found.add(folder)
    return found


def _members(top: str, settings: _Settings, tracked: Iterable[str]) -> frozenset[str]:
    """Return the folders of the workspace's members below its root."""
    if not settings.members:
        return frozenset()
    folders = {path.removesuffix(f"/{_PYPROJECT}") for path in tracked if path.endswith(f"/{_PYPROJECT}")}
    inner = {folder: folder.removeprefix(f"{top}/") if top else folder for folder in folders if folder != top}
    return frozenset(
        folder
        for folder, inside in inner.items()
        if any(_fits(inside, one) for one in settings.members)
        and not any(_fits(inside, one) for one in settings.exclude)
    )


def _fits(folder: str, pattern: str) -> bool:
    clean = posixpath.normpath(pattern)
    if "**" in clean:
        return fnmatchcase(folder, clean.replace("**/", "*").replace("**", "*"))
    parts, wanted = folder.split("/"), clean.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _has_tests(folder: str, tracked: Iterable[str]) -> bool:
    names = (path.rpartition("/")[2] for path in tracked if path.startswith(f"{folder}/"))
    return any(fnmatchcase(name, pattern) for name in names for pattern in _TESTS)


def _named(folder: str, testpaths: Iterable[str]) -> bool:
    """Return whether settings name a folder, one around it, or one inside of it."""
    parts = folder.split("/")
    return any(all(map(fnmatchcase, parts, entry.split("/"))) for entry in testpaths)


def _settings(path: Path) -> _Settings:
    content = _content(path)
    if b"pytest" not in content and b"workspace" not in content:  # to read it would take a process
        return _Settings()
    try:
        return _Settings(*limited(read_settings)(content))
    except UnreadableError:
        return _Settings()


def _content(path: Path) -> bytes:
    try:
        return b"" if path.is_symlink() else read_regular(path, _LARGEST)
    except (OSError, NotRegularError):
        return b""


def read_settings(content: bytes) -> tuple[tuple[str, ...] | None, tuple[str, ...], tuple[str, ...]]:
    """Return `testpaths` of pytest's settings, and members and exceptions of a uv workspace, in a pyproject.toml."""
    try:
        document: Any = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return None, (), ()
    pytest = _table(document, "tool", "pytest")
    options = _table(pytest, "ini_options") if "ini_options" in pytest else pytest
    said = options.get("testpaths", ())
    testpaths = tuple(said.split()) if isinstance(said, str) else _words(said)
    workspace = _table(document, "tool", "uv", "workspace")
    return testpaths if pytest else None, _words(workspace.get("members")), _words(workspace.get("exclude"))


def _table(document: object, *names: str) -> dict[str, Any]:
    for name in names:
        document = cast("dict[str, Any]", document).get(name) if isinstance(document, dict) else None
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def _words(value: object) -> tuple[str, ...]:
    found = cast("list[object]", value) if isinstance(value, list | tuple) else []
    return tuple(word for word in found if isinstance(word, str))
