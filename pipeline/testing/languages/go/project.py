"""A compiled workspace of Go modules: its tests with their ids, and what did not compile.

An id is `folder::TestX`, a subtest's `folder::TestX/name`; the folder is relative to the workspace, `.` for its root.
It says nothing of files and lines, and no two tests of a workspace share one.

The files of one folder are one program: an error in any of them hides the tests of all. What a message does not find
is named in the vocabulary of `judge.evidence`: a package by its folder (`.` for the root), a name with the folder of
the package, or the type, that lacks it. What a package of others lacks is no `Missing`: it is a typo of the test.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pipeline.judge.evidence.observation import CollectionError, Fault, Frame, Layout, Missing, Raised, RunState
from pipeline.testing.languages.go.sources import Folder, TestFunction, digests_of, read_folder
from pipeline.testing.languages.runners import sessions
from pipeline.testing.languages.runners.sessions import Compiled, Line, ProcessLine, Unusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipeline.testing.languages.runners.sessions import Session
    from pipeline.trees import Files


class Package(sessions.Said):
    """A package of the workspace: import path, folder, file names."""

    path: str
    dir: str
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


class Trouble(sessions.Said):
    """An error that keeps a package from being compiled: a place and a sentence, or the compiler's whole text."""

    pos: str
    said: str


class Modules(ProcessLine):
    """A record of the measured modules: folders by module path."""

    kind: Literal["modules"]
    modules: tuple[tuple[str, str], ...] = ()


class Packages(ProcessLine):
    """A record of the workspace's packages and their compile errors."""

    kind: Literal["packages"]
    packages: tuple[Package, ...] = ()
    errors: tuple[Trouble, ...] = ()


class Linked(ProcessLine):
    """A record that the test executables are built."""

    kind: Literal["linked"]


class Executable(Line):
    """A test executable, the folder it runs in, and the arguments that `go test` would pass."""

    kind: Literal["executable"]
    executable: str
    dir: str
    arguments: tuple[str, ...] = ()


class TestEnded(ProcessLine):
    """A record that a test ended.

    `logged` if `testing` wrote its log, as it does when its tests are over; `blocks` are the pieces of code that it
    entered, None where it did not say.
    """

    kind: Literal["ended"]
    id: str
    logged: bool
    blocks: tuple[tuple[str, int], ...] | None = None
    doors: tuple[str, ...] = ()


Record = Modules | Packages | Linked | Executable | sessions.Start | TestEnded | sessions.OutOfTime | sessions.End
ADAPTER: Final[TypeAdapter[Record]] = TypeAdapter(Annotated[Record, Field(discriminator="kind")])


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


def _missing(refusal: Refusal, workspace: Workspace) -> tuple[str, Missing | None]:
    package = _PACKAGE.match(refusal.said)
    if package is not None:
        path = next(filter(None, package.groups()))
        folder = workspace.folder_of(path)
        # without a dot in its first part it can only be a package of Go itself, which no installation would bring
        is_foreign = folder is None and "." in path.partition("/")[0]
        return "package", Missing(name=folder or path, first_party=not is_foreign) if folder or is_foreign else None
    for pattern in _LACKS:
        found = pattern.match(refusal.said)
        if found is not None:
            parts = {name: value for name, value in found.groupdict().items() if value}
            return "undefined", _missing_name(parts, refusal.path, workspace)
    return ("SyntaxError" if _SYNTAX.match(refusal.said) else "compile"), None


def _missing_name(parts: Mapping[str, str], path: str, workspace: Workspace) -> Missing | None:
    owner = parts.get("owner", "").lstrip("*&[]")
    name = parts.get("name") or parts.get("other") or ""
    imported = workspace.imports.get(path, {})
    if owner and name:
        qualifier, _, last = owner.rpartition(".")
        is_known = qualifier not in imported or workspace.folder_of(imported[qualifier]) is not None
        return Missing(name=name, owner=re.sub(r"\[.*", "", last)) if is_known else None
    called = parts.get("called", "") or name
    qualifier, dot, last = called.rpartition(".")
    if dot and qualifier in imported:
        folder = workspace.folder_of(imported[qualifier])
        return Missing(name=last, owner=folder) if folder is not None else None
    # `value.Method`: whose method it is, the message does not say
    return Missing(name=last, owner="" if dot else posixpath.dirname(path) or ".")


