"""Finds the missing name in the messages of engines and runners, and whether the project should have it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pipeline.evidence.observation import Missing
from pipeline.languages.javascript.imports import EVERYTHING, is_own, module_key, stem

if TYPE_CHECKING:
    from pipeline.languages.javascript.messages import Thrown
    from pipeline.languages.javascript.queries import Looked
    from pipeline.languages.javascript.sources import Sources

_EXPORT: Final = (
    re.compile(r"The requested module '(?P<module>[^']+)' does not provide an export named '(?P<name>[^']+)'"),
    re.compile(r"Named export '(?P<name>[^']+)' not found\. The requested module '(?P<module>[^']+)'"),
    re.compile(r"\[vitest\] No \"(?P<name>[^\"]+)\" export is defined on the \"(?P<module>[^\"]+)\" mock"),
    re.compile(r"Module ['\"](?P<module>[^'\"]+)['\"]+ has no exported member '(?P<name>[^']+)'"),
)
_MODULE: Final = (
    re.compile(r"Cannot find (?:module|package) '(?P<name>[^']+)' imported from (?P<importer>[^\n]+)"),
    re.compile(r"Failed to resolve import \"(?P<name>[^\"]+)\" from \"(?P<importer>[^\"]+)\""),
    re.compile(r"Failed to load url (?P<name>\S+) \(resolved id: [^)]*\)(?: in (?P<importer>\S+?)\.)?"),
    re.compile(r"Cannot find module '(?P<name>[^']+)'(?: from '(?P<importer>[^']+)')?"),
    re.compile(r"Cannot find package '(?P<name>[^']+)'(?: from '(?P<importer>[^']+)')?"),
    re.compile(r"Package subpath '(?P<name>[^']+)' is not defined by \"exports\" in (?P<importer>\S+)"),
    re.compile(r"Missing \"(?P<name>[^\"]+)\" specifier in \"(?P<importer>[^\"]+)\" package"),
)
_CALLED: Final = re.compile(r"^(?P<name>.+?) is not a (?:function|constructor)\b")
_READ: Final = re.compile(
    r"^Cannot (?:read propert(?:y|ies) of|destructure)\b.*\b(?:undefined|null)\b(?:.*reading '(?P<name>[^']+)')?"
)
_FREE: Final = re.compile(r"^(?P<name>[\w$]+) is not defined$")
_LAST: Final = re.compile(r"([\w$]+)\W*$")
_UNPARSABLE: Final = re.compile(
    r"Transform failed with|Failed to parse source|Pars(?:e failure|ing failed)|PARSE_ERROR|Unexpected token"
)
_LITERALS: Final = frozenset(
    {"string", "template_string", "number", "array", "object", "true", "false", "null", "undefined", "regex"}
)


def is_unlinked(thrown: Thrown) -> bool:
    """Return whether a module lacks an imported name."""
    return any(pattern.search(thrown.message) for pattern in _EXPORT)


def is_module_missing(thrown: Thrown) -> bool:
    """Return whether a module does not exist."""
    coded = thrown.code in {"ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND", "ERR_PACKAGE_PATH_NOT_EXPORTED"}
    return coded or any(pattern.search(thrown.message) for pattern in _MODULE)


def is_unparsable(thrown: Thrown) -> bool:
    """Return whether a file cannot be parsed; compilers have error classes of their own for that."""
    return thrown.kind == "SyntaxError" or (
        thrown.kind in {"Error", "RollupError", "RolldownError", "BuildError"}
        and bool(_UNPARSABLE.search(thrown.message))
    )


def of_message(thrown: Thrown) -> str | None:
    """Return the last part of the name that a TypeError reports missing, None if it names none."""
    called = _CALLED.search(thrown.message)
    if called is not None:
        last = _LAST.search(called["name"])
        return last[1] if last is not None else None
    read = _READ.search(thrown.message)
    return (read["name"] or "") if read is not None else None


def of_thrown(thrown: Thrown, sources: Sources, path: str, line: int, root: str) -> Missing | None:
    """Return the name that was not found, None if the error is not about one.

    Args:
        thrown: What was thrown.
        sources: The files.
        path: The file of the innermost frame in the workspace.
        line: Its line, 0 if that is not known.
        root: The workspace as the tests saw it.
    """
    for pattern in _EXPORT:
        found = pattern.search(thrown.message)
        if found is not None:
            module = _relative(found["module"], root)
            owner = module_key(path, module, sources.files)
            return Missing(name=found["name"], owner=owner, first_party=is_own(module, sources.packages))
    if is_module_missing(thrown):
        return _module(thrown, sources, path, root)
    free = _FREE.match(thrown.message) if thrown.kind == "ReferenceError" else None
    if free is not None:
        return Missing(name=free["name"], first_party=False)
    return _attribute(thrown, sources, path, line) if thrown.kind == "TypeError" else None


def _module(thrown: Thrown, sources: Sources, path: str, root: str) -> Missing | None:
    found = next(filter(None, (pattern.search(thrown.message) for pattern in _MODULE)), None)
    if found is None:
        return None
    name = _relative(found["name"], root)
    importer = _relative((found.groupdict().get("importer") or "").strip().strip("'"), root) or path
    if name.startswith("/") and not found["name"].startswith(f"{root}/"):  # vite writes paths below the root so
        name = name.lstrip("/")
        return Missing(name=stem(name), first_party=True)
    if name != found["name"] and not name.startswith("."):
        inside = name.partition("node_modules/")[2]
        return Missing(name=inside or stem(name), first_party=not inside)
    return Missing(name=module_key(importer, name, sources.files), first_party=is_own(name, sources.packages))


def _relative(name: str, root: str) -> str:
    """Return a path relative to the workspace, other names unchanged."""
    return unquote(name.removeprefix("file://")).removeprefix(f"{root}/")


def _attribute(thrown: Thrown, sources: Sources, path: str, line: int) -> Missing | None:
    name = of_message(thrown)
    if name is None:
        return None
    is_call = _CALLED.search(thrown.message) is not None
    looked = sources.looked_at(path, line, name, called=is_call)
    if looked is None:
        return Missing(name=name, first_party=is_call)
    return _of_expression(looked, sources, path, name)


def _of_expression(looked: Looked, sources: Sources, path: str, name: str) -> Missing:
    """Return the missing name, given an expression that was undefined."""
    known = sources.bindings(path)
    if looked.kind == "identifier":
        binding = known.get(looked.name)
        if binding is None:
            return Missing(name=looked.name, first_party=False)
        wanted = looked.name if binding.name in {EVERYTHING, "default"} else binding.name
        return Missing(
            name=wanted,
            owner=module_key(path, binding.module, sources.files),
            first_party=is_own(binding.module, sources.packages),
        )
    if looked.kind != "member_expression":
        return Missing(name=name, first_party=False)
    if not looked.root_kind or looked.root_kind in _LITERALS:
        return Missing(name=looked.name, owner=looked.root_kind, first_party=False)
    binding = known.get(looked.root)
    if binding is None:
        return Missing(name=looked.name, first_party=True)
    owner = module_key(path, binding.module, sources.files)
    return Missing(name=looked.name, owner=owner, first_party=is_own(binding.module, sources.packages))
