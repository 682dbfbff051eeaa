"""A compiled Rust workspace: its tests with their ids, and what did not compile.

An id is `package::target::module::test`, with the target `lib`, `bin/NAME`, `test/NAME` or `example/NAME`: it says
nothing of files and lines, and no two of a workspace share one. Examples in documentation are
`package::doc::FILE::ITEM`, counted where an item has several: their own names change with every line above them.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pipeline.judge.evidence.observation import CollectionError, Layout, RunState
from pipeline.testing.languages.runners.sessions import COMPILING, Compiled, Session, Unusable
from pipeline.testing.languages.rust import output
from pipeline.testing.languages.rust.sources import Crate, TestFunction, read_crate, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.testing.languages.rust.output import Package, Target
    from pipeline.trees import Files

_DOCTEST: Final = re.compile(r"(?P<file>\S+\.\w+) - (?P<item>.*?)\s*\(line (?P<line>\d+)\)(?P<how>.*)")
_MACHINE: Final = ("linker `", "couldn't create a temp dir", "failed to write")
"""Compiler errors that are caused by this machine and not by the sources."""


@dataclass(frozen=True)
class Unit:
    """One target with tests. `names` are libtest's, None where the target did not compile."""

    package: Package
    target: Target
    folder: str
    crate: Crate
    executable: str
    names: tuple[str, ...] | None
    ignored: frozenset[str]
    own_harness: bool

    def id_of(self, name: str) -> str:
        """Return the id of a test of this target."""
        return f"{self.package.name}::{self.target.label}::{name}"


@dataclass(frozen=True)
class Test:
    """A test. `name` is its name in the executable, `function` the id without parameters."""

    __test__ = False

    id: str
    name: str
    function: str
    path: str
    sha256: str
    unit: Unit
    source: TestFunction | None

    @property
    def is_ignored(self) -> bool:
        """Return whether the test is not run unless asked for."""
        return self.name in self.unit.ignored


@dataclass(frozen=True)
class Doctest:
    """An example in the documentation; `name` is rustdoc's present name for it."""

    id: str
    name: str
    package: str
    path: str
    line: int
    sha256: str


@dataclass(frozen=True)
class Project(Compiled):
    """A compiled workspace.

    `folders` are those of its packages. `hidden` are tests that the sources show in a target that did not compile.
    """

    folders: Mapping[str, str]
    units: tuple[Unit, ...]
    tests: Mapping[str, Test]
    hidden: Mapping[str, Test]
    doctests: Mapping[str, Doctest]

    @cached_property
    def files(self) -> dict[str, str]:
        """Return the digest of each file with tests: of all its bytes, or of its test code."""
        found: dict[str, str] = {}
        for unit in sorted(self.units, key=lambda unit: unit.target.is_test):
            found |= unit.crate.digests
        return found

    @cached_property
    def layout(self) -> Layout:
        """Return the layout of tests; a production file's test regions count as a file beside it."""
        folders = {posixpath.join(unit.folder, name) for unit in self.units for name in ("tests", "benches")}
        collected = {path if path in self.whole else f"{path}{output.REGION}" for path in self.files}
        return Layout(testpaths=tuple(sorted(folders)), python_files=("*.rs",), collected=frozenset(collected))

    @cached_property
    def whole(self) -> frozenset[str]:
        """Return the files that are tests as a whole."""
        return frozenset(path for unit in self.units for path in unit.crate.whole)

    @cached_property
    def _regions(self) -> Mapping[str, list[tuple[int, int]]]:
        found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for unit in self.units:
            for path, lines in unit.crate.regions.items():
                found[path] += lines
        return found

    @cached_property
    def _bare(self) -> set[tuple[str, int]]:
        tests = (test for unit in self.units for test in unit.crate.tests.values())
        return {(test.path, line) for test in tests for line in test.bare}

    def is_region(self, path: str, number: int) -> bool:
        """Return whether a line is compiled for tests only, in a file that is production otherwise."""
        regions = () if path in self.whole else self._regions.get(path, ())
        return any(first <= number <= last for first, last in regions)

    def is_bare(self, path: str, number: int) -> bool:
        """Return whether a line states failure without looking at anything; in an unreadable file it may."""
        return (path, number) in self._bare or any(path in unit.crate.unread for unit in self.units)

    def frame(self, file: str, folder: str, line: int, function: str = "") -> output.Frame:
        """Return a traceback frame, given a file as the compiler or a backtrace in a folder names it.

        Its path is empty outside the workspace.
        """
        path = _below(posixpath.normpath(posixpath.join(folder, file)), self.workspace)
        shown = f"{path}{output.REGION}" if path and self.is_region(path, line) else path
        return output.Frame(path=shown, module=function.rpartition(".")[0], line=line if path else 0, function=function)


