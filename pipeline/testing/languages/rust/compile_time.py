"""Finds Rust sources that run while tests are compiled: build scripts, procedural macros, and the packages they use.

Such code has what is compiled in its hands while it runs, so no measurement can tell what it plants there: whoever
reads a change is told of it, whatever it is (see `forgery`).
"""

from __future__ import annotations

import posixpath
import tomllib
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.toml_text import toml_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_Table = dict[str, Any]
_MANIFEST: Final = "Cargo.toml"
_MACRO: Final = "a procedural macro, or what one uses"
_SCRIPT: Final = "a build script, or what one uses"


def notes(path: str, manifests: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return a sentence if a changed file runs while tests are compiled, else an empty tuple.

    Args:
        path: Of the changed file.
        manifests: What is known of the tree's `Cargo.toml`, by their paths.
    """
    packages = {posixpath.dirname(name): _read(content) for name, content in manifests.items()}
    folder = next((one for one in _upwards(path) if one in packages), None)
    if folder is None or not path.endswith(".rs"):
        return ()
    what = _why(path, folder, packages)
    return (f"{path} runs while tests are compiled ({what}); test results can be forged so",) if what else ()


def manifests_above(path: str) -> tuple[str, ...]:
    """Return the possible paths of manifests above a file, of its package and its workspace."""
    return tuple(posixpath.join(folder, _MANIFEST) for folder in _upwards(path))


def _why(path: str, folder: str, packages: Mapping[str, _Table]) -> str:
    package = _table(packages[folder], "package")
    script = package.get("build", "build.rs")
    if isinstance(script, str):
        place = posixpath.normpath(posixpath.join(folder, script))
        beside = posixpath.dirname(place)
        if path == place or (beside != folder and path.startswith(f"{beside}/")):
            return _SCRIPT
    libraries = {one: _table(table, "lib") for one, table in packages.items()}
    macros = [one for one, lib in libraries.items() if lib.get("proc-macro", lib.get("proc_macro")) is True]
    if folder in _used(macros, packages):
        return _MACRO
    tools = [tool for one in packages for tool in _dependencies(one, packages, "build-dependencies")]
    return _SCRIPT if folder in _used(tools, packages) else ""


def _used(folders: Iterable[str], packages: Mapping[str, _Table]) -> set[str]:
    """Return the folders of packages that some packages depend on, directly or not, with their own."""
    waiting, found = list(folders), set[str]()
    while waiting:
        folder = waiting.pop()
        if folder in packages and folder not in found:
            found.add(folder)
            waiting += _dependencies(folder, packages, "dependencies")
    return found


def _dependencies(folder: str, packages: Mapping[str, _Table], kind: str) -> Iterator[str]:
    """Yield the folders of the packages that a package depends on by path."""
    table = packages[folder]
    targets = _table(table, "target")
    root = next(
        (one for one in _upwards(posixpath.join(folder, _MANIFEST)) if "workspace" in packages.get(one, {})), ""
    )
    shared = _table(_table(packages.get(root, {}), "workspace"), "dependencies")
    for one in (table, *(_table(targets, target) for target in targets)):
        for name in _table(one, kind):
            asked, start = _table(_table(one, kind), name), folder
            if asked.get("workspace") is True:
                asked, start = _table(shared, name), root
            if isinstance(asked.get("path"), str):
                where = posixpath.normpath(posixpath.join(start, asked["path"]))
                yield "" if where == "." else where


def _table(table: _Table, name: str) -> _Table:
    found = table.get(name)
    return cast("_Table", found) if isinstance(found, dict) else {}


def _upwards(path: str) -> Iterator[str]:
    """Yield the folders that contain a file, the nearest first."""
    folder = posixpath.dirname(path)
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield ""


def _read(content: bytes) -> _Table:
    try:
        return toml_table(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}  # cargo compiles nothing by it