_UNFETCHED: Final = "module lookup disabled by GOPROXY=off"
_FETCH: Final = "`go mod download` fetches what go.mod asks for"
_MACHINE: Final = re.compile(
    r"module lookup disabled by GOPROXY=off|requires go >= |invalid go version '\d+\.\d+\.\d"
    r"|unknown directive: toolchain|C compiler \"[^\"]*\" not found|no space left on device"
    r"|cannot find GOROOT|cannot allocate memory"
)
"""Errors that are caused by this machine and not by the sources: a missing module, an old toolchain, no disk."""

_QUOTES: Final = re.compile(r"\S+\.\w+:\d+|\s")
_NOISE: Final = re.compile(
    r"go build \S+: no (?:non-test )?Go files in|go: downloading|warning: |no (?:non-test )?Go files"
)


@dataclass(frozen=True)
class Unit:
    """The tests of one folder; `executable` is empty if they did not compile or were not requested."""

    package: Package
    folder: str
    sources: Folder
    executable: str = ""
    arguments: tuple[str, ...] = ()

    def id_of(self, name: str) -> str:
        """Return the id of a test of this folder."""
        return f"{self.folder or '.'}::{name}"


@dataclass(frozen=True)
class Test:
    """A top-level test: its id, its source and its folder."""

    __test__ = False

    id: str
    source: TestFunction
    unit: Unit


@dataclass(frozen=True)
class Project(Compiled):
    """A workspace."""

    units: tuple[Unit, ...]
    packages: tuple[Package, ...]
    names: Workspace

    @cached_property
    def tests(self) -> Mapping[str, Test]:
        """Return the top-level tests by id, including those that an error in another file of their folder prevents.

        What stands in a file that is refused itself is not known, as in every language.
        """
        broken = {error.path for error in self.errors}
        found = (
            Test(unit.id_of(name), test, unit)
            for unit in self.units
            for name, test in unit.sources.tests.items()
            if test.path not in broken
        )
        return {test.id: test for test in found}

    def hidden_by(self, test: Test) -> str:
        """Return in words the error that prevents a test from running; empty if none does."""
        if test.unit.executable or not self.errors:
            return ""
        near = [error.path for error in self.errors if posixpath.dirname(error.path) == test.unit.folder]
        return f"{(near or [self.errors[0].path])[0]} does not compile, and with it no test of its package"

    @cached_property
    def files(self) -> dict[str, str]:
        """Return the digests of test files and of files in `testdata`."""
        return digests_of(self.measured)

    @cached_property
    def layout(self) -> Layout:
        """Return the layout of tests: in any folder, Go decides by the file name alone."""
        known = frozenset(path for path in self.files if path.endswith("_test.go"))
        return Layout(testpaths=(".",), python_files=("*_test.go",), collected=known)

    def below(self, path: str) -> str:
        """Return a path in the box relative to the workspace, `.` for itself, empty outside of it."""
        if path == self.workspace:
            return "."
        return path.removeprefix(f"{self.workspace}/") if path.startswith(f"{self.workspace}/") else ""

    @cached_property
    def logs(self) -> Mapping[str, frozenset[int]]:
        """Return the lines, by path, on which something is only written down."""
        return {path: lines for unit in self.units for path, lines in unit.sources.logs.items()}

    @cached_property
    def _known(self) -> list[str]:
        return [*self.files, *self.production()]

    def relative(self, file: str) -> str:
        """Return the path in the workspace of a file as a stack names it, empty outside it."""
        if file.startswith("/"):
            return self.below(posixpath.normpath(file))
        # with -trimpath, files are named by the import path of their package
        folder = self.names.folder_of(posixpath.dirname(file))
        return posixpath.normpath(posixpath.join(folder, posixpath.basename(file))) if folder is not None else ""

    def near(self, file: str, folder: str) -> str:
        """Return the path of a file as the log of a test in a folder names it: beside the test first."""
        if "/" in file:
            return self.relative(file)
        beside = posixpath.join(folder, file)
        others = [path for path in self._known if posixpath.basename(path) == file]
        return beside if beside in others else others[0] if len(others) == 1 else ""

    def production(self) -> Iterator[str]:
        """Yield the paths of the files of production code."""
        for package in self.packages:
            folder = self.below(package.dir)
            yield from (posixpath.normpath(posixpath.join(folder, name)) for name in package.files)


