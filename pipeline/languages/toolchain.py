"""The base of toolchains: knows the file names of its language, and imports runners and readers when they are needed.

Most parsers are shared libraries, and every toolchain is asked whether it recognises a project. Sources are strangers':
they are read within limits, all at once, and where that fails each for itself, to know which it is. An unreadable file
is left out, or is itself a fault.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING, Final

from pipeline.languages.sources.stubs import OldBodies, Stubbed, StubFault
from pipeline.limited import UnreadableError, limited

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from pipeline.evidence.observation import Observation
    from pipeline.evidence.red_classes import Symbol
    from pipeline.languages.protocol import Environment, Lookup, Measurement, Missing
    from pipeline.policy.listed_commands import ListedCommand

    Files = Mapping[str, str]
    Replaces = Callable[[Files, Sequence[Symbol]], Stubbed]
    Compares = Callable[[Files, Files], tuple[Symbol, ...]]
    Judges = Callable[[Files, Files, Sequence[Symbol]], tuple[StubFault, ...]]

_SAYS_TEST: Final = re.compile(r"(?<![a-z])(?:tests?|specs?)(?![a-z])")


def says_test(path: str) -> bool:
    """Return whether a folder of a path, or its name, contains test or spec."""
    return any(_SAYS_TEST.search(part.casefold()) for part in path.split("/"))


class LanguageToolchain:
    """The part of the toolchain protocol that follows from names, and what else a language knows of them.

    `package` is the folder of its modules: `environment` finds one, `measuring` runs the tests and checks the types,
    `stubs` reads and writes stubs. `markers` are files by which a project is recognised; `control` are patterns of
    names, and `control_folders` names of folders, of files that control how tests run, all in lower case. `commands`
    are those that an agent's tool may run.
    """

    name: str
    sources: tuple[str, ...]
    stub: str
    stub_like: re.Pattern[str]
    install_hint: str
    package: str
    markers: tuple[str, ...]
    control: tuple[str, ...]
    control_folders: frozenset[str] = frozenset()
    commands: tuple[ListedCommand, ...] = ()

    def detect(self, worktree: Path) -> bool:
        """Return whether the folder contains a file that marks a project of this language."""
        return any((worktree / name).is_file() for name in self.markers)

    async def find_environment(self, lookup: Lookup) -> Environment | Missing:
        """Return the environment of the project's tests, or why there is none."""
        return await import_module(f"{self.package}.environment").find_environment(lookup)

    async def run_tests(self, asked: Measurement) -> Observation:
        """Run the selected tests and return the observation.

        Raises:
            BoxError: the box did not work.
        """
        return await import_module(f"{self.package}.measuring").run_tests(asked)

    async def check_types(self, asked: Measurement) -> Observation:
        """Return compile and type errors as collection errors.

        Raises:
            BoxError: the box did not work.
        """
        return await import_module(f"{self.package}.measuring").check_types(asked)

    def is_test_path(self, path: str, observation: Observation) -> bool:
        """Return whether the runner collects the file, or would if it were new."""
        return observation.layout.is_test(path)

    def is_control_path(self, path: str) -> bool:
        """Return whether the file controls how tests run, how they are compiled, or what they import."""
        *folders, name = path.casefold().split("/")
        return not self.control_folders.isdisjoint(folders) or any(fnmatchcase(name, one) for one in self.control)

    def is_module(self, path: str, module: str) -> bool:  # noqa: ARG002  (of those that have modules)
        """Return whether a file is the module of a name, in whatever source folder."""
        return False

    def is_part_of(self, path: str, module: str) -> bool:
        """Return whether a file is the module of a name, or lies in the package of that name."""
        return self.is_module(path, module)

    def is_plausible(self, path: str) -> bool:
        """Return whether `path` can be a test file, without knowing the project."""
        return says_test(path)

    def why_overlooked(self, path: str) -> str | None:  # noqa: ARG002
        """Return why a test at `path` would not be run, None if it would."""
        return None

    @property
    def _stubs(self) -> ModuleType:
        return import_module(f"{self.package}.stubs")

    def stub_symbols(self, files: Files, symbols: Sequence[Symbol]) -> Stubbed:
        """Return the files with the bodies of the symbols replaced by the stub."""
        return stub_symbols(self._stubs.stub_symbols, files, symbols)

    def introduced(self, before: Files, after: Files) -> tuple[Symbol, ...]:
        """Return the symbols defined outside of tests that were not defined before."""
        return introduced(self._stubs.introduced, before, after)

    def with_old_bodies(self, before: Files, after: Files, *, kept: bool) -> OldBodies:
        """Return the files with the bodies that their functions had; see the protocol."""
        read = self._stubs.with_old_bodies
        try:
            return limited(read)(before, after, kept)
        except UnreadableError:
            return OldBodies({}, ())

    def stub_faults(self, before: Files, after: Files, symbols: Sequence[Symbol]) -> tuple[StubFault, ...]:
        """Return the faults of a stub pass: changes that are no stubs."""
        return stub_faults(self._stubs.stub_faults, before, after, symbols)


def stub_symbols(read: Replaces, files: Files, symbols: Sequence[Symbol]) -> Stubbed:
    """Return the files with stubs; an unreadable file stays unchanged, so that tests pass on it."""
    try:
        return limited(read)(files, symbols)
    except UnreadableError:
        left = {path: text for path, text in files.items() if _fault(read, {path: text}, symbols) is None}
    return stub_symbols(read, left, symbols) if 0 < len(left) < len(files) else Stubbed({}, tuple(symbols))


def introduced(read: Compares, before: Files, after: Files) -> tuple[Symbol, ...]:
    """Return the symbols that the files newly define; none for an unreadable file."""
    try:
        return limited(read)(before, after)
    except UnreadableError:
        left = {path: text for path, text in after.items() if _fault(read, _only(before, path), {path: text}) is None}
    return introduced(read, {path: before[path] for path in left if path in before}, left) if left != after else ()


def stub_faults(read: Judges, before: Files, after: Files, symbols: Sequence[Symbol]) -> tuple[StubFault, ...]:
    """Return the changes that are no stubs; for an unreadable file, that it cannot be read."""
    try:
        return limited(read)(before, after, symbols)
    except UnreadableError as error:
        each = ((path, _fault(read, _only(before, path), _only(after, path), symbols)) for path in after)
        found = tuple(StubFault(path, 0, str(fault)) for path, fault in each if fault is not None)
        return found or tuple(StubFault(path, 0, str(error)) for path in {**before, **after})


def _only(files: Files, path: str) -> dict[str, str]:
    return {path: files[path]} if path in files else {}


def _fault(read: Callable[..., object], *args: object) -> UnreadableError | None:
    try:
        limited(read)(*args)
    except UnreadableError as error:
        return error
    return None
