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

from pipeline.sandbox.limited import UnreadableError, limited
from pipeline.testing.languages.protocol import Environment, Lookup, Measurement, Members, Missing
from pipeline.testing.languages.sources import stubs
from pipeline.testing.languages.sources.stubs import OldBodies, Stubbed, StubFault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from pipeline.judge.evidence.observation import Observation
    from pipeline.judge.evidence.red_classes import Symbol
    from pipeline.judge.policy.listed_commands import ListedCommand

    Files = Mapping[str, str]

_SAYS_TEST: Final = re.compile(r"(?<![a-z])(?:tests?|specs?)(?![a-z])")


def says_test(path: str) -> bool:
    """Return whether a folder of a path, or its name, contains test or spec."""
    return any(_SAYS_TEST.search(part.casefold()) for part in path.split("/"))


class Toolchain:
    """Recognises and runs the tests of one language, or, as `Projects`, of several projects.

    `sources` are the endings of the files that are its code; `stub` is what the body of a scaffolded symbol is, word
    for word, and `stub_like` finds one that is left, however it is spelled; `install_hint` says how to get the
    language.

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

    def members(self, worktree: Path, top: str, tracked: Collection[str], is_ours: Callable[[str], bool]) -> Members:  # noqa: ARG002
        """Return the projects below a folder that one command there does not measure.

        Args:
            worktree: The checkout to look into.
            top: The folder, empty for the top of the repository.
            tracked: The paths that the repository has.
            is_ours: Whether a folder may be a project that nobody names: it holds no data of tests, for example.
        """
        return Members()

    async def find_environment(self, lookup: Lookup) -> Environment | Missing:
        """Return the environment of the project's tests, or why there is none; called before any agent ran."""
        return await import_module(f"{self.package}.environment").find_environment(lookup)

    async def run_tests(self, asked: Measurement) -> Observation:
        """Run the selected tests and return the observation.

        Raises:
            BoxError: the box did not work.
        """
        return await import_module(f"{self.package}.measuring").run_tests(asked)

    async def check_types(self, asked: Measurement) -> Observation:
        """Return the compile and type errors, of tests too, as collection errors; nothing of it is run.

        Where a language has no such check (Python without a type checker), what cannot be parsed is an error.

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

    def stub_symbols(self, files: Files, symbols: Sequence[Symbol]) -> Stubbed:
        """Return the files with stubs; an unreadable file stays unchanged, so that tests pass on it."""
        try:
            return limited(stubs.stub_symbols)(self.package, files, symbols)
        except UnreadableError:
            unread = self._unread({}, files)
        left = {path: text for path, text in files.items() if path not in unread}
        return self.stub_symbols(left, symbols) if 0 < len(left) < len(files) else Stubbed({}, tuple(symbols))

    def introduced(self, before: Files, after: Files) -> tuple[Symbol, ...]:
        """Return the symbols that the files newly define outside of tests; none for an unreadable file."""
        try:
            return limited(stubs.introduced)(self.package, before, after)
        except UnreadableError:
            unread = self._unread(before, after)
        old, new = ({path: text for path, text in each.items() if path not in unread} for each in (before, after))
        return self.introduced(old, new) if new != after else ()

    def with_old_bodies(self, before: Files, after: Files, *, kept: bool) -> OldBodies:
        """Return the files of *after* with the bodies that their functions had before, and stubs for what is new.

        Args:
            before: The sources as they were; a file that is missing here is new.
            after: As they are; one that cannot be read is not in the answer.
            kept: Else what was changed gets a stub as well: an old body need not compile with what is new around it.
        """
        try:
            return limited(stubs.with_old_bodies)(self.package, before, after, kept)
        except UnreadableError:
            return OldBodies({}, ())

    def stub_faults(self, before: Files, after: Files, symbols: Sequence[Symbol]) -> tuple[StubFault, ...]:
        """Return the changes of a stub pass that are no stubs, by the syntax trees (ADR-7).

        Allowed are imports, comments, and each of `symbols` with its members: a function whose body is exactly the stub
        (a docstring or documentation before it is fine), a type with its fields, a constant with a literal. A function
        that was there may get another signature if it is among `symbols`; its body is then what it was, or the stub.
        Everything else is a fault: another body, an item that nobody named, one that is gone, a statement that runs,
        a symbol of `symbols` that is new and still missing, a file that cannot be parsed or read.

        Args:
            before: The sources as they were; a file that is missing here is new.
            after: The sources as the stub pass left them; a file that is missing here was deleted.
            symbols: What the task introduces; a dotted name is a member.
        """
        try:
            return limited(stubs.stub_faults)(self.package, before, after, symbols)
        except UnreadableError as error:
            unread = self._unread(before, after) or dict.fromkeys({**before, **after}, error)
        return tuple(StubFault(path, 0, str(error)) for path, error in unread.items())

    def _unread(self, before: Files, after: Files) -> dict[str, UnreadableError]:
        """Return the files that no reader gets through, each read for itself, with the reasons."""
        found: dict[str, UnreadableError] = {}
        for path in after:
            old, new = ({path: each[path]} if path in each else {} for each in (before, after))
            try:
                limited(stubs.introduced)(self.package, old, new)
            except UnreadableError as error:
                found[path] = error
        return found
