"""A compiled workspace of Go modules: its tests with their ids, and what did not compile.

An id is `folder::TestX`, a subtest's `folder::TestX/name`; the folder is relative to the workspace, `.` for its root.
It says nothing of files and lines, and no two tests of a workspace share one.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pipeline.evidence.observation import CollectionError, Fault, Layout, Raised, RunState
from pipeline.languages.go import errors as go_errors
from pipeline.languages.go import messages
from pipeline.languages.go.faults import Sources
from pipeline.languages.go.sources import TESTDATA, Folder, digests_of, read_folder, text_of
from pipeline.languages.runners.outcomes import COMPILING, Unusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipeline.languages.go.sources import TestFunction
    from pipeline.languages.runners.sessions import Session
    from pipeline.trees import Files

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

    package: messages.Package
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
class Project:
    """A workspace. `measured` are its files, `workspace` is its path in the box."""

    measured: Files
    workspace: str
    units: tuple[Unit, ...]
    packages: tuple[messages.Package, ...]
    errors: tuple[CollectionError, ...]
    names: go_errors.Workspace

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
    def sources(self) -> Sources:
        """Return the functions and tables that find paths and lines in the project's sources for a `Fault`."""
        logs = {path: lines for unit in self.units for path, lines in unit.sources.logs.items()}
        known = [*self.files, *(self._file(package, name) for package in self.packages for name in package.files)]

        def relative(file: str) -> str:
            if file.startswith("/"):
                return self.below(posixpath.normpath(file))
            # with -trimpath, files are named by the import path of their package
            folder = self.names.folder_of(posixpath.dirname(file))
            return posixpath.normpath(posixpath.join(folder, posixpath.basename(file))) if folder is not None else ""

        def near(file: str, folder: str) -> str:
            if "/" in file:
                return relative(file)
            beside = posixpath.join(folder, file)
            others = [path for path in known if posixpath.basename(path) == file]
            return beside if beside in others else others[0] if len(others) == 1 else ""

        def line(path: str, number: int) -> str:
            lines = (text_of(self.measured, path) or b"").decode("utf-8", "replace").split("\n") if path else []
            return lines[number - 1] if 0 < number <= len(lines) else ""

        return Sources(relative, near, line, logs, is_test=lambda path: path.endswith("_test.go"))

    def production(self) -> Iterator[str]:
        """Yield the paths of the files of production code."""
        for package in self.packages:
            yield from (self._file(package, name) for name in package.files)

    def _file(self, package: messages.Package, name: str) -> str:
        return posixpath.normpath(posixpath.join(self.below(package.dir), name))


def is_test_side(path: str) -> bool:
    """Return whether Go takes a file for tests: by its name, or by a `testdata` folder above it."""
    return path.endswith("_test.go") or TESTDATA in path.split("/")[:-1]


def read_project(session: Session, measured: Files, workspace: str) -> Project | Unusable:
    """Return the project as compiled, or why there is none.

    Args:
        session: The records of the compilation.
        measured: What was compiled.
        workspace: The same as the box showed it.
    """
    modules = session.first(messages.Modules)
    if modules is None or modules.code:
        return _no_modules(modules)
    listed = session.first(messages.Packages)
    linked = session.of(messages.Linked)
    if listed is None or listed.timed_out or any(line.timed_out for line in linked):
        return Unusable(RunState.TIMED_OUT, COMPILING)
    texts = [(error.pos, error.said) for error in listed.errors]
    texts += [("", listed.stderr), *(("", line.stderr) for line in linked)]
    machine = [found for place, text in texts if (found := _about_the_machine(place, text))]
    if machine:  # it is said of each package in other words; the longest names the module
        return Unusable(RunState.UNUSABLE, max(machine, key=len))
    base = Project(measured, workspace, (), listed.packages, (), go_errors.Workspace({}, {}))
    executables = {line.dir: line for line in session.of(messages.Executable)}
    units = tuple(
        _unit(package, base.below(package.dir), executables.get(package.dir), measured)
        for package in listed.packages
        if package.tests and base.below(package.dir)
    )
    names = go_errors.Workspace(
        {path: base.below(folder) for path, folder in modules.modules if base.below(folder)},
        {path: found for unit in units for path, found in unit.sources.imports.items()},
    )
    refused = _errors(list(go_errors.refusals(texts, workspace)), names, workspace)
    by_path = {error.path: error for error in (*_unread(units), *refused)}
    errors = tuple(by_path[path] for path in sorted(by_path))
    if linked and not executables and units and not errors:
        return Unusable(RunState.UNUSABLE, _last(linked[-1].stderr) or "no test executable was made")
    return Project(measured, workspace, units, listed.packages, errors, names)


def _no_modules(modules: messages.Modules | None) -> Unusable:
    detail = _last(modules.stderr) if modules is not None else "the test runner did not start"
    machine = modules is None or modules.code == 127 or modules.timed_out or _MACHINE.search(modules.stderr)  # noqa: PLR2004  (no such program)
    raised = Raised(kind="go.mod", message=detail)
    errors = () if machine else (CollectionError(path="go.mod", fault=Fault(chain=(raised,))),)
    return Unusable(RunState.UNUSABLE, detail, errors)


def _unit(package: messages.Package, below: str, made: messages.Executable | None, measured: Files) -> Unit:
    folder = "" if below == "." else below
    return Unit(
        package=package,
        folder=folder,
        sources=read_folder(measured, folder, package.tests),
        executable=made.executable if made is not None else "",
        arguments=made.arguments if made is not None else (),
    )


def _errors(found: list[go_errors.Refusal], names: go_errors.Workspace, workspace: str) -> tuple[CollectionError, ...]:
    errors = {error.path: error for error in go_errors.errors_of(found, names)}
    for refusal in found:
        folder = go_errors.empty_package(refusal.said, workspace) if not refusal.path else None
        if folder is not None:
            for path in _importing(folder, names):
                fault = go_errors.package_without_code(folder)
                frame = go_errors.Frame(path=path, line=1)
                errors.setdefault(path, CollectionError(path=path, fault=fault.model_copy(update={"frames": (frame,)})))
        elif not refusal.path and not errors and not _NOISE.match(refusal.said):
            raised = Raised(kind="go", bases=("CompileError",), message=refusal.said[:2000])
            errors["go.mod"] = CollectionError(path="go.mod", fault=Fault(chain=(raised,)))
    return tuple(errors[path] for path in sorted(errors))


def _unread(units: Iterable[Unit]) -> Iterator[CollectionError]:
    """Yield an error for each test file that cannot be read, so that its tests are unknown."""
    for path, why in (entry for unit in units for entry in unit.sources.unread.items()):
        yield CollectionError(path=path, fault=Fault(chain=(Raised(kind="SyntaxError", message=why),)))


def _importing(folder: str, names: go_errors.Workspace) -> Iterable[str]:
    return (
        path
        for path, imported in names.imports.items()
        if any(names.folder_of(package) == folder for package in imported.values())
    )


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
