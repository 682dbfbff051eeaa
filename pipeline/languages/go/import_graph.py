"""Reads which packages of their own module Go files use; all files of a folder are one package.

Which folder an import path means follows from the `module` line of the `go.mod` above it. A test file uses the package
that it tests; an import of another module is nobody's here.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pipeline.languages.go.sources import imports, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MODULE: Final = re.compile(r"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)
_TEST: Final = "_test.go"


def read(sources: Mapping[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each parsable Go file with the project's files that it is compiled with."""
    files = [path for path in sources if path.endswith(".go")]
    packages: dict[str, set[str]] = {}
    for path in files:
        if not path.endswith(_TEST):
            packages.setdefault(_folder(path), set()).add(path)
    modules = dict(_modules(sources))
    for path in files:
        imported = _imports(sources[path])
        if imported is None:
            continue
        used = set(packages.get(_folder(path), ()))
        for name in imported:
            used |= packages.get(_place(name, modules), set())
        yield path, frozenset(used)


def _modules(sources: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (module path, folder) of each go.mod."""
    for path, text in sources.items():
        if PurePosixPath(path).name == "go.mod" and (found := _MODULE.search(text)) is not None:
            yield found[1], _folder(path)


def _place(name: str, modules: Mapping[str, str]) -> str:
    """Return the folder of an import path, or a text that is no folder for other modules."""
    owners = [module for module in modules if name == module or name.startswith(f"{module}/")]
    if not owners:
        return f"{name}/"
    owner = max(owners, key=len)
    return str(PurePosixPath(modules[owner], name[len(owner) :].lstrip("/")))


def _folder(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _imports(text: str) -> Iterable[str] | None:
    root = parse(text.encode())
    return imports(root).values() if not root.has_error else None
