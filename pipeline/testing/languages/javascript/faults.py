"""Makes a `Fault` from a thrown error: the chain, the frames in the workspace, and the missing name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pipeline.judge.evidence.observation import Fault, Frame, Missing, Raised
from pipeline.testing.languages.javascript.syntax import EVERYTHING, is_own, module_key, stem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.testing.languages.javascript.records import Thrown
    from pipeline.testing.languages.javascript.sources import Sources


_EXPORT: Final = (
    re.compile(r"The requested module '(?P<module>[^']+)' does not provide an export named '(?P<name>[^']+)'"),
    re.compile(r"Named export '(?P<name>[^']+)' not found\. The requested module '(?P<module>[^']+)'"),
    re.compile(r"\[vitest\] No \"(?P<name>[^\"]+)\" export is defined on the \"(?P<module>[^\"]+)\" mock"),
    re.compile(r"Module ['\"](?P<module>[^'\"]+)['\"]+ has no exported member '(?P<name>[^']+)'"),
)
_QUOTED_MODULE: Final = (
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
_COMPILERS: Final = frozenset({"Error", "RollupError", "RolldownError", "BuildError"})
"""Error classes that compilers have for what cannot be parsed."""
_LITERALS: Final = frozenset(
    {"string", "template_string", "number", "array", "object", "true", "false", "null", "undefined", "regex"}
)


def is_module_missing(thrown: Thrown) -> bool:
    """Return whether a module does not exist."""
    coded = thrown.code in {"ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND", "ERR_PACKAGE_PATH_NOT_EXPORTED"}
    return coded or any(pattern.search(thrown.message) for pattern in _QUOTED_MODULE)


def of_message(thrown: Thrown) -> str | None:
    """Return the last part of the name that a TypeError reports missing, None if it names none."""
    called = _CALLED.search(thrown.message)
    if called is not None:
        last = _LAST.search(called["name"])
        return last[1] if last is not None else None
    read = _READ.search(thrown.message)
    return (read["name"] or "") if read is not None else None


def missing_of(thrown: Thrown, sources: Sources, path: str, line: int, root: str) -> Missing | None:
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
            return sources.lacks(found["name"], path, _relative(found["module"], root))
    if is_module_missing(thrown):
        return _module(thrown, sources, path, root)
    free = _FREE.match(thrown.message) if thrown.kind == "ReferenceError" else None
    if free is not None:
        return Missing(name=free["name"], first_party=False)
    return _attribute(thrown, sources, path, line) if thrown.kind == "TypeError" else None


def _module(thrown: Thrown, sources: Sources, path: str, root: str) -> Missing | None:
    found = next(filter(None, (pattern.search(thrown.message) for pattern in _QUOTED_MODULE)), None)
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
    """Return the missing name, by the expression that was undefined."""
    name = of_message(thrown)
    if name is None:
        return None
    is_call = _CALLED.search(thrown.message) is not None
    looked = sources.looked_at(path, line, name, called=is_call)
    if looked is None:
        return Missing(name=name, first_party=is_call)
    known = sources.bindings(path)
    if looked.kind == "identifier":
        binding = known.get(looked.name)
        if binding is None:
            return Missing(name=looked.name, first_party=False)
        wanted = looked.name if binding.name in {EVERYTHING, "default"} else binding.name
        return sources.lacks(wanted, path, binding.module)
    if looked.kind != "member_expression":
        return Missing(name=name, first_party=False)
    if not looked.root_kind or looked.root_kind in _LITERALS:
        return Missing(name=looked.name, owner=looked.root_kind, first_party=False)
    binding = known.get(looked.root)
    if binding is None:
        return Missing(name=looked.name, first_party=True)
    return sources.lacks(looked.name, path, binding.module)


STUB_MESSAGE: Final = "not implemented"
_MESSAGE: Final = 2000
_FRAMES: Final = 60
_CHAIN: Final = 8
_FRAME: Final = re.compile(
    r"^\s+at (?:(?:async )?(?P<function>.+?) \()?(?:async )?(?P<place>[^()\s][^()]*?):(?P<line>\d+):(?P<column>\d+)\)?$"
)
_HEAD: Final = re.compile(r"^(?P<place>(?:file://)?/[^\n]*?):(?P<line>\d+)(?::(?P<column>\d+))?$")
_REQUIRED: Final = re.compile(r"^- (?P<place>/.+)$")
_IMPORTED: Final = re.compile(r"\b(?:imported )?from '?(?P<place>(?:file://)?/[^'\n]+)")
_BABEL: Final = re.compile(r"^(?:SyntaxError: )?(?P<place>/[^\n:]+): .*\((?P<line>\d+):(?P<column>\d+)\)")
_CODE: Final = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
_MODULE: Final = re.compile(r"node_modules/((?:@[^/]+/)?[^/]+)/(?!.*node_modules/)")
_RUNNERS: Final = re.compile(r"(@?vitest|vite$|vite-node|tinypool|@?jest|esbuild|rollup|rolldown|tsx$|@babel)")
_OUTSIDE: Final = "?"
_ASSERTION: Final = "ERR_ASSERTION"
_STATUS: Final = re.compile(r'expected \d{3} "[^"]*", got \d{3} "')  # of supertest, which says it as a plain error
_THROWING: Final = frozenset({"throws", "rejects", "doesNotThrow", "doesNotReject"})
_REJECTING: Final = frozenset({"rejects", "doesNotReject"})
_AWAIT: Final = " (`await` what the test returns, so that the failure has a place)"


@dataclass(frozen=True)
class Site:
    """A frame as the engine reports it; `path` is empty outside the workspace."""

    path: str
    module: str
    line: int
    column: int | None
    function: str


def of_thrown(
    thrown: Thrown, sources: Sources, root: str, *, test: str, loading: bool = False, at: Site | None = None
) -> Fault:
    """Return the fault of a thrown error.

    Args:
        thrown: What was thrown.
        sources: The files, for names around a place.
        root: The workspace as the tests saw it.
        test: The test file.
        loading: It was being loaded; where no frame in the workspace is known, it is that file that failed.
        at: Where the test is defined. That counts as the frame of an expectation about a promise which the test returns
            without awaiting it: the engine then knows no frame but its own.
    """
    sites = list(_sites(thrown, root))
    is_lost = thrown.code == _ASSERTION and all(site.module == _OUTSIDE for site in sites)
    is_returned = is_lost and at is not None and thrown.operator in _REJECTING
    if loading and not any(site.path for site in sites):
        sites.insert(0, Site(test, "", 0, None, ""))
    own = next((site for site in sites if site.path), None)
    missing = missing_of(thrown, sources, own.path if own else test, own.line if own else 0, root)
    # frames of node, of the runners and of ours say nothing, and differ from version to version
    told = [site for site in sites if site.path or site.module != _OUTSIDE]
    frames = tuple(_frame(site, sources) for site in reversed(told[:_FRAMES]))
    links: list[Thrown] = [thrown]
    while links[-1].cause is not None and len(links) < _CHAIN:
        links.append(links[-1].cause)
    chain = tuple(_raised(link, root) for link in links)
    if at is not None and is_returned:
        frames = (_frame(at, sources),)
    elif is_lost and at is not None:
        first, *more = chain[0].message.split("\n")
        message = "\n".join((first.rstrip(":") + _AWAIT, *more))
        chain = (chain[0].model_copy(update={"message": message}), *chain[1:])
    return Fault(
        chain=chain,
        frames=frames,
        missing=missing,
        expectation=thrown.operator in _THROWING
        or bool(re.match(r"Missing expected (?:exception|rejection)", thrown.message)),
        bare=own is not None and own.line > 0 and sources.is_bare(own.path, own.line, own.column),
    )


def of_exit(path: str, how: str) -> Fault:
    """Return the fault of a file whose process ended before its tests were known."""
    raised = Raised(kind="exit", message=f"the process {how} while the file was loaded")
    return Fault(chain=(raised,), frames=(Frame(path=path),))


def sites_of(stack: str, root: str) -> Iterator[Site]:
    """Yield the frames of a stack in the engine's order, the innermost first."""
    for line in stack.split("\n"):
        found = _FRAME.match(line.rstrip())
        if found is not None:
            yield _site(found["place"], int(found["line"]), int(found["column"]), found["function"] or "", root)


