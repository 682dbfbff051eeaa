"""Makes collection errors from messages of `go list` and the compiler: for each file the first one.

The files of one folder are one program: an error in any of them hides the tests of all. What a message does not find
is named in the vocabulary of `pipeline.evidence`: a package by its folder (`.` for the root), a name with the folder of
the package, or the type, that lacks it. What a package of others lacks is no `Missing`: it is a typo of the test.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import CollectionError, Fault, Frame, Missing, Raised

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MESSAGE_LIMIT: Final = 2000
_BUG: Final = "CompileError"

_PLACED: Final = re.compile(r"^(?P<file>[^\s:]+\.\w+):(?P<line>\d+)(?::\d+)?: (?P<said>.*)$")
_SYNTAX: Final = re.compile(
    r"syntax error|expected |missing condition|illegal character|literal not terminated|invalid "
)

_PACKAGE: Final = re.compile(
    r"(?:no required module provides package|cannot find module providing package|package) (?P<path>[^\s;:]+)"
    r"(?:; to add it| is not in (?:GOROOT|std)|:|$)"
    r"|missing go\.sum entry for module providing package (?P<unsummed>\S+)"
    r"|cannot find package \"(?P<quoted>[^\"]+)\""
    r"|(?P<module>[^\s@]+)@\S+: .*"
)
_EMPTY: Final = re.compile(r"no (?:non-test )?Go files in (?P<folder>/\S+)")

_LACKS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"undefined: (?P<called>[\w.]+)",
        r"(?P<called>\S+) undefined \(type (?P<owner>[^\s(),]+) has no field or method (?P<name>\w+)",
        r"(?P<called>[\w.]+) not declared by package \w+",
        r"unknown field '?(?P<name>\w+)'? in struct literal(?: of type (?P<owner>\S+))?",
        r"(?:too many|not enough) arguments in call to (?P<called>\S+)",
        r"assignment mismatch: \d+ variables? but (?P<called>[^\s(]+)(?:\(.*\))? returns? \d+ values?",
        r"[^\n]* in argument to (?P<called>[^\s:]+)",
        r"(?P<called>[^\s(]+)\(.*\) \(no value\) used as value",
        r"(?s).*?(?P<owner>[^\s:]+) does not implement .* \(missing (?:method (?P<name>\w+)|(?P<other>\w+) method)\)",
    )
)
"""Messages about a missing name or shape: `called` as the source writes it, or a name and the type that lacks it."""


@dataclass(frozen=True)
class Refusal:
    """One error message; `path` is empty if it has no place in the workspace."""

    path: str
    line: int
    said: str


@dataclass(frozen=True)
class Workspace:
    """The resolution of names. `modules` are folders by module path, `imports` the imported names of each file."""

    modules: Mapping[str, str]
    imports: Mapping[str, Mapping[str, str]]

    def folder_of(self, package: str) -> str | None:
        """Return the folder that a package of the workspace has or would have, None for other packages."""
        for module, folder in sorted(self.modules.items(), key=lambda pair: -len(pair[0])):
            if package == module or package.startswith(f"{module}/"):
                return posixpath.normpath(posixpath.join(folder, package[len(module) + 1 :] or "."))
        return None


def refusals(texts: Iterable[tuple[str, str]], workspace: str) -> Iterator[Refusal]:
    """Yield the error messages in compiler output.

    Args:
        texts: Pairs of a place (`file:line:column`, or empty) and what was said, a compiler's whole output perhaps.
        workspace: The folder in which go ran, as it calls it.
    """
    for place, text in texts:
        whole = f"{place}: {text}" if place else text
        current: list[str] = []
        for line in [*whole.split("\n"), "#"]:
            if line.startswith(("\t", "    ")) and current:
                current.append(line.strip())
                continue
            if current:
                yield _refusal(current, workspace)
            current = [] if line.startswith("#") or not line.strip() else [line]


def _refusal(lines: list[str], workspace: str) -> Refusal:
    placed = _PLACED.match(lines[0])
    if placed is None:
        return Refusal("", 0, "\n".join(lines))
    path = posixpath.normpath(posixpath.join(workspace, placed["file"]))
    inside = path.startswith(f"{workspace}/")
    return Refusal(
        path.removeprefix(f"{workspace}/") if inside else "",
        int(placed["line"]),
        "\n".join([placed["said"], *lines[1:]]),
    )


def fault_of(refusal: Refusal, workspace: Workspace) -> Fault:
    """Return the fault of an error message."""
    frames = (Frame(path=refusal.path, line=refusal.line),) if refusal.path else ()
    kind, missing = _missing(refusal, workspace)
    bases = ("ImportError", _BUG) if missing is not None else (_BUG,)
    return Fault(
        chain=(Raised(kind=kind, bases=bases, message=refusal.said[:_MESSAGE_LIMIT]),), frames=frames, missing=missing
    )


def empty_package(said: str, workspace: str) -> str | None:
    """Return the folder that a message reports to have only tests, None for other messages."""
    found = _EMPTY.search(said)
    if found is None:
        return None
    return posixpath.relpath(found["folder"], workspace)


def package_without_code(folder: str) -> Fault:
    """Return the fault of importing a package of the workspace that has no code."""
    said = f"package {folder} has no code but tests"
    raised = Raised(kind="package", bases=("ImportError", _BUG), message=said)
    return Fault(chain=(raised,), missing=Missing(name=folder))


def errors_of(found: Iterable[Refusal], workspace: Workspace) -> tuple[CollectionError, ...]:
    """Return the first error of each file, sorted by path."""
    by_path: dict[str, CollectionError] = {}
    for refusal in found:
        if refusal.path:
            by_path.setdefault(refusal.path, CollectionError(path=refusal.path, fault=fault_of(refusal, workspace)))
    return tuple(by_path[path] for path in sorted(by_path))


def _missing(refusal: Refusal, workspace: Workspace) -> tuple[str, Missing | None]:
    package = _PACKAGE.match(refusal.said)
    if package is not None:
        return "package", _missing_package(next(filter(None, package.groups())), workspace)
    for pattern in _LACKS:
        found = pattern.match(refusal.said)
        if found is not None:
            parts = {name: value for name, value in found.groupdict().items() if value}
            return "undefined", _missing_name(parts, refusal.path, workspace)
    return ("SyntaxError" if _SYNTAX.match(refusal.said) else "compile"), None


def _missing_package(path: str, workspace: Workspace) -> Missing | None:
    folder = workspace.folder_of(path)
    if folder is not None:
        return Missing(name=folder)
    # without a dot in its first part it can only be a package of Go itself, which no installation would bring
    return Missing(name=path, first_party=False) if "." in path.partition("/")[0] else None


def _missing_name(parts: Mapping[str, str], path: str, workspace: Workspace) -> Missing | None:
    owner = parts.get("owner", "").lstrip("*&[]")
    name = parts.get("name") or parts.get("other") or ""
    if owner and name:
        qualifier, dot, last = owner.rpartition(".")
        folder = _package_called(qualifier, path, workspace) if dot else _folder(path)
        return Missing(name=name, owner=re.sub(r"\[.*", "", last)) if folder is not None else None
    called = parts.get("called", "") or name
    qualifier, dot, last = called.rpartition(".")
    imported = workspace.imports.get(path, {})
    if dot and qualifier in imported:
        folder = workspace.folder_of(imported[qualifier])
        return Missing(name=last, owner=folder) if folder is not None else None
    # `value.Method`: whose method it is, the message does not say
    return Missing(name=last, owner="" if dot else _folder(path))


def _package_called(name: str, path: str, workspace: Workspace) -> str | None:
    """Return the folder of a package by its name in a file, None if it is not the workspace's."""
    imported = workspace.imports.get(path, {})
    return workspace.folder_of(imported[name]) if name in imported else _folder(path)


def _folder(path: str) -> str:
    return posixpath.dirname(path) or "."