def read_project(session: Session, measured: Files, workspace: str) -> Project | Unusable:
    """Return the project as compiled, or why there is none.

    Args:
        session: The records of the compilation.
        measured: What was compiled.
        workspace: The same as the box showed it.
    """
    modules = session.first(Modules)
    if modules is None or modules.code:
        return _no_modules(modules)
    listed = session.first(Packages)
    linked = session.of(Linked)
    if listed is None or listed.timed_out or any(line.timed_out for line in linked):
        return Unusable(RunState.TIMED_OUT, sessions.COMPILING)
    texts = [(error.pos, error.said) for error in listed.errors]
    texts += [("", listed.stderr), *(("", line.stderr) for line in linked)]
    machine = [found for place, text in texts if (found := _about_the_machine(place, text))]
    if machine:  # it is said of each package in other words; the longest names the module
        return Unusable(RunState.UNUSABLE, max(machine, key=len))
    base = Project(measured, workspace, (), (), listed.packages, Workspace({}, {}))
    executables = {line.dir: line for line in session.of(Executable)}
    units = tuple(
        _unit(package, base.below(package.dir), executables.get(package.dir), measured)
        for package in listed.packages
        if package.tests and base.below(package.dir)
    )
    names = Workspace(
        {path: base.below(folder) for path, folder in modules.modules if base.below(folder)},
        {path: found for unit in units for path, found in unit.sources.imports.items()},
    )
    # tests of a file that no reader gets through are unknown
    unread = {path: Raised(kind="SyntaxError", message=why) for u in units for path, why in u.sources.unread.items()}
    faults = {path: Fault(chain=(raised,)) for path, raised in unread.items()}
    faults |= _faults(list(refusals(texts, workspace)), names, workspace)
    errors = tuple(CollectionError(path=path, fault=faults[path]) for path in sorted(faults))
    if linked and not executables and units and not errors:
        return Unusable(RunState.UNUSABLE, _last(linked[-1].stderr) or "no test executable was made")
    return Project(measured, workspace, errors, units, listed.packages, names)


def _no_modules(modules: Modules | None) -> Unusable:
    detail = _last(modules.stderr) if modules is not None else "the test runner did not start"
    machine = modules is None or modules.code == 127 or modules.timed_out or _MACHINE.search(modules.stderr)  # noqa: PLR2004  (no such program)
    raised = Raised(kind="go.mod", message=detail)
    errors = () if machine else (CollectionError(path="go.mod", fault=Fault(chain=(raised,))),)
    return Unusable(RunState.UNUSABLE, detail, errors)


def _unit(package: Package, below: str, made: Executable | None, measured: Files) -> Unit:
    folder = "" if below == "." else below
    return Unit(
        package=package,
        folder=folder,
        sources=read_folder(measured, folder, package.tests),
        executable=made.executable if made is not None else "",
        arguments=made.arguments if made is not None else (),
    )


def _faults(found: list[Refusal], names: Workspace, workspace: str) -> dict[str, Fault]:
    """Return the first fault of each file; one without a place counts for go.mod, if there is no other."""
    faults: dict[str, Fault] = {}
    for refusal in found:
        if refusal.path:
            faults.setdefault(refusal.path, fault_of(refusal, names))
    for refusal in (one for one in found if not one.path):
        empty = _EMPTY.search(refusal.said)
        if empty is not None:
            folder = posixpath.relpath(empty["folder"], workspace)
            said = f"package {folder} has no code but tests"
            raised = Raised(kind="package", bases=("ImportError", _BUG), message=said)
            for path, imported in names.imports.items():
                if any(names.folder_of(package) == folder for package in imported.values()):
                    frames, missing = (Frame(path=path, line=1),), Missing(name=folder)
                    faults.setdefault(path, Fault(chain=(raised,), frames=frames, missing=missing))
        elif not faults and not _NOISE.match(refusal.said):
            raised = Raised(kind="go", bases=(_BUG,), message=refusal.said[:_MESSAGE_LIMIT])
            faults["go.mod"] = Fault(chain=(raised,))
    return faults


def _about_the_machine(place: str, text: str) -> str | None:
    """Return the line about a fault of the machine, else None. A message about a source line may quote that line."""
    lines = [text.partition("\n")[0]] if place else [line for line in text.splitlines() if not _QUOTES.match(line)]
    found = next((line.strip() for line in lines if _MACHINE.search(line)), None)
    if found is None:
        return None
    said = f"{place}: {found}" if place else found
    return f"{said[:500]}; {_FETCH}" if _UNFETCHED in found else said[:500]


def _last(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return "; ".join(lines[:4])[:500]