def _sites(thrown: Thrown, root: str) -> Iterator[Site]:
    stack = without_colours(thrown.stack)
    first = stack.split("\n", 1)[0]
    head = _HEAD.match(first) or _BABEL.match(without_colours(thrown.message))
    if head is not None:  # what cannot be compiled or linked has its place in front
        column = head["column"]
        yield _site(head["place"], int(head["line"]), int(column) if column else None, "", root)
    for site in thrown.frames:
        yield _site(site.file, site.line or 0, site.column, site.method or "", root)
    if not thrown.frames:
        yield from sites_of(stack, root)
    for line in without_colours(thrown.message).split("\n"):  # who wanted what is not there
        wanted = _REQUIRED.match(line.strip()) or _IMPORTED.search(line)
        if wanted is not None:
            yield _site(wanted["place"], 0, None, "", root)


def _site(place: str, line: int, column: int | None, function: str, root: str) -> Site:
    clean = unquote(place.removeprefix("file://")).partition("?")[0]
    if clean.startswith(f"{root}/") and "/node_modules/" not in clean:
        return Site(clean[len(root) + 1 :], "", line, column, function)
    module = _MODULE.search(clean)
    is_told = module is not None and not _RUNNERS.match(module[1])
    return Site("", module[1] if module is not None and is_told else _OUTSIDE, line, column, function)


def _frame(site: Site, sources: Sources) -> Frame:
    known = sources.function_at(site.path, site.line, site.column) if site.path and site.line else ""
    function = known or site.function.removeprefix("async ").removeprefix("new ")
    return Frame(path=site.path, module=site.module, line=site.line, function=function)


def _raised(thrown: Thrown, root: str) -> Raised:
    """Return one exception of the chain; its bases include the Python class names that `classify` knows."""
    message = without_colours(thrown.message).replace(f"file://{root}/", "").replace(f"{root}/", "")
    kind, bases = thrown.kind, list(thrown.bases)
    if any(pattern.search(thrown.message) for pattern in _EXPORT):
        # a SyntaxError to the engine; to a person a name that is not there
        kind, bases = "ImportError", ["Error"]
    elif is_module_missing(thrown):
        bases.append("ImportError")
    elif thrown.kind == "SyntaxError" or (thrown.kind in _COMPILERS and _UNPARSABLE.search(thrown.message)):
        bases.append("SyntaxError")
    elif thrown.kind == "ReferenceError":
        bases.append("NameError")
    elif thrown.kind == "AssertionError" or thrown.compared or thrown.code == _ASSERTION or _STATUS.match(message):
        bases.append("AssertionError")
    elif thrown.kind == "Error" and thrown.message.strip() == STUB_MESSAGE:
        bases.append("NotImplementedError")
    elif thrown.kind == "TypeError" and of_message(thrown) is not None:
        bases.append("AttributeError")
    return Raised(kind=kind, bases=tuple(dict.fromkeys(bases)), message=message[:_MESSAGE])


def without_colours(said: str) -> str:
    """Return text without the escape sequences that colour it."""
    return _CODE.sub("", said)