def read_project(session: Session, measured: Files, workspace: str) -> Project | Unusable:
    """Return the compiled project, or why there is none.

    Args:
        session: The records of the compilation.
        measured: What was compiled.
        workspace: The same as the box showed it.
    """
    described = session.first(output.MetadataLine)
    metadata = output.read_metadata(described) if described is not None else None
    if described is None or metadata is None:
        return _no_metadata(described)
    built = session.first(output.Built)
    if built is None or built.timed_out:
        return Unusable(RunState.TIMED_OUT, COMPILING)
    messages = [line.message for line in session.of(output.ErrorLine)]
    machine = next((error.message.message for error in messages if error.message.message.startswith(_MACHINE)), None)
    artifacts = [line.message for line in session.of(output.ArtifactLine)]
    if machine is not None or (built.code and not messages):
        return Unusable(RunState.UNUSABLE, machine or _said(built.stderr))
    listed = {line.executable: line for line in session.of(output.Listed)}
    executables = {(a.manifest_path, a.target.label): a.executable for a in artifacts}
    units = tuple(
        _unit(
            package, target, listed.get(executables.get((package.manifest_path, target.label), "")), measured, workspace
        )
        for package in metadata.packages
        for target in package.targets
        if target.test and target.kind[0] not in {"custom-build", "bench"}
    )
    folders = {one.name: posixpath.dirname(_below(one.manifest_path, workspace)) for one in metadata.packages}
    project = Project(measured, workspace, (), folders, units, {}, {}, {})
    errors = _errors(project, messages, metadata)
    broken = {error.path for error in errors}
    tests = {test.id: test for unit in units if unit.names is not None for test in _tests(unit, unit.names)}
    unseen = (test for unit in units if unit.names is None for test in _tests(unit, tuple(unit.crate.tests)))
    hidden = {test.id: test for test in unseen if test.path not in broken}
    return replace(project, tests=tests, hidden=hidden, errors=errors)


def with_examples(project: Project, session: Session) -> Project:
    """Return the project with the examples of its documentation, which are listed after its tests have run."""
    listed = session.of(output.DoctestsListed)
    found = (found for line in listed for found in _doctests(line, project.folders[line.package], project))
    return replace(project, doctests={one.id: one for one in found})


def _no_metadata(described: output.MetadataLine | None) -> Unusable:
    detail = _said(described.stderr) if described is not None else "the test runner did not start"
    if described is None or described.code == 127 or described.timed_out:  # noqa: PLR2004  (no such program)
        return Unusable(RunState.UNUSABLE, detail)
    raised = output.Raised(kind="CargoError", message=detail)
    error = CollectionError(path="Cargo.toml", fault=output.Fault(chain=(raised,)))
    return Unusable(RunState.UNUSABLE, detail, (error,))


def _said(stderr: str) -> str:
    """Return the line in which cargo reports an error, with the reason that it gives."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if line.startswith("error")), max(len(lines) - 1, 0))
    return "; ".join(lines[first : first + 4])[:500] or "cargo printed nothing"


def _below(path: str, workspace: str) -> str:
    return posixpath.relpath(path, workspace) if path.startswith(f"{workspace}/") else ""


def _unit(package: Package, target: Target, listed: output.Listed | None, measured: Files, workspace: str) -> Unit:
    names = listed.names if listed is not None else None
    return Unit(
        package=package,
        target=target,
        folder=posixpath.dirname(_below(package.manifest_path, workspace)),
        crate=read_crate(measured, _below(target.src_path, workspace), is_test=target.is_test),
        executable=listed.executable if listed is not None else "",
        names=None if listed is None else ("main",) if names is None else names,
        ignored=frozenset(listed.ignored) if listed is not None else frozenset(),
        own_harness=listed is not None and names is None,
    )


def _tests(unit: Unit, names: tuple[str, ...]) -> Iterator[Test]:
    for name in names:
        source = unit.crate.tests.get(name)
        function = name
        if source is None and name.rpartition("::")[0] in unit.crate.tests:  # the cases of a macro such as rstest
            function = name.rpartition("::")[0]
            source = unit.crate.tests[function]
        path = unit.crate.file_of(function)
        yield Test(
            id=unit.id_of(name),
            name=name,
            function=unit.id_of(function),
            path=path,
            sha256=source.sha256 if source is not None else unit.crate.digests.get(path, ""),
            unit=unit,
            source=source,
        )


def _errors(
    project: Project, messages: list[output.CompilerMessage], metadata: output.Metadata
) -> tuple[CollectionError, ...]:
    """Return one error for each file: the first one of rustc, which others often follow from."""
    crates = frozenset(package.name.replace("-", "_") for package in metadata.packages)
    found: dict[str, CollectionError] = {}
    for message in messages:
        fault = output.of_diagnostic(message.message, project, root=metadata.workspace_root, crates=crates)
        place = fault.frames[0].path.removesuffix(output.REGION) if fault.frames else ""
        path = place or _below(message.target.src_path, project.workspace)
        found.setdefault(path, CollectionError(path=path, fault=fault))
    return tuple(found[path] for path in sorted(found))


def _doctests(line: output.DoctestsListed, folder: str, project: Project) -> Iterator[Doctest]:
    measured = project.measured
    counted: Counter[str] = Counter()
    matches = map(_DOCTEST.fullmatch, line.names)
    examples = [found for found in matches if found is not None]
    for found in sorted(examples, key=lambda found: (found["file"], int(found["line"]))):
        path = found["file"] if text_of(measured, found["file"]) is not None else posixpath.join(folder, found["file"])
        plain = f"{line.package}::doc::{found['file']}::{found['item']}".removesuffix("::")
        counted[plain] += 1
        number = f"#{counted[plain]}" if counted[plain] > 1 else ""
        yield Doctest(
            id=f"{plain}{number}",
            name=found[0],
            package=line.package,
            path=path,
            line=int(found["line"]),
            sha256=_example_sha256(text_of(measured, path) or b"", int(found["line"])),
        )


def _example_sha256(source: bytes, line: int) -> str:
    """Return the digest of the documentation example that begins on a line, without its fences."""
    marks = re.compile(rb"^\s*(?://[/!]|\*)?\s?")
    lines = [marks.sub(b"", found) for found in source.split(b"\n")[line - 1 :]]
    end = next((number for number, found in enumerate(lines[1:], 1) if found.strip().startswith(b"```")), len(lines))
    return hashlib.sha256(b"\n".join(lines[:end])).hexdigest()
